"""The Gradio components every tab has: a button beside its inputs, and a place for its result."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

STATIC = Path(__file__).parents[1] / "static"


def script(*names: str) -> str:
    """The scripts of these names in `static`, in one scope and in this order."""
    return "\n".join((STATIC / f"{name}.js").read_text(encoding="utf-8") for name in names)


def heading(text: str) -> gr.Markdown:
    """What stands above a part of a tab, beneath the page's own heading."""
    return gr.Markdown(f"## {text}")


def submit(label: str) -> gr.Button:
    """The button of a row of inputs."""
    return gr.Button(label, variant="primary", scale=1, min_width=130, elem_classes="cse-submit")


def result(elem_id: str, first: str) -> gr.HTML:
    """Where the HTML of a result goes; `first` is there when the page opens."""
    return gr.HTML(first, apply_default_css=False, elem_id=elem_id, elem_classes="cse-result")
