"""Texts from an uploaded file or pasted lines, with a label each if a column of labels is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from cse.app import validation
from cse.corpus.sources import JSON, TABLES, UNPACKED

MOST_TEXTS, MOST_CHARACTERS = 50_000, 16_000_000
MOST_UNPACKED = 128 * 2**20  # bytes of a compressed table
SUFFIXES = (".txt", *(suffix for suffix in TABLES if suffix != JSON))
T = TypeVar("T", bound="tuple[Any, ...]")
MOST_HEADER = 100_000  # characters of the columns' names, which the server keeps for each session as choices
SEEN = 5  # rows of a file shown for the choice of its columns


class Preview(NamedTuple):
    """The columns of a file and its first rows; `text` is the column of the texts if that is clear.

    There are no columns if there is nothing to choose: in a text file, and in a table of one column of sentences.
    """

    columns: list[str]
    rows: list[list[str]]
    text: str | None = None


def preview(path: str) -> Preview:
    """Return the preview of an uploaded file.

    Raises ValueError for a file that cannot be read; the message has the file's name without its folder.
    """
    from cse.corpus.labelled import labelled_texts
    from cse.corpus.sentences import first_rows, usual_column

    file = Path(path)
    with named(file):
        check(file)
        if file.suffix.lower() in TABLES:
            names, rows = first_rows(file, SEEN)
            if len(names) > 1 or " " not in "".join(names):  # a single word may be a heading
                columns = list(dict.fromkeys(names))
                if (length := sum(map(len, columns))) > MOST_HEADER:
                    raise ValueError(
                        f"{file}: the names of its columns have {length:,} characters; give at most {MOST_HEADER:,}."
                    )
                return Preview(columns, rows, usual_column(columns))
        return Preview([], [[row.text] for row in islice(labelled_texts(file).rows, SEEN)])


def check(file: Path) -> None:
    """Raise ValueError for a file of another kind or size."""
    if file.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{file}: give a file of the kind {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")
    if file.stat().st_size > validation.MAX_FILE_BYTES:
        raise ValueError(f"{file}: has more than {validation.MAX_FILE_BYTES // 2**20} MB; give a part of it.")
    unpacked = UNPACKED.get(file.suffix.lower())
    if unpacked and unpacked(file) > MOST_UNPACKED:
        raise ValueError(f"{file}: unpacks to more than {MOST_UNPACKED // 2**20} MB; give a part of it.")


class FileTexts(NamedTuple):
    """The texts of a file, their labels if it has some, and their rows in it, counted from 1 without blank lines.

    Rows `without_text` were left out.
    """

    texts: list[str]
    labels: list[str] | None
    rows: list[int]
    without_text: int


def file_texts(path: str, column: str | None, labels: str | None) -> FileTexts:
    """Return the texts of an uploaded file and their labels: of a table, the cells of `column` and of `labels`.

    Raises ValueError as `preview`, for an unknown column, and for a wrong number of texts.
    """
    from cse.corpus.labelled import labelled_texts

    file, seen = Path(path), preview(path)
    with named(file):
        chosen = column or seen.text
        if seen.columns and chosen not in seen.columns:
            raise ValueError(f"{file}: {column_question(seen.columns, chosen)}")
        read = labelled_texts(file, chosen if seen.columns else None, labels if seen.columns and labels else None)
        rows = bounded((row.text, row.label, row.row) for row in read.rows)
        if not rows:
            raise ValueError(f"{file}: no text in it; give a text a line.")
    named_labels = [label for _, label, _ in rows] if labels else None
    return FileTexts([text for text, *_ in rows], named_labels, [row for *_, row in rows], read.without_text)


def bounded(rows: Iterable[T]) -> list[T]:
    """Return rows that begin with a text and its label. Raises ValueError for too many or too long ones."""
    found, characters = [], 0
    for row in rows:
        found.append(row)
        characters += len(row[0]) + len(row[1])
        if len(found) > MOST_TEXTS:
            raise ValueError(f"The file has more than {MOST_TEXTS:,} texts; give a part of it.")
        if characters > MOST_CHARACTERS:
            raise ValueError(f"The file has more than {MOST_CHARACTERS:,} characters of text; give a part of it.")
    return found


def column_question(names: list[str], chosen: str | None) -> str:
    """Return a message that asks for the column of the texts."""
    wrong = f"no column {chosen!r}; " if chosen else ""
    if len(names) == 1:
        return f"{wrong}choose {names[0]!r} if it is the column's name, or give a {SUFFIXES[0]} file."
    return f"{wrong}choose the column of the texts: {', '.join(names[:-1])} or {names[-1]}."


@contextmanager
def named(file: Path) -> Iterator[None]:
    """Reduce the file's path to its name in the messages of errors."""
    try:
        yield
    except FileNotFoundError as error:  # the server deletes files that were never used
        raise ValueError(f"{file.name}: is no longer on the server; upload it again.") from error
    except ValueError as error:
        raise ValueError(str(error).replace(str(file), file.name)) from error
