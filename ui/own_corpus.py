"""Sentences of a visitor's own, indexed by every model for the visit: in memory, for nobody else."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gradio as gr
import numpy as np

from ui import html, validation
from ui.corpora import OWN_KEY, Corpus, fleeting_index
from ui.events import CORPORA, HIDDEN
from ui.models import Column, Failure, Models, told
from ui.state import AppState

if TYPE_CHECKING:
    from cse.encoder import Encoder
    from index.store import VectorIndex

MOST_SENTENCES, MOST_BYTES = 5_000, 5 * 2**20
BLOCK = 64  # sentences a model encodes before others may ask it
PAUSE = 0.01  # seconds: a thread that waits for a lock needs a moment to wake up
SUFFIXES = (".txt", ".csv", ".tsv")
FACTORIES = {"Flat": "Flat: exact", "HNSW32,Flat": "HNSW32,Flat: approximate", "SQ8": "SQ8: a quarter of the memory"}
EXPLANATION = (
    f"A .txt file with a sentence a line, a .csv or .tsv table, or pasted lines: up to {MOST_SENTENCES:,} sentences. "
    "Every model indexes them; they are kept in memory while this page is open, and no one else can search them."
)


class Step(NamedTuple):
    """How far an indexing is: sentences encoded, of all models together, and the model at work."""

    done: int
    total: int
    name: str


def uploaded(path: str, column: str = "") -> list[str]:
    """The sentences of an uploaded file, which is deleted; of a table those of the named or usual `column`.

    Raises ValueError in the name the file had, without the folder it lies in here.
    """
    from cse.data import sentences

    file = Path(path)
    try:
        if file.suffix.lower() not in SUFFIXES:
            raise ValueError(f"{file.name}: give a file of the kind {', '.join(SUFFIXES)}.")
        if file.stat().st_size > MOST_BYTES:
            raise ValueError(f"{file.name}: has more than {MOST_BYTES // 2**20} MB; give a part of it.")
        return bounded(sentences(file, column.strip() or None), file.name)
    except ValueError as error:
        raise ValueError(str(error).replace(str(file), file.name)) from error
    finally:
        file.unlink(missing_ok=True)


def bounded(source: Iterable[str], name: str) -> list[str]:
    """The sentences of `source`, where there are some and not too many."""
    found = list(islice(source, MOST_SENTENCES + 1))
    if not found:
        raise ValueError(f"{name}: no sentence in it; give a sentence a line.")
    if len(found) > MOST_SENTENCES:
        raise ValueError(f"{name}: more than {MOST_SENTENCES:,} sentences; give a part of it.")
    return found


def sentences_of(path: str | None, lines: str, column: str = "") -> list[str]:
    """The sentences of the uploaded file where there is one, otherwise the pasted lines."""
    found = uploaded(path, validation.text(column, "The column")) if path else None
    return validation.lines(lines, 1, MOST_SENTENCES) if found is None else found


def indexing(models: Models, texts: Sequence[str], factory: str) -> Iterator[Step | Corpus]:
    """The steps of indexing texts by every model, and at last the corpus; a model that fails says why when searched.

    Between two steps the models are free for others, and the caller may stop.
    """
    from index import BuildSettings

    chosen = validation.one_of(factory, "The index", FACTORIES)
    columns, built = models.columns, dict[Column, "VectorIndex | Failure"]()
    for place, column in enumerate(columns):  # the visitor may add others meanwhile
        blocks: list[np.ndarray] = []
        for start in range(0, len(texts), BLOCK):
            yield Step(place * len(texts) + start, len(columns) * len(texts), column.name)
            answer = encoded(models, column, texts[start : start + BLOCK])
            if isinstance(answer, Failure):
                built[column] = answer
                break
            blocks.append(answer)
            time.sleep(PAUSE)
        else:
            try:
                settings = BuildSettings(factory=chosen, model=column.model, corpus=OWN_KEY)
                built[column] = fleeting_index(texts, np.concatenate(blocks), settings)
            except ValueError as error:
                built[column] = Failure(told(error))
    yield Corpus(OWN_KEY, f"Your sentences ({len(texts):,})", columns, opener(built))


def encoded(models: Models, column: Column, texts: Sequence[str]) -> np.ndarray | Failure:
    """The column's vectors (N, d) of some texts."""
    return models.apply(lambda _, encoder: encoder.encode(texts), [column])[column.name]


def opener(built: dict[Column, VectorIndex | Failure]) -> Any:
    """Gives a column's index, or raises the reason why there is none."""

    def open_built(column: Column, encoder: Encoder) -> VectorIndex:
        index = built[column]
        if isinstance(index, Failure):
            raise ValueError(index.reason)
        return index

    return open_built


def step_html(step: Step) -> str:
    """How far an indexing is, as a bar and in words."""
    said = f"{step.name}: {step.done:,} of {step.total:,}"
    return f'<p class="cse-note">Encoding with {html.escape(said)}</p>{html.bar(step.done / step.total)}'


def own_section(state: AppState, corpus: gr.Dropdown) -> gr.State:
    """Where a visitor gives sentences of their own, which become a choice of `corpus`; what they are kept under."""
    own = gr.State(None, delete_callback=state.own_corpora.drop)
    with gr.Accordion("Your own sentences", open=False, elem_classes="cse-own"):
        gr.HTML(html.hint(EXPLANATION), apply_default_css=False)
        with gr.Row(equal_height=True):
            file = gr.File(label="File", file_types=list(SUFFIXES), scale=2, min_width=240, height=140)
            lines = gr.Textbox(label="Or lines, one sentence each", lines=4, max_lines=8, scale=4, min_width=280)
            with gr.Column(scale=2, min_width=200):
                column = gr.Textbox(label="Column of a table", placeholder="sentence or text")
                factory = gr.Dropdown([(said, key) for key, said in FACTORIES.items()], value="Flat", label="Index")
        with gr.Row():
            start = gr.Button("Index for this visit", variant="primary", scale=0, min_width=240)
            stop = gr.Button("Stop", scale=0, min_width=100)
        status = gr.HTML("", apply_default_css=False, elem_id="own-corpus")

    def index_own(path: str | None, lines: str, column: str, factory: str, earlier: str | None) -> Iterator[list[Any]]:
        started = time.perf_counter()
        try:
            for step in indexing(state.models, sentences_of(path, lines, column), factory):
                if isinstance(step, Corpus):
                    yield [done_html(step, time.perf_counter() - started), None, *kept(state, step, earlier)]
                else:
                    yield [step_html(step), None, gr.skip(), gr.skip()]
        except ValueError as error:
            said = f'<p class="cse-failure" role="alert">{html.escape(str(error))}</p>'
            yield [said, None, gr.skip(), gr.skip()]

    running = start.click(
        index_own, [file, lines, column, factory, own], [status, file, own, corpus],
        show_progress="hidden", **HIDDEN, **CORPORA,
    )  # fmt: skip
    stop.click(lambda: html.hint("Stopped."), None, status, cancels=[running], queue=False, **HIDDEN)
    return own


def kept(state: AppState, corpus: Corpus, earlier: str | None) -> list[Any]:
    """What a visitor's corpus is now kept under in place of an `earlier` one, and the choices that it is one of."""
    secret = secrets.token_hex(16)
    state.own_corpora.drop(earlier)
    state.own_corpora.put(secret, corpus)
    choices = [(each.label, each.key) for each in (*state.corpora.values(), corpus)]
    return [secret, gr.update(choices=choices, value=corpus.key)]


def done_html(corpus: Corpus, seconds: float) -> str:
    """What was indexed and what to do now."""
    said = f"{corpus.label} indexed in {seconds:.0f} s and chosen as the corpus: write a query above and press Search."
    return f'<p class="cse-note" role="status">{html.escape(said)}</p>'
