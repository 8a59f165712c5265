"""Gradio components shared by the tabs: headings, submit buttons and results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import gradio as gr

from cse.app.drawing import html
from cse.app.drawing.glossary import ask, sheet, terms

STATIC = Path(__file__).parents[1] / "static"


def script(*names: str) -> str:
    """Return these scripts of `static`, concatenated in this order; they share one scope."""
    return "\n".join((STATIC / f"{name}.js").read_text(encoding="utf-8") for name in names)


def heading(text: str, note: str = "", more: str = "", words: Sequence[str] = ()) -> gr.HTML:
    """Return the heading of a part of a tab with a `note` beside it, both plain text; a "?" opens `more`, HTML.

    `words` are terms of the part (`cse.app.drawing.glossary`).
    """
    place = f"about-{re.sub(r'[^a-z]+', '-', text.lower()).strip('-')}"
    asked = ask(place, f"About: {text}") + sheet(place, text, more) if more else ""
    inside = f"<h2>{html.escape(text)}</h2>{asked}" + (f'<p class="cse-note">{html.escape(note)}</p>' if note else "")
    return gr.HTML(f'<div class="cse-part-head">{inside}{terms(*words)}</div>', apply_default_css=False)


def settings(name: str = "Options") -> gr.Accordion:
    """Return the folded fields beside the examples."""
    return gr.Accordion(name, open=False, elem_classes="cse-settings")


def submit(label: str) -> gr.Button:
    """Return the submit button of a row of inputs."""
    return gr.Button(label, variant="primary", scale=0, min_width=110, elem_classes="cse-submit")


def result(elem_id: str, first: str, js: str | None = None) -> gr.HTML:
    """Return the output of a result as HTML; it shows `first` when the page opens, where the script `js` runs."""
    return gr.HTML(first, apply_default_css=False, elem_id=elem_id, elem_classes="cse-result", js_on_load=js)
