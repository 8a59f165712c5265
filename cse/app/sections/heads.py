"""Where the token that a vector is read from looks, by layer and head: the sentence's tokens, tinted by attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gradio as gr

from cse.app import validation
from cse.app.drawing import html
from cse.app.drawing.components import result
from cse.app.drawing.ramps import COSINES, tint
from cse.app.forms.events import PROGRESS, private, reporter
from cse.app.forms.refusals import refusing
from cse.app.models.columns import Column
from cse.app.models.models import Failure, divided
from cse.app.models.state import AppState
from cse.runs.progress import Report, silent

if TYPE_CHECKING:
    import numpy as np

    from cse.analysis.attention import HeadAttention
    from cse.encoding.encoder import Encoder

WIDTH = 30.0  # rem of a model's sentence
MOST_LAYERS, MOST_HEADS = 48, 32
LAYER, HEAD = "The layer", "The head"
ASK = html.hint("Show attention tints each token by how much the token that is read looks at it.")
MEANING = "Numbers are percent of the head's attention; head 0 is the mean of all heads. Attention is not importance."
DECIMALS = 5


def attentions(state: AppState, sentence: str, report: Report = silent) -> dict[str, HeadAttention | Failure]:
    """Return each model's attention by layer and head."""
    text = validation.sentence(sentence, "The sentence")

    def look(column: Column, encoder: Encoder) -> HeadAttention:
        from cse.analysis.attention import head_attention
        from cse.models.loading import on_torch

        return head_attention(on_torch(encoder), text)

    return state.models.apply(look, report=report)


def heads_html(answers: Mapping[str, HeadAttention | Failure], layer: int, head: int) -> str:
    """Return a column per model with its tokens, tinted by the attention of a head; head 0 is the mean of all."""
    chosen = validation.whole(layer, LAYER, 1, MOST_LAYERS) - 1
    number = validation.whole(head, HEAD, 0, MOST_HEADS)

    def body(found: HeadAttention) -> str:
        layers, heads, _ = found.shares.shape
        if chosen >= layers or number > heads:
            return html.hint(f"This model has {layers} layers of {heads} heads.")
        return tokens_html(found, found.shares[chosen].mean(0) if number == 0 else found.shares[chosen, number - 1])

    return html.columns(answers, body, width=WIDTH) + html.hint(MEANING)


def tokens_html(found: HeadAttention, shares: np.ndarray) -> str:
    """Return tokens with the shares (T,) of one head, and what they say."""
    largest = float(shares.max())
    tinted = " ".join(
        f'<span class="cse-tint" style="{tint(float(share) / largest, COSINES)}">{html.escape(token)}&nbsp;'
        f"<small>{100 * share:.0f}</small></span>"
        for token, share in zip(found.tokens, shares, strict=True)
    )
    most, who = found.tokens[int(shares.argmax())], found.read or "The mean of all tokens"
    on_prefix = f", {100 * shares[: found.prefix].sum():.0f} % at the prefix" if found.prefix else ""
    said = f"{who} looks most at {most} ({100 * largest:.0f} %){on_prefix}."
    return f'<p class="cse-words">{tinted}</p>{html.verdict(said)}'


def plain_attention(found: HeadAttention) -> dict[str, Any]:
    """Return an attention as JSON values."""
    return {**found._asdict(), "tokens": list(found.tokens), "shares": found.shares.round(DECIMALS).tolist()}


def heads_section(state: AppState, sentence: gr.Textbox) -> None:
    """Add a button, a layer and a head, and the attention of the sentence."""
    with gr.Row(equal_height=True):
        layer = gr.Slider(1, 6, 6, step=1, label="Layer", min_width=160)
        head = gr.Slider(0, 12, 0, step=1, label="Head (0: mean of all)", min_width=160)
        button = gr.Button("Show attention", size="sm", scale=0, min_width=140)
    output = result("heads", ASK)

    def show(sentence: str, layer: int, head: int, progress: gr.Progress = PROGRESS) -> tuple[str, Any, Any]:
        answers = attentions(state, sentence, reporter(progress))
        sizes = [found.shares.shape for found in divided(answers)[0].values()]
        layers, heads = (max((size[axis] for size in sizes), default=1) for axis in (0, 1))
        return heads_html(answers, layer, head), gr.update(maximum=layers), gr.update(maximum=heads)

    run = refusing(show, {"The sentence": sentence, LAYER: layer, HEAD: head}, [output, layer, head])
    private((button.click, layer.release, head.release), run)
