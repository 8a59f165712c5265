"""Sentences of a visitor's own: read from a file or pasted lines, and indexed by every model, in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.app import validation
from cse.app.models.corpora import OWN_KEY, Corpus, Opener, fleeting_index
from cse.app.models.models import Column, Failure, Models, told
from cse.app.models.own_corpora import Built, Step
from cse.text.tables import DELIMITED

if TYPE_CHECKING:
    from cse.encoding.encoder import Encoder
    from index.store import VectorIndex

MOST_SENTENCES = 5_000
BLOCK = 64  # sentences a model encodes before others may ask it
PAUSE = 0.01  # seconds: a thread that waits for a lock needs a moment to wake up
SUFFIXES = (".txt", ".csv", ".tsv")
SEEN = 5  # rows of a table that are shown before its column is chosen
FACTORIES = {"Flat": "Flat: exact", "HNSW32,Flat": "HNSW32,Flat: approximate", "SQ8": "SQ8: a quarter of the memory"}


def opened(path: str) -> tuple[list[str], list[list[str]], str | None]:
    """The columns of an uploaded table, its first rows, and the column of its sentences where that is clear.

    There are no columns where there is nothing to choose: in a text file, and in a table of one column of sentences.
    Raises ValueError for a file that cannot be read, in the name it had, without the folder it lies in here.
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
            if len(names) > 1 or " " not in "".join(names):  # one word may be a heading
                return list(dict.fromkeys(names)), rows, usual_column(names)
        bounded(file)
    return [], [], None


def uploaded(path: str, column: str | None = None) -> list[str]:
    """The sentences of an uploaded file; of a table those of the named or usual `column`. Raises as `opened` does."""
    file = Path(path)
    names, _, usual = opened(path)
    chosen = column or usual
    with named(file):
        if names and chosen not in names:
            raise ValueError(f"{file}: {asked(names, chosen)}")
        return bounded(file, chosen if names else None)


def asked(names: list[str], chosen: str | None) -> str:
    """The question which column holds the sentences, where it was not answered or not well."""
    wrong = f"no column {chosen!r}; " if chosen else ""
    if len(names) == 1:
        return f"{wrong}choose {names[0]!r} if it is the column's name, or give a {SUFFIXES[0]} file."
    return f"{wrong}choose the column of the sentences: {', '.join(names[:-1])} or {names[-1]}."


@contextmanager
def named(file: Path) -> Iterator[None]:
    """Within this, an error says a file's name and not its folder."""
    try:
        yield
    except FileNotFoundError as error:  # the server deletes what was never indexed
        raise ValueError(f"{file.name}: is no longer on the server; upload it again.") from error
    except ValueError as error:
        raise ValueError(str(error).replace(str(file), file.name)) from error


def bounded(file: Path, column: str | None = None) -> list[str]:
    """The sentences of a file, where there are some and not too many."""
    from cse.text.sentences import sentences

    found = list(islice(sentences(file, column), MOST_SENTENCES + 1))
    if not found:
        raise ValueError(f"{file}: no sentence in it; give a sentence a line.")
    if len(found) > MOST_SENTENCES:
        raise ValueError(f"{file}: more than {MOST_SENTENCES:,} sentences; give a part of it.")
    return found


def sentences_of(path: str | None, lines: str, column: str | None = None) -> list[str]:
    """The sentences of the uploaded file where there is one, otherwise the pasted lines."""
    if path is None:
        return validation.lines(lines, 1, MOST_SENTENCES)
    return uploaded(path, validation.text(column, "The column") if column else None)


def indexing(models: Models, texts: Sequence[str], factory: str) -> Iterator[Step | Built]:
    """The steps of indexing texts by every model, and at last the corpus; a model that fails says why when searched.

    Between two steps the models are free for others, and the caller may stop. The models are those of the visitor who
    asks for the steps, whoever runs them. Raises ValueError for an unknown `factory`, at once.
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
                built[column] = fleeting_index(texts, np.concatenate(blocks), settings)
            except ValueError as error:
                built[column] = Failure(told(error))
    corpus = Corpus(OWN_KEY, f"Your sentences ({len(texts):,})", columns, opener(built))
    yield Built(corpus, sum(size_of(index) for index in built.values() if not isinstance(index, Failure)))


def encoded(models: Models, column: Column, texts: Sequence[str]) -> np.ndarray | Failure:
    """The column's vectors (N, d) of some texts."""
    return models.apply(lambda _, encoder: encoder.encode(texts), [column])[column.name]


def size_of(index: VectorIndex) -> int:
    """The bytes of an index's files, which stay mapped."""
    return sum(record["bytes"] for record in index.manifest.files.values())


def opener(built: dict[Column, VectorIndex | Failure]) -> Opener:
    """Gives a column's index, or raises the reason why there is none."""

    def open_built(column: Column, encoder: Encoder) -> VectorIndex:
        index = built[column]
        if isinstance(index, Failure):
            raise ValueError(index.reason)
        return index

    return open_built
