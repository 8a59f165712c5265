"""Files of the chosen corpus, sent over HTTP: a model's vectors (.npy), its index (.zip), and the table (.csv)."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from threading import BoundedSemaphore
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cse.app import validation
from cse.app.corpus.chosen import ChosenCorpus, chosen_corpus
from cse.app.corpus.reading import SUFFIXES
from cse.app.drawing.components import file_stem
from cse.app.models.models import Column, Failure, fingerprint_of
from cse.corpus.corpus import Corpus, free_name
from cse.corpus.output import csv_text

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.encoder.encoder import Encoder

PATH = "/corpus/files"
FIELDS = ("kind", "corpus", "key", "model")
FILES = {"npy": "Vectors (.npy)", "zip": "Index (.zip)", "csv": "Table (.csv)"}  # and the button of each
TYPES = {"npy": "application/octet-stream", "zip": "application/zip", "csv": "text/csv"}
ROW, TEXT = "row", "text"  # columns
INDEXES = BoundedSemaphore(2)  # built at once


class Vectors(NamedTuple):
    """A column's vectors (N, d) of a corpus, and its fingerprint."""

    column: Column
    fingerprint: str
    rows: np.ndarray


def file_route() -> Route:
    """Return the route; it answers a JSON object with the `FIELDS`, and refuses with one line, `detail`."""
    return Route(PATH, answer, methods=["POST"])


async def answer(request: Request) -> Response:
    """Return a file of a corpus of the app that received the request."""
    state: AppState = request.app.get_blocks().app_state
    try:
        body = json.loads(await request.body())
        if not isinstance(body, dict):
            raise ValueError(f"Send a JSON object with {', '.join(FIELDS)}.")
        name, file = await run_in_threadpool(corpus_file, state, *(body.get(field) for field in FIELDS))
    except (ValueError, RecursionError) as error:  # RecursionError: deeply nested lists
        return JSONResponse({"detail": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY)
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}", "Cache-Control": "no-store"}
    return StreamingResponse(blocks(file), media_type=TYPES[body["kind"]], headers=headers)


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a file, and close it."""
    with file:
        yield from iter(lambda: file.read(1 << 20), b"")


def corpus_file(state: AppState, kind: Any, corpus: Any, key: Any, model: Any) -> tuple[str, IO[bytes]]:
    """Return the name of a file and the file, open at its start and deleted when it is closed.

    Raises ValueError for an unknown kind, corpus or model, while the model encodes, and if too busy.
    """
    validation.one_of(kind, "The file", FILES)
    chosen = chosen_corpus(state, corpus, key)
    vectors = None if kind == "csv" else vectors_of(state, chosen, model)
    stem = Path(chosen.label.rpartition(" (")[0])
    while stem.suffix.lower() in SUFFIXES:
        stem = stem.with_suffix("")
    names = [str(stem), *([vectors.column.name] if vectors else []), *(["index"] if kind == "zip" else [])]
    if kind == "zip" and not INDEXES.acquire(blocking=False):
        raise ValueError("The server is making other indexes; try again in a few seconds.")
    file = tempfile.TemporaryFile(prefix="cse-app-")  # noqa: SIM115  # its reader closes it
    try:
        if vectors is None:
            file.write(table(chosen).encode())
        elif kind == "npy":
            np.save(file, vectors.rows)
        else:
            write_index(file, chosen, vectors, file_stem(str(stem)) or "corpus")
    except BaseException:
        file.close()
        raise
    finally:
        if kind == "zip":
            INDEXES.release()
    file.seek(0)
    return f"{file_stem(*names) or 'corpus'}.{kind}", file


def vectors_of(state: AppState, chosen: ChosenCorpus, model: Any) -> Vectors:
    """Return the vectors of the model with this name. Raises ValueError for an unknown one, and while it encodes."""
    columns = {column.name: column for column in columns_of(state, chosen)}
    column = columns[validation.one_of(model, "The model", columns)]

    def vectors(column: Column, encoder: Encoder) -> Vectors:
        return Vectors(column, fingerprint_of(encoder), chosen.vectors(column, encoder))

    answers = state.models.apply(vectors, [column])[column.name]
    if isinstance(answers, Failure):
        raise ValueError(answers.reason)
    return answers


def columns_of(state: AppState, chosen: ChosenCorpus) -> list[Column]:
    """Return the columns that may have vectors of a corpus."""
    return list(dict.fromkeys([*(chosen.columns or state.models.columns), *chosen.encoded]))


def columns(chosen: ChosenCorpus, *own: str) -> dict[str, Sequence[Any]]:
    """Return the texts and their further columns, whose names are not "text" and none of the `own` ones."""
    cells = chosen.cells or ({"label": chosen.labels} if chosen.labels is not None else {})
    named: dict[str, Sequence[Any]] = {TEXT: chosen.texts}
    for name, values in cells.items():
        named[free_name(name, (*own, *named))] = values
    return named


def table(chosen: ChosenCorpus) -> str:
    """Return the texts, with the numbers of their rows and their further columns, as CSV."""
    rows = {ROW: chosen.numbers, **columns(chosen, ROW)}
    return csv_text([*rows], zip(*rows.values(), strict=True))


def write_index(file: IO[bytes], chosen: ChosenCorpus, vectors: Vectors, name: str) -> None:
    """Write an index folder of the texts with their rows and columns, zipped, as `cse search` opens it."""
    import pyarrow as pa

    from index import BuildSettings, VectorIndex

    column = vectors.column
    settings = BuildSettings(
        model=Path(column.model).name if Path(column.model).is_absolute() else column.model,  # no path of the server
        pooling=column.pooling, family=column.family, fingerprint=vectors.fingerprint, corpus=chosen.label,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="cse-app-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary, "index")
        rows = Corpus(chosen.label, pa.table(columns(chosen)), np.array(chosen.numbers, np.int64), TEXT)
        VectorIndex.build([(rows, vectors.rows)], folder, settings=settings)
        with zipfile.ZipFile(file, "w") as archive:
            for path in sorted(folder.rglob("*")):
                archive.write(path, f"{name}/{path.relative_to(folder)}")
