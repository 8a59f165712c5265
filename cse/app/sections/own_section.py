"""The form for a visitor's own sentences, with the progress of indexing, which a reloaded page follows again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from cse.app.drawing import html
from cse.app.forms.events import CORPORA, HIDDEN, QUICK
from cse.app.models.corpora import OWN_KEY
from cse.app.models.own_corpora import PROMISE, Job, Step
from cse.app.models.state import AppState
from cse.app.sections.own_corpus import FACTORIES, MOST_SENTENCES, SUFFIXES, indexing, opened, sentences_of
from cse.app.validation import MAX_FILE_BYTES

EXPLANATION = (
    f"Up to {MOST_SENTENCES:,} sentences: a {SUFFIXES[0]} file with a sentence a line, a {SUFFIXES[1]} or {SUFFIXES[2]}"
    f" table, each of at most {MAX_FILE_BYTES // 2**20} MB, or pasted lines. Every model indexes them."
)
POLL = 0.5  # seconds between checks of a job
NUMBERS = itertools.count(1)  # an event fires when its state changes
CELL = 120  # characters shown of a cell


class OwnSection(NamedTuple):
    """`indexed` changes when a new corpus is ready; `resume` shows an opened page the visitor's corpus and job."""

    indexed: gr.State
    resume: Any


def choices_of(state: AppState, key: str = "") -> list[tuple[str, str]]:
    """Return the choices of a corpus; the visitor's own is among them even before it exists."""
    own = state.own_corpora.corpus(key)
    named = [(each.label, each.key) for each in state.corpora.values()]
    return [*named, (own.label if own else "Your sentences", OWN_KEY)]


def own_section(state: AppState, corpus: gr.Dropdown, key: gr.Textbox) -> OwnSection:
    """Add the form beneath the search; the indexed sentences become a choice of `corpus`."""
    indexed = gr.State(0)
    with gr.Accordion("Your own sentences", open=False, elem_classes="cse-own"):
        gr.HTML(html.hint(f"{EXPLANATION} {PROMISE}"), apply_default_css=False)
        with gr.Row(equal_height=True):
            file = gr.File(label="File", scale=2, min_width=240, height=140)
            lines = gr.Textbox(label="Or lines, one sentence each", lines=4, max_lines=8, scale=4, min_width=280)
            factory = gr.Dropdown(
                [(said, name) for name, said in FACTORIES.items()], value="Flat", label="Index", scale=2, min_width=200
            )
        # Custom values are allowed because the server forgets the choices of a page; `uploaded` checks them.
        column = gr.Dropdown([], label="Column of the sentences", visible=False, allow_custom_value=True)
        rows = gr.HTML("", apply_default_css=False, visible=False)
        with gr.Row():
            start = gr.Button("Index these sentences", variant="primary", scale=0, min_width=240)
            stop = gr.Button("Stop", scale=0, min_width=100)
        status = gr.HTML("", apply_default_css=False, elem_id="own-corpus")

    def index_own(
        path: str | None, lines: str, column: str | None, factory: str, key: str
    ) -> Iterator[tuple[Any, Any, Any, Any]]:
        try:
            job = state.own_corpora.begin(key, indexing(state.models, sentences_of(path, lines, column), factory))
        except ValueError as error:  # the file stays for another column or a later try
            yield html.alert(str(error)), gr.skip(), gr.skip(), gr.skip()
            return
        if path is not None:
            Path(path).unlink(missing_ok=True)
        for said, *others in followed(state, key, job):
            yield said, None, *others

    def resume(key: str) -> Iterator[tuple[Any, Any, Any]]:
        job, kept = state.own_corpora.job(key), state.own_corpora.corpus(key)
        said = html.hint(f"{kept.label} can be chosen as the corpus.") if kept else ""
        yield said, gr.update(choices=choices_of(state, key)), gr.skip()
        if job is not None and (job.running or job.failure):
            yield from followed(state, key, job)

    file.change(described, file, [file, column, rows, status], **QUICK)
    lane: dict[str, Any] = {"show_progress": "hidden", **HIDDEN, **CORPORA}
    start.click(index_own, [file, lines, column, factory, key], [status, file, corpus, indexed], **lane)
    stop.click(state.own_corpora.stop, key, None, **QUICK)
    return OwnSection(indexed, lambda after: after(resume, key, [status, corpus, indexed], **lane))


def followed(state: AppState, key: str, job: Job) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the progress of a job until it ends, then the new choices of the corpus, then a change of `indexed`."""
    while not job.wait(POLL):
        if job.stopping.is_set():
            yield html.hint("Stopping."), gr.skip(), gr.skip()
        elif job.step is not None:
            yield step_html(job.step), gr.skip(), gr.skip()
    kept = state.own_corpora.corpus(key)
    if job.failure:
        yield html.alert(job.failure), gr.skip(), gr.skip()
    elif job.stopping.is_set() or kept is None:
        yield html.hint("Stopped."), gr.skip(), gr.skip()
    else:
        said = f"{kept.label} are indexed and chosen as the corpus; the query above was asked again."
        said = f'<p class="cse-note" role="status">{html.escape(said)}</p>'
        yield said, gr.update(choices=choices_of(state, key), value=OWN_KEY), gr.skip()
        yield said, gr.skip(), next(NUMBERS)  # separate: a page handles a state's change before the other outputs


def described(path: str | None) -> tuple[Any, Any, Any, Any]:
    """Return updates of the file, the choice of a column, the first rows and the message.

    A file that cannot be read is deleted.
    """
    hidden = gr.update(visible=False)
    if path is None:
        return gr.skip(), gr.update(choices=[], value=None, visible=False), hidden, gr.skip()
    try:
        names, rows, usual = opened(path)
    except ValueError as error:
        Path(path).unlink(missing_ok=True)
        return None, hidden, hidden, html.alert(str(error))
    if not names:
        return gr.skip(), gr.update(choices=[], value=None, visible=False), hidden, ""
    table = gr.update(value=rows_html(names, rows), visible=True)
    question = "" if usual else html.hint("Which column holds the sentences? Choose it, then index them.")
    return gr.skip(), gr.update(choices=names, value=usual, visible=True), table, question


def rows_html(names: list[str], rows: list[list[str]]) -> str:
    """Return the first rows of a table under its columns."""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in names)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell[:CELL])}</td>" for cell in row) + "</tr>" for row in rows)
    return html.table(f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>", "The first rows of the table")


def step_html(step: Step) -> str:
    """Return the progress of indexing as a bar and in words."""
    said = f"{step.name}: {step.done:,} of {step.total:,}"
    return f'<p class="cse-note">Encoding with {html.escape(said)}</p>{html.bar(step.done / step.total)}'
