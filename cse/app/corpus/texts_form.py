"""The forms that the corpus bar opens: a file with the choice of its columns, and pasted lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from cse.app import validation
from cse.app.corpus.chosen import choices_of
from cse.app.corpus.reading import MOST_TEXTS, file_corpus, preview
from cse.app.drawing import html
from cse.app.forms.events import HIDDEN, QUICK, hide
from cse.app.state.app_state import AppState
from cse.app.state.corpora import OWN_KEY
from cse.app.state.own_corpora import PROMISE, SUMMARY, OwnCorpus
from cse.app.validation import MAX_FILE_BYTES

EXPLANATION = (
    f"Up to {MOST_TEXTS:,} texts: a text file with a text a line, or a table (.csv, .tsv, .jsonl, .json, .xlsx, "
    f".parquet), packed or not, of at most {MAX_FILE_BYTES // 2**20} MB. Every model encodes them."
)
KEEPING = f'<details class="cse-note"><summary>{SUMMARY}</summary>{html.escape(PROMISE)}</details>'
NO_LABELS = "none"
LABEL_COLUMNS = ("label", "labels", "topic", "category", "class")  # chosen for a start
CELL = 120  # characters shown of a cell


def texts_form(
    state: AppState, corpus: gr.Dropdown, key: gr.Textbox, buttons: Sequence[gr.Button]
) -> tuple[gr.Column, Any]:
    """Add the form; the first button opens it for a file, the second for lines. Returns it and the event of its end."""
    with gr.Column(visible=False, elem_classes="cse-sheet", elem_id="corpus-form") as form:
        with gr.Row():
            with gr.Column(scale=2, min_width=260):
                file = gr.File(label="File", height=120)
                lines = gr.Textbox("", label="Lines, one text each", lines=5, max_lines=8, visible=False)
                # Custom values are allowed because the server forgets a page's choices; `file_texts` checks them.
                with gr.Row():
                    column, labels = (
                        gr.Dropdown([], label=name, visible=False, allow_custom_value=True, min_width=120)
                        for name in ("Column of the texts", "Column of labels")
                    )
            with gr.Column(scale=3, min_width=260):
                rows = gr.HTML("", apply_default_css=False, visible=False)
                gr.HTML(html.hint(EXPLANATION) + KEEPING, apply_default_css=False)
        status = gr.HTML("", apply_default_css=False, elem_id="corpus-said")
        with gr.Row():
            use = gr.Button("Use these texts", variant="primary", scale=0, min_width=200)
            close = gr.Button("Close", scale=0, min_width=100)
    pasting = gr.State(False)

    def opened(paste: bool) -> tuple[Any, ...]:
        return gr.update(visible=True), gr.update(visible=not paste), gr.update(visible=paste), paste

    def use_texts(pasting: bool, path: str | None, lines: str, column: str | None, labels: str | None, key: str) -> Any:
        try:
            own = read(pasting, path, lines, column, labels)
            state.own_corpora.put(key, own, state.models.columns)
        except ValueError as error:  # the file stays for another column or a later try
            return html.alert(str(error)), gr.skip(), gr.skip(), gr.skip(), gr.skip()
        if path is not None and not pasting:
            Path(path).unlink(missing_ok=True)
        return "", None, "", gr.update(visible=False), gr.update(choices=choices_of(state, key), value=OWN_KEY)

    for button, paste in zip(buttons, (False, True), strict=True):
        button.click(lambda paste=paste: opened(paste), None, [form, file, lines, pasting], **QUICK)
    close.click(hide, None, form, **QUICK)
    file.change(described, file, [column, labels, rows, status], **QUICK)
    inputs = [pasting, file, lines, column, labels, key]
    return form, use.click(use_texts, inputs, [status, file, lines, form, corpus], show_progress="hidden", **HIDDEN)


def read(pasting: bool, path: str | None, lines: str, column: str | None, labels: str | None) -> OwnCorpus:
    """Return the corpus of pasted lines or of a file. Raises ValueError for a file that cannot be read."""
    if pasting:
        return OwnCorpus("Pasted", validation.lines(lines, 1, MOST_TEXTS))
    if path is None:
        raise ValueError("Choose a file first.")
    return OwnCorpus.of(Path(path).name, file_corpus(path, column, labels if labels != NO_LABELS else None))


def described(path: str | None) -> tuple[Any, Any, Any, Any]:
    """Return updates of the choices of columns, the first rows and the message. A file that cannot be read stays."""
    hidden = gr.update(visible=False, value=None)
    if path is None:
        return hidden, hidden, hidden, ""
    try:
        seen = preview(path)
    except ValueError as error:
        return hidden, hidden, hidden, html.alert(str(error))
    table = gr.update(value=rows_html(seen.columns, seen.rows), visible=True)
    if not seen.columns:
        return hidden, hidden, table, ""
    labelled = next((name for name in seen.columns if name.lower() in LABEL_COLUMNS), NO_LABELS)
    others = [name for name in seen.columns if name != labelled]
    text = seen.text or (others[0] if len(others) == 1 else None)
    question = "" if text else html.hint("Which column holds the texts?")
    texts = gr.update(choices=seen.columns, value=text, visible=True)
    labels = gr.update(choices=[NO_LABELS, *seen.columns], value=labelled, visible=True)
    return texts, labels, table, question


def rows_html(names: list[str], rows: list[list[str]]) -> str:
    """Return the first rows of a file under its columns."""
    body = (html.row(html.escape(cell[:CELL]) for cell in row) for row in rows)
    return html.headed(map(html.escape, names), body, "The first rows of the file")
