"""Where the token that a vector is read from looks, by layer and head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gradio as gr

from cse.app import validation
from cse.app.drawing import html
from cse.app.drawing.attention import head_view, in_words, model_view, shares_of
from cse.app.drawing.components import result
from cse.app.forms.events import PROGRESS, private, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.columns import Column
from cse.app.models.models import Failure, divided
from cse.app.state.app_state import AppState
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.analysis.prefix_analysis import HeadAttention
    from cse.encoder.encoder import Encoder

WIDTH = 28.0  # rem of a model's picture
MOST_LAYERS, MOST_HEADS = 48, 32
LAYER, HEAD = "The layer", "The head"
SIZE = "This model has {} layers of {} heads."
ASK = html.hint("Press Show attention to see which tokens each head of a layer looks at.")
MEANING = (
    "Lines show the chosen head, the wider the more attention; the squares beside a token are all heads of the layer. "
    "Attention does not tell which token matters."
)
DECIMALS = 5


def attentions(state: AppState, sentence: str, report: Report = silent) -> dict[str, HeadAttention | Failure]:
    """Return each model's attention by layer and head."""
    text = validation.sentence(sentence, "The sentence")

    def look(column: Column, encoder: Encoder) -> HeadAttention:
        from cse.analysis.prefix_analysis import head_attention
        from cse.models.loading import on_torch

        return head_attention(on_torch(encoder), text)

    return state.models.apply(look, report=report)


def heads_html(answers: Mapping[str, HeadAttention | Failure], layer: int, head: int) -> str:
    """Return a column per model: a head of a layer, head 0 the mean of all, and every head of every layer, folded."""
    chosen = validation.whole(layer, LAYER, 1, MOST_LAYERS) - 1
    number = validation.whole(head, HEAD, 0, MOST_HEADS)
    found, failed = divided(answers)
    cards = {}
    for name, answer in found.items():
        layers, heads, _ = answer.shares.shape
        known = chosen < layers and number <= heads
        cards[name] = one_model(answer, chosen, number, name) if known else html.hint(SIZE.format(layers, heads))
    return html.failures(failed) + html.columns(cards, str, width=WIDTH) + html.hint(MEANING)


def one_model(found: HeadAttention, layer: int, head: int, name: str) -> str:
    """Return what a head looks at, and a table of every head."""
    verdict = html.verdict(in_words(found, shares_of(found, layer, head)))
    table = html.fold("All heads", model_view(found, layer, head, name), opened=bool(found.prefix))
    return verdict + head_view(found, layer, head, name) + table


def plain_attention(found: HeadAttention) -> dict[str, Any]:
    """Return an attention as JSON values."""
    return {**found._asdict(), "tokens": list(found.tokens), "shares": found.shares.round(DECIMALS).tolist()}


def heads_section(state: AppState, sentence: gr.Textbox) -> Linked:
    """Add a button, a layer and a head, and the attention of the sentence. The address holds none of it."""
    with gr.Row(equal_height=True):
        layer = gr.Slider(1, 6, 6, step=1, label="Layer", min_width=160)
        head = gr.Slider(0, 12, 0, step=1, label="Head (0: mean of all)", min_width=160)
        button = gr.Button("Show attention", size="sm", scale=0, min_width=140)
    output = result("heads", ASK)

    def show(sentence: str, layer: int, head: int, progress: gr.Progress = PROGRESS) -> tuple[str, Any, Any]:
        answers = attentions(state, sentence, reporter(progress))
        sizes = [found.shares.shape for found in divided(answers)[0].values()]
        layers, heads = (max((size[axis] for size in sizes), default=1) for axis in (0, 1))
        chosen = min(validation.whole(layer, LAYER, 1, MOST_LAYERS), layers)  # no further than the deepest model goes
        number = min(validation.whole(head, HEAD, 0, MOST_HEADS), heads)
        shown = heads_html(answers, chosen, number)
        return shown, gr.update(maximum=layers, value=chosen), gr.update(maximum=heads, value=number)

    run = refusing(show, {"The sentence": sentence, LAYER: layer, HEAD: head}, [output, layer, head])
    triggers = (button.click, layer.release, head.release)
    private(triggers, run)
    return Linked((), run, triggers, results=[Result("The attention", "attention", ("sentence",))])
