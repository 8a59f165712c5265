"""The component that saves a text as a file of the visitor, or shows it as code, without the server's disk."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import gradio as gr

from cse.app.drawing.components import script

TEMPLATE = (
    '<div class="cse-taken"><p role="status"></p><pre tabindex="0" hidden aria-label="Code"></pre>'
    '<button type="button" class="cse-copy-code" hidden>Copy</button></div>'
)
NUMBERS = itertools.count(1)  # makes two equal files differ, since the page watches for a changed value


def saved_file() -> gr.HTML:
    """Return the component; a value of `file_value` saves or shows a text."""
    return gr.HTML({}, html_template=TEMPLATE, js_on_load=script("save", "takeaway"))


def file_value(
    name: str, kind: str, text: str, lacking: Sequence[str] = (), notes: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the value that saves `text` as a file of the MIME type `kind`; without a kind it is shown as code.

    `lacking` are the models that have no result in it. With `notes`, which are said with it, `text` is base64.
    """
    value = {"file": name, "type": kind, "text": text, "lacking": list(lacking), "number": next(NUMBERS)}
    return value if notes is None else value | {"notes": list(notes), "base64": True}
