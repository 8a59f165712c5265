"""Sentences from files of any common kind, or from a hub id (`cse.corpus.sources`).

Every error is a `ValueError` that names the file, the line and the cure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from cse.corpus.files import MAX_LINE_BYTES, text_lines
from cse.corpus.sources import TABLES, Table, TextFile, named_rows, source_of
from cse.corpus.tables import USUAL_COLUMNS, Rows


def sentences(source: str | Path, column: str | None = None) -> Iterator[str]:
    """Yield the non-empty sentences of a file or hub id, stripped.

    Text files give their lines; tables (`TABLES`) and hub ids the named `column`.
    """
    table = source_of(source)
    if isinstance(table, TextFile):
        if column is not None:
            raise ValueError(f"{source}: a text file has no column {column!r}; leave out `column` or give a table")
        yield from (line.strip() for line in text_lines(Path(source)) if line.strip())
    else:
        columns = () if column is None else (column,)
        yield from (row[0] for row in table_texts(table.name, *named_rows(table, columns), columns))


def table_texts(source: str, names: list[str], rows: Rows, requested: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the texts of the `requested` columns: those of supervised data, one, or none for the usual one.

    Raises ValueError, which names the `source`, for missing columns and for values that are no texts.
    """
    if not names:
        return
    columns = chosen_columns(source, names, requested)
    for where, row in rows:
        texts = tuple(cell_text(source, where, name, row[name]) for name in columns)
        if len(requested) > 1 and not all(texts):
            raise ValueError(f"{source}: {where} has an empty text; fill or remove it")
        if texts[0]:
            yield texts


def cell_text(source: str, where: str, name: str, value: Any) -> str:
    """Return a table's value as text; numbers are converted, and a missing value is an empty text."""
    if isinstance(value, (list, dict, bytes)):
        kind = type(value).__name__
        raise ValueError(f"{source}: {where} has a {kind} as {name!r}, not text; give a column of texts")
    missing = value is None or value != value  # NaN
    text = "" if missing else str(value).strip()
    if len(text) > MAX_LINE_BYTES:
        raise ValueError(f"{source}: {where} is longer than {MAX_LINE_BYTES:,} characters; cut it into sentences")
    return text


def first_rows(source: Path, count: int) -> tuple[list[str], list[list[str]]]:
    """Return the column names in a table's first row, and the texts of the `count` rows after it. Raises ValueError."""
    table = source_of(source)
    if not isinstance(table, Table):
        raise ValueError(f"{source}: is no table; give one of {', '.join(TABLES)}")
    names, rows = table.rows(has_header=True)
    return names, [
        [cell_text(table.name, where, name, row[name]) for name in names] for where, row in islice(rows, count)
    ]


def usual_column(names: Sequence[str]) -> str | None:
    """Return the column with a usual name of a column of sentences; None if there is none."""
    return next((name for name in USUAL_COLUMNS if name in names), None)


def chosen_columns(source: str, names: list[str], requested: Sequence[str]) -> list[str]:
    """Return the `requested` columns that a table has, by default its column of sentences. Raises ValueError."""
    if not requested:
        usual = usual_column(names)
        requested = [usual] if usual else names if len(names) == 1 else []
        if not requested:
            raise ValueError(f"{source}: which column holds the sentences? Pass `column`, one of {', '.join(names)}")
    if missing := [name for name in requested[:2] if name not in names]:
        raise ValueError(f"{source}: no column {missing[0]!r}; it has {', '.join(names) or 'none'}")
    if twice := [name for name in requested if names.count(name) > 1]:
        raise ValueError(f"{source}: {names.count(twice[0])} columns are called {twice[0]!r}; give each another name")
    return [name for name in requested if name in names]
