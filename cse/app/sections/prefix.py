"""Prefixes and prototypes: attention on a prefix by layer, layers switched off, and the nearest prototypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import gradio as gr

from cse.app import validation
from cse.app.drawing import html
from cse.app.drawing.components import heading, result, submit
from cse.app.forms.events import PROGRESS, private, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models import naming
from cse.app.models.columns import Column
from cse.app.models.models import Failure, divided
from cse.app.sections.heads import heads_section
from cse.app.state.app_state import AppState
from cse.training.records import Report, silent
from cse.vectors import cosines

if TYPE_CHECKING:
    from cse.analysis.prefix_analysis import PrefixAttention, Prototype
    from cse.encoder.encoder import Encoder
    from cse.encoder.torch_encoder import TorchEncoder

PAIRS = {
    "negation": ("Anna will not meet Peter in Rome on 12 May.", "Anna will meet Peter in Rome on 12 May."),
    "roles exchanged": ("The dog chased the cat through the garden.", "The cat chased the dog through the garden."),
    "paraphrase": ("He arrived before noon.", "He came in the morning."),
}
FIRST = PAIRS["negation"]
MOVES = "cse-table cse-moves"
MOST_LAYERS, LAYER = 48, "A layer"
INTRODUCTION = (
    "<p>DCPCSE trains a prefix: keys and values that every layer of a frozen backbone attends to. ConPVP trains with "
    "prototypes: the sentence in templates that affirm it and in templates that deny it.</p>"
)
READING = (
    "<p>Attention: the share that the token whose vector is read gives to the prefix; below it the mean of all tokens. "
    "Vector moves: how far the vector goes when that layer loses its prefix; 100 % is as far as an unrelated "
    "sentence.</p>"
)


class Ablation(NamedTuple):
    """With the prefix off in `layers`: the displacement `moved` of the first sentence, and the `cosine` of the pair."""

    layers: tuple[int, ...]
    moved: float
    cosine: float


class XRay(NamedTuple):
    """A model's attention on its prefix and ablations, or prototypes; `cosine` is the pair's without ablation.

    The ablations are those of each layer, of all layers, and of the chosen layers if these differ.
    """

    cosine: float
    attention: PrefixAttention | None
    ablations: Sequence[Ablation]
    prototypes: Sequence[Prototype]


def xrays(
    state: AppState, first: str, second: str, off: Sequence[int] = (), report: Report = silent
) -> dict[str, XRay | Failure]:
    """Return each model's X-ray for a pair of sentences; `off` are layers to switch off together."""
    pair = [validation.sentence(first, "The sentence"), validation.sentence(second, "The other sentence")]
    chosen = layers_of(off)

    def look(column: Column, encoder: Encoder) -> XRay:
        from cse.analysis.prefix_analysis import has_prototypes, prefix_attention, prototypes
        from cse.models.loading import on_torch

        cosine = float(cosines(*encoder.encode(pair)[:, None])[0])
        found = prototypes(encoder, pair[0]) if has_prototypes(encoder) else []
        if not encoder.reading.prefix:
            return XRay(cosine, None, [], found)
        reference, inside = state.demo.random_cosines(encoder), on_torch(encoder)
        return XRay(cosine, prefix_attention(inside, pair[0]), ablations(inside, pair, chosen, reference), found)

    return state.models.apply(look, report=report)


def ablations(encoder: TorchEncoder, pair: Sequence[str], chosen: tuple[int, ...], reference: Any) -> list[Ablation]:
    """Return ablations of each layer, of all, and of the chosen ones; `reference` are the cosines of random pairs."""
    from cse.analysis.calibration import displacement
    from cse.analysis.prefix_analysis import layer_count, without_prefix

    every = tuple(range(1, layer_count(encoder) + 1))
    own = encoder.encode(pair[:1])
    found = []
    for layers in dict.fromkeys([*((layer,) for layer in every), every, *([chosen] if chosen else [])]):
        vectors = without_prefix(encoder, pair, layers)
        moved = displacement(float(cosines(own, vectors[:1])[0]), reference)
        found.append(Ablation(layers, moved, float(cosines(vectors[:1], vectors[1:])[0])))
    return found


def layers_of(value: Any) -> tuple[int, ...]:
    """Return a client's layers, sorted and without duplicates. Raises FieldError for anything but whole numbers."""
    if not isinstance(value, (list, tuple)) or len(value) > MOST_LAYERS:
        raise validation.FieldError(LAYER, f"The layers are a list of at most {MOST_LAYERS} numbers.")
    return tuple(sorted({validation.whole(layer, LAYER, 1, MOST_LAYERS) for layer in value}))


def xray_html(answers: Mapping[str, XRay | Failure], off: Sequence[int] = ()) -> str:
    """Return a table for each model that has a prefix or prototypes, and a line for the others."""
    known, failures = divided(answers)
    parts = [html.failures(failures)]
    for name, found in known.items():
        parts += [prefix_html(name, found, found.attention, tuple(off))] if found.attention else []
        parts += [prototypes_html(name, found)] if found.prototypes else []
    others = [name for name, found in known.items() if not found.attention and not found.prototypes]
    if others:
        has = "has" if len(others) == 1 else "have"
        parts.append(html.hint(f"{', '.join(map(naming.title, others))} {has} neither a prefix nor prototypes."))
    return "".join(parts)


def prefix_html(name: str, found: XRay, attention: PrefixAttention, off: tuple[int, ...]) -> str:
    """Return a row per layer: attention on the prefix, displacement without it, and the pair's cosine then."""
    count = len(attention.read)
    heads = ("Prefix", "Attention", "Vector moves without it", "The pair's cosine without it")
    rows = []
    for ablation in found.ablations:
        alone = ablation.layers[0] if len(ablation.layers) == 1 and count > 1 else None
        shown = "" if alone is None else attention_cell(attention.read[alone - 1], attention.mean[alone - 1])
        kind = ' class="cse-mean"' if ablation.layers == off else ""
        rows.append(
            f'<tr{kind}><th scope="row">{title(ablation.layers, count, off)}</th>{shown or "<td>–</td>"}'
            f'<td class="cse-share">{percent(ablation.moved)}{html.bar(ablation.moved)}</td>'
            f"<td>{ablation.cosine:.3f} <small>{ablation.cosine - found.cosine:+.3f}</small></td></tr>"
        )
    table = html.headed(heads, rows, f"The prefix of {naming.title(name)} by layer", MOVES)
    seen = seen_in_prefix(found, attention)
    return f'<h3 class="cse-heading">{html.model(name)}</h3><p class="cse-note">{seen}</p>' + html.fold(
        "Table by layer", table
    )


def title(layers: tuple[int, ...], count: int, off: tuple[int, ...]) -> str:
    """Return the name of the layers that a row switches off."""
    if len(layers) == count:
        name = "every layer<small>the backbone, read the same way</small>"
    else:
        name = f"layer{'s' if len(layers) > 1 else ''} {', '.join(map(str, layers))}"
    return f'{name} <span class="cse-badge">chosen</span>' if layers == off else name


def attention_cell(read: float, mean: float) -> str:
    """Return the attention of the pooled token as a bar, and the mean of all tokens."""
    return f'<td class="cse-share">{percent(read)}{html.bar(read)}<small>all tokens {percent(mean)}</small></td>'


def percent(share: float) -> str:
    """Format a share as a percentage, with a decimal if it is small."""
    return f"{100 * share:.1f} %" if abs(share) < 0.0995 else f"{100 * share:.0f} %"


def seen_in_prefix(found: XRay, attention: PrefixAttention) -> str:
    """Return a summary of the table."""
    most = max(range(len(attention.read)), key=lambda layer: attention.read[layer])
    whole = next(ablation for ablation in found.ablations if len(ablation.layers) == len(attention.read))
    return (
        f"The prefix draws most attention in layer {most + 1}: {percent(attention.read[most])}, where evenly spread it "
        f"would be {percent(attention.even)}. Without any prefix the vector moves by {percent(whole.moved)}, and the "
        f"pair's cosine goes from {found.cosine:.3f} to {whole.cosine:.3f}."
    )


def prototypes_html(name: str, found: XRay) -> str:
    """Return a row per prototype, the nearest first."""
    sides: dict[bool, list[float]] = {True: [], False: []}
    rows = []
    for prototype in found.prototypes:
        sides[prototype.positive].append(prototype.cosine)
        what = "positive" if prototype.positive else "negative"
        rows.append(
            f'<tr><th scope="row">{html.escape(prototype.template)}</th><td>{what}</td>'
            f'<td class="cse-share">{prototype.cosine:.3f}{html.bar(prototype.cosine)}</td></tr>'
        )
    means = {side: sum(cosines) / len(cosines) for side, cosines in sides.items() if cosines}
    by_side = " and ".join(f"{mean:.3f} to {'positive' if side else 'negative'} ones" for side, mean in means.items())
    seen = f"The sentence lies nearest to “{html.escape(found.prototypes[0].template)}”; its mean cosine is {by_side}."
    heads = ("Prototype ([X] is the sentence)", "Kind", "Cosine")
    table = html.headed(heads, rows, f"The prototypes of {naming.title(name)}", MOVES)
    return f'<h3 class="cse-heading">{html.model(name)}</h3><p class="cse-note">{seen}</p>' + html.fold(
        "Table of prototypes", table
    )


def plain_xray(found: XRay) -> dict[str, Any]:
    """Return an X-ray as JSON values without absent parts."""
    value: dict[str, Any] = {"cosine": found.cosine}
    if found.attention:
        value["attention"] = found.attention._asdict()
        value["ablations"] = [ablation._asdict() for ablation in found.ablations]
    return value | ({"prototypes": [row._asdict() for row in found.prototypes]} if found.prototypes else {})


def opened_xray(value: dict[str, Any]) -> XRay:
    """Return the X-ray of a `plain_xray`."""
    from cse.analysis.prefix_analysis import PrefixAttention, Prototype

    found = value.get("attention")
    return XRay(
        value["cosine"],
        PrefixAttention(tuple(found["read"]), tuple(found["mean"]), found["even"]) if found else None,
        [Ablation(**{**row, "layers": tuple(row["layers"])}) for row in value.get("ablations", ())],
        [Prototype(**row) for row in value.get("prototypes", ())],
    )


def layer_choices(answers: Mapping[str, XRay | Failure]) -> list[tuple[str, int]]:
    """Return the layers of the deepest model that has a prefix, as choices."""
    known, _ = divided(answers)
    depth = max((len(found.attention.read) for found in known.values() if found.attention), default=0)
    return [(str(layer), layer) for layer in range(1, depth + 1)]


def xray_section(state: AppState, first: dict[str, XRay] | None) -> list[Linked]:
    """Add a pair of sentences, layers to switch off, X-rays and attention. Returns its parts of the address."""
    heading("What do prefixes and prototypes do?", more=INTRODUCTION + READING, words=["prefix", "prototype"])
    with gr.Row(equal_height=True, elem_classes="cse-fields"):
        sentence = gr.Textbox(FIRST[0], label="Sentence", scale=4, min_width=240)
        other = gr.Textbox(FIRST[1], label="Other sentence", scale=4, min_width=240)
        button = submit("Look inside")
    with gr.Row(elem_classes="cse-tries"):
        examples = gr.Examples(
            [list(pair) for pair in PAIRS.values()], [sentence, other], label="Try", example_labels=list(PAIRS),
            api_visibility="private",
        )  # fmt: skip
    choices = layer_choices(first or {})
    off = gr.CheckboxGroup(choices, label="Switch the prefix off in these layers together", visible=bool(choices))
    output = result("xray", xray_html(first) if first else html.hint("Press Look inside."))

    def look(sentence: str, other: str, off: list[int], progress: gr.Progress = PROGRESS) -> tuple[str, Any]:
        answers = xrays(state, sentence, other, off or (), reporter(progress))
        found = layer_choices(answers)
        return xray_html(answers, layers_of(off or ())), gr.CheckboxGroup(found, visible=bool(found))

    heads = heads_section(state, sentence)
    run = refusing(look, {"The sentence": sentence, "The other sentence": other, LAYER: off}, [output, off])
    triggers = (button.click, sentence.submit, other.submit, off.input)
    private(triggers, run, examples)
    xray = Result("Prefixes and prototypes", "xray", ("s1", "s2", "off"))
    return [Linked(("one", "other", "off"), run, triggers, examples=examples, results=[xray]), heads]
