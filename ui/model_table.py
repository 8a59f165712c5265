"""What each model is, in numbers and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

import gradio as gr

from cse.methods import Method, Pooling
from ui import html
from ui.components import result
from ui.events import Run, guarded
from ui.models import Column, Failure, Models
from ui.state import AppState

if TYPE_CHECKING:
    from cse.encoder import Encoder

HEADINGS = ("Model", "Idea", "Source", "Learned numbers", "Vector read", "Fingerprint")


class Description(TypedDict):
    """A model's description; `learned` counts the numbers its method trained."""

    summary: str
    citation: str
    learned: int
    dimension: int
    pooling: str
    template: str
    fingerprint: str


def descriptions(models: Models) -> dict[str, Description | Failure]:
    """Each model's description."""
    return models.apply(description)


def description(column: Column, encoder: Encoder) -> Description:
    """One model's description, from the fields of its method."""
    method = encoder.method
    return Description(
        summary=method.summary, citation=method.citation,
        learned=sum(tensor.numel() for tensor in encoder.learned().values()), dimension=encoder.dim,
        pooling=where_read(method), template=method.template.text,
        fingerprint=encoder.fingerprint,
    )  # fmt: skip


def where_read(method: Method) -> str:
    """Where the vector is read, in words."""
    if method.pooling is not Pooling.TOKEN:
        return method.pooling.value
    return "at [MASK]" if "[MASK]" in method.template.text else "at the first token"


def model_table_html(answers: Mapping[str, Description | Failure]) -> str:
    """A table of the models."""
    head = "".join(f"<th scope='col'>{heading}</th>" for heading in HEADINGS)
    rows = "".join(
        f"<tr><th scope='row'>{html.escape(name)}</th>{cells(found)}</tr>" for name, found in answers.items()
    )
    return html.table(f"<tr>{head}</tr>{rows}", "The models of this page")


def cells(found: Description | Failure) -> str:
    """A model's cells, or the reason there are none."""
    if isinstance(found, Failure):
        return f'<td class="cse-failure" colspan="{len(HEADINGS) - 1}">{html.escape(found.reason)}</td>'
    read = f"{html.escape(found['pooling'])} of <code>{html.escape(found['template'])}</code>"
    texts = (html.escape(found["summary"]), html.escape(found["citation"]), f"{found['learned']:,}", read)
    return "".join(f"<td>{text}</td>" for text in texts) + f"<td><code>{found['fingerprint']}</code></td>"


def model_table(state: AppState, first: dict[str, Description] | None = None) -> Run:
    """The folded table of models; what fills it where it has no `first` content comes back."""
    with gr.Accordion("Models", open=False):
        hint = html.hint("The models are being opened.")
        output = result("models", model_table_html(first) if first else hint)

    def describe() -> str:
        return model_table_html(descriptions(state.models))

    return Run(guarded(describe), [], [output])
