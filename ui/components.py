"""The Gradio components every tab has: a button beside its inputs, and a place for its result."""

from __future__ import annotations

import gradio as gr

from ui import html


def submit(label: str) -> gr.Button:
    """The button of a row of inputs."""
    return gr.Button(label, variant="primary", scale=1, min_width=130, elem_classes="cse-submit")


def result(hint: str, elem_id: str) -> gr.HTML:
    """Where the HTML of a result goes; `hint` is there before."""
    return gr.HTML(html.hint(hint), apply_default_css=False, elem_id=elem_id, elem_classes="cse-result")
