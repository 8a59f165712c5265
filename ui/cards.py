"""What each model is, in numbers and a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import gradio as gr

from ui import markup
from ui.lab import Lab
from ui.models import Column, Failure, Models
from ui.parts import result
from ui.wiring import Run, guarded

if TYPE_CHECKING:
    from cse.encoder import Encoder

HEADINGS = ("Model", "Idea", "Source", "Learned numbers", "Vector read", "Fingerprint")


class Card(TypedDict):
    """A model's description; `learned` counts the numbers its method trained."""

    summary: str
    citation: str
    learned: int
    dimension: int
    pooling: str
    template: str
    fingerprint: str


def cards(models: Models) -> dict[str, Card | Failure]:
    """Each model's card."""
    return models.ask(card)


def card(column: Column, encoder: Encoder) -> Card:
    """One model's card."""
    method = encoder.method
    return Card(
        summary=method.summary, citation=method.citation,
        learned=sum(tensor.numel() for tensor in encoder.learned().values()), dimension=encoder.dim,
        pooling=where_read(method.pooling.value, method.template.text), template=method.template.text,
        fingerprint=encoder.fingerprint,
    )  # fmt: skip


def where_read(pooling: str, template: str) -> str:
    """Where the vector is read, in words."""
    if pooling != "token":
        return pooling
    return "at [MASK]" if "[MASK]" in template else "at the first token"


def cards_html(answers: dict[str, Card | Failure]) -> str:
    """A table of the models."""
    head = "".join(f"<th scope='col'>{heading}</th>" for heading in HEADINGS)
    rows = "".join(
        f"<tr><th scope='row'>{markup.escape(name)}</th>{cells(found)}</tr>" for name, found in answers.items()
    )
    return f'<div class="cse-scroll"><table class="cse-table"><tr>{head}</tr>{rows}</table></div>'


def cells(found: Card | Failure) -> str:
    """A model's cells, or the reason there are none."""
    if isinstance(found, Failure):
        return f'<td class="cse-failure" colspan="{len(HEADINGS) - 1}">{markup.escape(found.reason)}</td>'
    read = f"{markup.escape(found['pooling'])} of <code>{markup.escape(found['template'])}</code>"
    texts = (markup.escape(found["summary"]), markup.escape(found["citation"]), f"{found['learned']:,}", read)
    return "".join(f"<td>{text}</td>" for text in texts) + f"<td><code>{found['fingerprint']}</code></td>"


def cards_part(lab: Lab) -> Run:
    """The folded table of models; what fills it comes back."""
    with gr.Accordion("Models", open=False):
        output = result("The models are being opened.", "models")

    def describe() -> str:
        return cards_html(cards(lab.models))

    return Run(guarded(describe), [], [output])
