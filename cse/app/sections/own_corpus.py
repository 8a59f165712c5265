"""A visitor's own sentences, read from a file or pasted lines and indexed by every model, in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.app import validation
from cse.app.models.corpora import OWN_KEY, Corpus, Opener, temporary_index
from cse.app.models.models import Column, Failure, Models, error_line
from cse.app.models.own_corpora import Built, Step
from cse.text.tables import DELIMITED

if TYPE_CHECKING:
    from cse.encoding.encoder import Encoder
    from index.store import VectorIndex

MOST_SENTENCES = 5_000
BLOCK = 64  # sentences encoded before other requests may use the model
PAUSE = 0.01  # seconds between blocks, so that a waiting thread gets the lock
SUFFIXES = (".txt", ".csv", ".tsv")
SEEN = 5  # rows of a table shown for the choice of its column
FACTORIES = {"Flat": "Flat: exact", "HNSW32,Flat": "HNSW32,Flat: approximate", "SQ8": "SQ8: a quarter of the memory"}


def opened(path: str) -> tuple[list[str], list[list[str]], str | None]:
    """Return the columns of an uploaded table, its first rows, and the column of its sentences if that is clear.

    There are no columns if there is nothing to choose: in a text file, and in a table of one column of sentences.
    Raises ValueError for a file that cannot be read; the message has the file's name without its folder.
    """
    from cse.text.sentences import first_rows, usual_column

    file = Path(path)
    with named(file):
        if file.suffix.lower() not in SUFFIXES:
            raise ValueError(f"{file}: give a file of the kind {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")
        if file.stat().st_size > validation.MAX_FILE_BYTES:
            raise ValueError(f"{file}: has more than {validation.MAX_FILE_BYTES // 2**20} MB; give a part of it.")
        if file.suffix.lower() in DELIMITED:
            names, rows = first_rows(file, SEEN)
            if len(names) > 1 or " " not in "".join(names):  # a single word may be a heading
                return list(dict.fromkeys(names)), rows, usual_column(names)
        bounded(file)
    return [], [], None


def uploaded(path: str, column: str | None = None) -> list[str]:
    """Return the sentences of an uploaded file; of a table, those of `column` or the usual one. Raises as `opened`."""
    file = Path(path)
    names, _, usual = opened(path)
    chosen = column or usual
    with named(file):
        if names and chosen not in names:
            raise ValueError(f"{file}: {column_question(names, chosen)}")
        return bounded(file, chosen if names else None)


def column_question(names: list[str], chosen: str | None) -> str:
    """Return a message that asks for the column of the sentences."""
    wrong = f"no column {chosen!r}; " if chosen else ""
    if len(names) == 1:
        return f"{wrong}choose {names[0]!r} if it is the column's name, or give a {SUFFIXES[0]} file."
    return f"{wrong}choose the column of the sentences: {', '.join(names[:-1])} or {names[-1]}."


@contextmanager
def named(file: Path) -> Iterator[None]:
    """Reduce the file's path to its name in the messages of errors."""
    try:
        yield
    except FileNotFoundError as error:  # the server deletes files that were never indexed
        raise ValueError(f"{file.name}: is no longer on the server; upload it again.") from error
    except ValueError as error:
        raise ValueError(str(error).replace(str(file), file.name)) from error


def bounded(file: Path, column: str | None = None) -> list[str]:
    """Return the sentences of a file. Raises ValueError if there are none or too many."""
    from cse.text.sentences import sentences

    found = list(islice(sentences(file, column), MOST_SENTENCES + 1))
    if not found:
        raise ValueError(f"{file}: no sentence in it; give a sentence a line.")
    if len(found) > MOST_SENTENCES:
        raise ValueError(f"{file}: more than {MOST_SENTENCES:,} sentences; give a part of it.")
    return found


def sentences_of(path: str | None, lines: str, column: str | None = None) -> list[str]:
    """Return the sentences of the uploaded file if there is one, otherwise the pasted lines."""
    if path is None:
        return validation.lines(lines, 1, MOST_SENTENCES)
    return uploaded(path, validation.text(column, "The column") if column else None)


def indexing(models: Models, texts: Sequence[str], factory: str) -> Iterator[Step | Built]:
    """Return the steps of indexing texts by every model, then the corpus; a failed model raises when searched.

    Between two steps other requests may use the models, and the caller may stop. The models are those of the visitor
    who calls this, in whatever thread the steps run. Raises FieldError for an unknown `factory`, at once.
    """
    return _steps(models, models.columns, texts, validation.one_of(factory, "The index", FACTORIES))


def _steps(models: Models, columns: Sequence[Column], texts: Sequence[str], factory: str) -> Iterator[Step | Built]:
    from index import BuildSettings

    built = dict[Column, "VectorIndex | Failure"]()
    for place, column in enumerate(columns):
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
                settings = BuildSettings(factory=factory, model=column.model, corpus=OWN_KEY)
                built[column] = temporary_index(texts, np.concatenate(blocks), settings)
            except ValueError as error:
                built[column] = Failure(error_line(error))
    corpus = Corpus(OWN_KEY, f"Your sentences ({len(texts):,})", columns, opener(built))
    yield Built(corpus, sum(size_of(index) for index in built.values() if not isinstance(index, Failure)))


def encoded(models: Models, column: Column, texts: Sequence[str]) -> np.ndarray | Failure:
    """Return the column's vectors (N, d) of N texts."""
    return models.apply(lambda _, encoder: encoder.encode(texts), [column])[column.name]


def size_of(index: VectorIndex) -> int:
    """Return the size in bytes of an index's files, which stay mapped."""
    return sum(record["bytes"] for record in index.manifest.files.values())


def opener(built: dict[Column, VectorIndex | Failure]) -> Opener:
    """Return a function that returns a column's index, or raises ValueError with the reason there is none."""

    def open_built(column: Column, encoder: Encoder) -> VectorIndex:
        index = built[column]
        if isinstance(index, Failure):
            raise ValueError(index.reason)
        return index

    return open_built
