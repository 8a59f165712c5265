"""Gradio components shared by the tabs: headings, submit buttons, results, and files that are saved."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from cse.app.drawing import html

STATIC = Path(__file__).parents[1] / "static"
TEMPLATE = (
    '<div class="cse-taken"><p role="status"></p><pre tabindex="0" hidden aria-label="Code"></pre>'
    '<button type="button" class="cse-copy-code" hidden>Copy</button></div>'
)
MAX_STEM = 80  # characters of a file name
NUMBERS = itertools.count(1)  # make equal values differ, since pages and events watch for a changed one


def script(*names: str) -> str:
    """Return these scripts of `static`, concatenated in this order; they share one scope."""
    return "\n".join((STATIC / f"{name}.js").read_text(encoding="utf-8") for name in names)


def heading(text: str, more: str = "", words: Sequence[str] = ()) -> gr.HTML:
    """Return the heading of a part of a place; a "?" opens `more`, HTML; `words` are terms that the part uses."""
    about = html.question(text, f"About: {text}") + html.sheet(text, text, more) if more else ""
    terms = f'<p class="cse-terms">{"".join(map(html.term, words))}</p>' if words else ""
    inside = f'<div class="cse-part-head"><h2>{html.escape(text)}</h2>{about}{terms}</div>'
    return gr.HTML(inside, apply_default_css=False)


def settings(name: str = "Options") -> gr.Accordion:
    """Return the folded fields beside the examples."""
    return gr.Accordion(name, open=False, elem_classes="cse-settings")


def result(elem_id: str, first: str, js: str | None = None) -> gr.HTML:
    """Return the output of a result as HTML; it shows `first` when the page opens, where the script `js` runs."""
    return gr.HTML(first, apply_default_css=False, elem_id=elem_id, elem_classes="cse-result", js_on_load=js)


def saved_file() -> gr.HTML:
    """Return the component; a value of `file_value` saves or shows a text."""
    return gr.HTML({}, html_template=TEMPLATE, js_on_load="cse.savedFile(element, props, watch)")


def file_stem(*words: str) -> str:
    """Return words as a file name without its suffix, of at most `MAX_STEM` characters and without signs of paths."""
    plain = (re.sub(r"[^\w.]+|^\.+", "-", word).strip("-.") for word in words)
    return "-".join(filter(None, plain))[:MAX_STEM]


def file_value(
    name: str, kind: str, text: str, lacking: Sequence[str] = (), notes: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the value that saves `text` as a file of the MIME type `kind`; without a kind it is shown as code.

    `lacking` are the models that have no result in it. With `notes`, which are said with it, `text` is base64.
    """
    value = {"file": name, "type": kind, "text": text, "lacking": list(lacking), "number": next(NUMBERS)}
    return value if notes is None else value | {"notes": list(notes), "base64": True}
