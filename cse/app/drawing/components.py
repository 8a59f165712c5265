"""Gradio components shared by the tabs: headings, submit buttons and results."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

STATIC = Path(__file__).parents[1] / "static"


def script(*names: str) -> str:
    """Return these scripts of `static`, concatenated in this order; they share one scope."""
    return "\n".join((STATIC / f"{name}.js").read_text(encoding="utf-8") for name in names)


def heading(text: str) -> gr.Markdown:
    """Return the heading of a part of a tab."""
    return gr.Markdown(f"## {text}")


def submit(label: str) -> gr.Button:
    """Return the submit button of a row of inputs."""
    return gr.Button(label, variant="primary", scale=1, min_width=130, elem_classes="cse-submit")


def result(elem_id: str, first: str) -> gr.HTML:
    """Return the output of a result as HTML; it shows `first` when the page opens."""
    return gr.HTML(first, apply_default_css=False, elem_id=elem_id, elem_classes="cse-result")
