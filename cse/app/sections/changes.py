"""Changes of a sentence, generated or typed, and how far each moves its vector in every model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import gradio as gr

from cse.analysis.attribution import PERTURBATIONS, Perturbation
from cse.app import validation
from cse.app.drawing import html
from cse.app.drawing.components import heading, result, settings, submit
from cse.app.drawing.verdicts import UNHEARD, percent, reaction
from cse.app.forms.events import PROGRESS, private, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.columns import Column
from cse.app.models.models import Failure, divided
from cse.app.state.app_state import AppState
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder

SENTENCES = [
    "Anna will not meet Peter in Rome on 12 May.",
    "The dog chased the cat through the garden.",
    "The new phone is cheaper than the old one.",
]
VARIANTS, MOST_VARIANTS = "Your variants", 20
ENDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # of the bars
SCALE = "0 %: the vector stays. 100 %: it goes as far as an unrelated sentence."
MOVES = (
    "<p>How far each change moves the sentence's vector: 0 % is not at all, 100 % as far away as an unrelated "
    "sentence.</p><p>A good model moves little where the meaning stays, and far where it changes.</p><p>Type variants "
    "of your own to see what every model makes of them. The link of the page keeps them.</p>"
)


class Moved(NamedTuple):
    """The `changed` sentence of a perturbation, and its displacement `moved` by model (`calibration.displacement`).

    `keeps` says whether the meaning stays; it is None for a variant of the visitor's.
    """

    name: str
    keeps: bool | None
    changed: str
    moved: dict[str, float]


def changes_of(sentence: str) -> list[tuple[Perturbation, str]]:
    """Return the perturbations that change the sentence, with the changed sentences."""
    found = ((perturbation, perturbation.apply(sentence)) for perturbation in PERTURBATIONS)
    return [(perturbation, changed) for perturbation, changed in found if changed]


def variants_of(text: str) -> list[str]:
    """Return the variants that a visitor typed, one a line, without empty lines."""
    found = [line.strip() for line in validation.text(text, VARIANTS).splitlines() if line.strip()]
    if len(found) > MOST_VARIANTS:
        raise validation.FieldError(VARIANTS, f"{VARIANTS} are {len(found):,}; give at most {MOST_VARIANTS}.")
    return found


def perturbed(
    state: AppState, sentence: str, variants: str = "", report: Report = silent
) -> tuple[list[Moved], dict[str, Failure]]:
    """Return the displacement of a sentence in each model, and the models that failed.

    The visitor's variants come first, then the perturbations.
    """
    from cse.analysis.calibration import displacement
    from cse.vectors import cosines

    text = validation.sentence(sentence, "The sentence")
    own = [(f"variant {number}", None, line) for number, line in enumerate(variants_of(variants), start=1)]
    changes = [*own, *((made.name, made.keeps, changed) for made, changed in changes_of(text))]

    def moves(column: Column, encoder: Encoder) -> list[float]:
        reference = state.demo.random_cosines(encoder)
        own, *others = state.models.reader(encoder).encode([text, *(changed for *_, changed in changes)])
        return [displacement(float(cosines(own[None], other[None])[0]), reference) for other in others]

    answers = state.models.apply(moves, report=report)
    known, failures = divided(answers)
    rows = [
        Moved(*change, {name: found[place] for name, found in known.items()}) for place, change in enumerate(changes)
    ]
    return rows, failures


def moved_html(rows: Sequence[Moved], failures: Mapping[str, Failure]) -> str:
    """Return a row per change with a bar per model, each model's means, and what they say."""
    if not rows:
        return html.hint("No change applies to this sentence; write a longer one.")
    names, end = list(rows[0].moved), end_of([share for row in rows for share in row.moved.values()])
    heads = ["Change", "Sentence", *map(html.model, names)]
    body = [*(change_row(row, end) for row in rows), *(mean_row(rows, names, keeps, end) for keeps in (True, False))]
    shown = html.headed(heads, body, "How far changes move the sentence", "cse-table cse-moves")
    return html.failures(failures) + reactions(rows) + html.fold("All changes", scale_note(end) + shown, opened=True)


def reactions(rows: Sequence[Moved]) -> str:
    """Return which models react to the visitor's variants and to the negation."""
    lines = [reaction(row.moved, row.name) for row in rows if row.keeps is None]
    lines += [reaction(row.moved, "the negation") for row in rows if row.name == "negated"]
    return "".join(map(html.verdict, lines))


def end_of(shares: Sequence[float]) -> float:
    """Return where the bars of the shares end: the next of `ENDS`."""
    return next((end for end in ENDS if end >= max(shares, default=0.0)), ENDS[-1])


def scale_note(end: float) -> str:
    """Return where the bars end, and what the mark in them is."""
    mark = f" Left of the mark, {percent(UNHEARD)}, a model hardly reacts." if end > UNHEARD else ""
    return f'<p class="cse-note">Bars end at {percent(end)} of the way to an unrelated sentence.{mark}</p>'


def change_row(row: Moved, end: float) -> str:
    """Return a row with a change, the changed sentence, and each model's displacement."""
    meaning = "yours" if row.keeps is None else "keeps the meaning" if row.keeps else "changes the meaning"
    cells = "".join(share_cell(share, end) for share in row.moved.values())
    return (
        f'<tr><th scope="row">{html.escape(row.name)}<small>{meaning}</small></th>'
        f"<td>{html.folded(row.changed)}</td>{cells}</tr>"
    )


def share_cell(share: float, end: float) -> str:
    """Return a displacement as a percentage and a bar up to `end`, with a mark where a model reacts."""
    mark = UNHEARD / end if end > UNHEARD else None
    return f'<td class="cse-share">{round(100 * share)} %{html.bar(share / end, mark)}</td>'


def mean_row(rows: Sequence[Moved], names: Sequence[str], keeps: bool, end: float) -> str:
    """Return the means over the changes that keep, or change, the meaning; empty if there are none."""
    chosen = [row for row in rows if row.keeps is keeps]
    if not chosen:
        return ""
    means = (sum(row.moved[name] for row in chosen) / len(chosen) for name in names)
    what = "kept" if keeps else "changed"
    return (
        f'<tr class="cse-mean"><th scope="row">mean</th><td>where the meaning is {what}</td>'
        f"{''.join(share_cell(mean, end) for mean in means)}</tr>"
    )


def changes_section(state: AppState, first: list[Moved] | None) -> Linked:
    """Add a sentence, and its displacement by small changes in each model."""
    heading("Which changes does a model notice?", SCALE, MOVES)
    with gr.Row(equal_height=True, elem_classes="cse-fields"):
        sentence = gr.Textbox(SENTENCES[0], label="Sentence", scale=4, min_width=200)
        button = submit("Measure changes")
    with gr.Row(elem_classes="cse-tries"):
        with settings(VARIANTS), gr.Row():
            variants = gr.Textbox(
                label=f"Your variants of the sentence, one per line (at most {MOST_VARIANTS})", lines=3, max_lines=8,
                placeholder="Anna will perhaps meet Peter in Rome on 12 May.",
            )  # fmt: skip
        examples = gr.Examples([[text] for text in SENTENCES], [sentence], label="Try", api_visibility="private")
    output = result("changes", moved_html(first, {}) if first else html.hint("Press Measure changes."))

    def change(sentence: str, variants: str, progress: gr.Progress = PROGRESS) -> str:
        return moved_html(*perturbed(state, sentence, variants, reporter(progress)))

    run = refusing(change, {"The sentence": sentence, VARIANTS: variants}, [output])
    triggers = (button.click, sentence.submit, variants.submit)
    private(triggers, run, examples)
    moved = Result("Changes and variants", "changes", ("sentence", "variants"))
    return Linked(("sentence", "variants"), run, triggers, examples=examples, results=[moved])
