"""Exports of a corpus: a model's vectors (.npy), its index (.zip), and the texts as a table (.csv)."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cse.app import validation
from cse.app.corpus.chosen import ChosenCorpus, chosen_corpus
from cse.app.corpus.reading import SUFFIXES
from cse.app.drawing.components import file_stem
from cse.app.models.models import Column, Failure, fingerprint_of
from cse.corpus.corpus import free_name
from cse.corpus.output import csv_text

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.encoder.encoder import Encoder

ROWS = 1024  # sent at once
MOST_INDEXES = BoundedSemaphore(2)  # built at once
MODEL = "The model"


class Sent(NamedTuple):
    """A file: its name, its MIME type and its bytes, made as they are sent."""

    name: str
    kind: str
    parts: Iterator[bytes]


class Vectors(NamedTuple):
    """A column's vectors (N, d) of a corpus, and its fingerprint."""

    column: Column
    fingerprint: str
    rows: np.ndarray


def vectors_of(state: AppState, chosen: ChosenCorpus, model: Any) -> Vectors:
    """Return the vectors of the model with this name. Raises ValueError for an unknown one, and while it encodes."""
    columns = {column.name: column for column in columns_of(state, chosen)}
    column = columns[validation.one_of(model, MODEL, columns)]

    def vectors(column: Column, encoder: Encoder) -> Vectors:
        return Vectors(column, fingerprint_of(encoder), chosen.vectors(column, encoder))

    found = state.models.apply(vectors, [column])[column.name]
    if isinstance(found, Failure):
        raise ValueError(found.reason)
    return found


def columns_of(state: AppState, chosen: ChosenCorpus) -> list[Column]:
    """Return the columns that may have vectors of a corpus."""
    return list(dict.fromkeys([*(chosen.columns or state.models.columns), *chosen.encoded]))


def table(state: AppState, chosen: ChosenCorpus, model: Any) -> Sent:
    """Return the texts, with the numbers of their rows and their further columns, as a table."""
    columns: dict[str, Any] = {"row": chosen.numbers, "text": chosen.texts}
    if chosen.table is not None:
        columns |= {free_name(name, columns): chosen.table[name].to_pylist() for name in chosen.table.schema.names}
    elif chosen.labels is not None:
        columns["label"] = chosen.labels
    rows = zip(*columns.values(), strict=True)
    return Sent(f"{stem(chosen)}.csv", "text/csv", iter([csv_text([*columns], rows).encode()]))


def array(state: AppState, chosen: ChosenCorpus, model: Any) -> Sent:
    """Return a model's vectors as an array (N, d) float32 of numpy."""
    found = vectors_of(state, chosen, model)
    return Sent(f"{stem(chosen, found.column)}.npy", "application/octet-stream", npy(found.rows))


def npy(rows: np.ndarray) -> Iterator[bytes]:
    """Yield an array as the bytes of a .npy file."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(rows))
    yield head.getvalue()
    for start in range(0, len(rows), ROWS):
        yield rows[start : start + ROWS].tobytes()


def index(state: AppState, chosen: ChosenCorpus, model: Any) -> Sent:
    """Return an index folder of a model's vectors, zipped, as `cse search` opens it. Raises ValueError if too busy."""
    found, name = vectors_of(state, chosen, model), stem(chosen)
    if not MOST_INDEXES.acquire(blocking=False):
        raise ValueError("The server is making other indexes; try again in a few seconds.")
    try:
        packed = zipped(chosen, found, name)
    finally:
        MOST_INDEXES.release()
    return Sent(f"{stem(chosen, found.column)}-index.zip", "application/zip", read(packed))


def read(file: Any) -> Iterator[bytes]:
    """Yield the bytes of a file, and close it."""
    with file:
        yield from iter(lambda: file.read(1 << 20), b"")


def zipped(chosen: ChosenCorpus, found: Vectors, name: str) -> Any:
    """Return an open file, deleted when it is closed, with the folder of an index of the vectors."""
    from index import BuildSettings, VectorIndex

    column = found.column
    settings = BuildSettings(
        model=Path(column.model).name if Path(column.model).is_absolute() else column.model,  # no path of the server
        pooling=column.pooling, family=column.family, fingerprint=found.fingerprint, corpus=chosen.label,
    )  # fmt: skip
    file = tempfile.TemporaryFile(prefix="cse-app-")  # noqa: SIM115  # its reader closes it
    with tempfile.TemporaryDirectory(prefix="cse-app-", ignore_cleanup_errors=True) as place:
        folder = Path(place) / "index"
        VectorIndex.build([(list(chosen.texts), found.rows)], folder, settings=settings)
        with zipfile.ZipFile(file, "w") as archive:
            for path in sorted(folder.rglob("*")):
                archive.write(path, f"{name}/{path.relative_to(folder)}")
    file.seek(0)
    return file


def stem(chosen: ChosenCorpus, column: Column | None = None) -> str:
    """Return a file name without its suffix."""
    name = chosen.label.rpartition(" (")[0]
    bare = Path(name)
    while bare.suffix.lower() in SUFFIXES:
        bare = bare.with_suffix("")
    return file_stem(str(bare), column.name if column else "") or "corpus"


FILES: dict[str, tuple[str, Callable[[Any, ChosenCorpus, Any], Sent]]] = {  # the button of each kind of file
    "npy": ("Vectors (.npy)", array),
    "zip": ("Index (.zip)", index),
    "csv": ("Table (.csv)", table),
}


def taken(state: AppState, kind: Any, corpus: Any, key: Any, model: Any) -> Sent:
    """Return a file of a kind. Raises ValueError for an unknown kind, corpus or model, and while it encodes."""
    _, make = FILES[validation.one_of(kind, "The file", FILES)]
    return make(state, chosen_corpus(state, corpus, key), model)
