"""Rows of .csv, .tsv and .jsonl tables, read with the standard library: cells are plain text.

Nothing is converted to a number or a missing value, and a row that cannot be read is an error, never skipped.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from cse.corpus.files import text_lines

JSON_LINES = ".jsonl"
USUAL_COLUMNS = ("sentence", "text")
DELIMITED: dict[str, dict[str, Any]] = {
    ".csv": {"delimiter": ","},
    ".tsv": {"delimiter": "\t", "quoting": csv.QUOTE_NONE},
}
ROW_CURES = {
    ".csv": 'close every quote, write a quote inside a quoted cell as "", and end rows with a newline',
    ".tsv": "shorten the cell, and end rows with a newline",
}

SEPARATORS = {".csv": "comma", ".tsv": "tab"}
EXTRA_CELL_CURES = {
    ".csv": "quote cells that hold a separator",
    ".tsv": "replace tabs and line breaks in cells, which quotes do not protect in a .tsv",
}  # cures for a row of too many cells
# A .csv of a spreadsheet whose numbers have decimal commas: quoted or single words between semicolons.
SEMICOLONS = re.compile(r'(\w+|"[^"]+")(;(\w+|"[^"]+"))+')

Rows = Iterator[tuple[str, dict[str, Any]]]  # position of a row, for errors, and its cells by column


def delimited(suffix: str, name: str, has_header: bool) -> tuple[list[str], Rows]:
    """Return the column names and the rows of the table `name`, of the kind `suffix` (.csv or .tsv).

    The first row is the header. Unless `has_header`, a single column may have none, and is then called "sentence"; so
    may a .tsv of labels (one word) and texts (more), as the evaluation reads it, whose columns are "label", "sentence".
    Blank rows are skipped, cells stripped. Raises ValueError with the line for a row that cannot be read, for one of
    another width than the first, for a first row of one word that may be a header or a sentence, and for a .csv whose
    header has other separators than commas or semicolons.
    """
    path = Path(name)
    rows = _cells(path, suffix)
    first = next(rows, None)
    if first is None:
        return [], iter(())
    line, names = first
    if len(names) == 1 and re.fullmatch(r"\w+([,;|\t]\w+)+", names[0]):
        raise ValueError(
            f"{path}: line {line} has no {SEPARATORS[suffix]} in {names[0]!r}; separate cells by {SEPARATORS[suffix]}s"
        )
    if len(names) == 1 and not has_header and names[0].lower() not in USUAL_COLUMNS:
        if re.fullmatch(r"\w+", names[0]):
            raise ValueError(
                f"{path}: line {line}: {names[0]!r} may be the column's name or a sentence; "
                f"pass `column` {names[0]!r} if it is the name, or give a .txt file"
            )
        rows, names = chain([first], rows), [USUAL_COLUMNS[0]]
    elif suffix == ".tsv" and not has_header and is_labelled(names):
        rows, names = chain([first], rows), ["label", USUAL_COLUMNS[0]]
    return names, _named(path, names, rows, suffix)


def numbered(path: Path, suffix: str) -> tuple[list[str], Rows]:
    """Return the numbers of the columns, "1", "2", …, and the rows of a table without a header; else as `delimited`.

    Raises ValueError for a first row of several cells of one word each, which is a header.
    """
    rows = _cells(path, suffix)
    first = next(rows, None)
    if first is None:
        return [], iter(())
    if len(first[1]) > 1 and all(re.fullmatch(r"[^\W\d]\w*", cell) for cell in first[1]):
        raise ValueError(
            f"{path}: line {first[0]} looks like a header: {', '.join(first[1])}; give the column by its name, or move "
            "another row to the top if this one is a text"
        )
    names = [str(number) for number, _ in enumerate(first[1], start=1)]
    return names, _named(path, names, chain([first], rows), suffix)


def is_labelled(row: Sequence[str]) -> bool:
    """True if two cells can only be a label of one word and a text of several, and no header."""
    return len(row) == 2 and len(row[0].split()) == 1 and len(row[1].split()) > 1 and not names_text(row)


def names_text(row: Sequence[str]) -> bool:
    """True if the last cell of a row is a usual name of a column of texts, so that the row is a header."""
    return row[-1].lower() in USUAL_COLUMNS


def _cells(path: Path, suffix: str) -> Iterator[tuple[int, list[str]]]:
    """Yield every row that is not blank, with the number of its first line; "" in quotes is a row of one column.

    A .csv whose first line holds names between semicolons has semicolons throughout.
    """
    lines, head, options = text_lines(path, keep_ends=True), [""], DELIMITED[suffix]
    while not head[-1].strip() and (line := next(lines, None)) is not None:
        head.append(line)
    if suffix == ".csv" and SEMICOLONS.fullmatch(head[-1].strip()):
        options = {**options, "delimiter": ";"}
    reader = csv.reader(chain(head[1:], lines), strict=True, **options)
    begins, width = 1, 0
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if cells not in ([], [""]) or (row == [""] and width == 1):
                width = len(cells)
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        reason = str(error).split(" - ")[0]  # the rest is advice to programmers
        raise ValueError(f"{path}: line {begins}: cannot read this row ({reason}); {ROW_CURES[suffix]}") from error


def _named(path: Path, names: list[str], rows: Iterator[tuple[int, list[str]]], suffix: str) -> Rows:
    for line, cells in rows:
        if len(cells) != len(names):
            raise ValueError(
                f"{path}: line {line} has {len(cells)} cells, not {len(names)} as the first row; fix the row, or "
                f"{EXTRA_CELL_CURES[suffix]}"
            )
        yield f"line {line}", dict(zip(names, cells, strict=True))


def json_lines(name: str, has_header: bool = True) -> tuple[list[str], Rows]:
    """Return the keys of the first object of the .jsonl file `name`, and its rows; a missing value is None.

    Objects have keys, so `has_header` changes nothing.

    Raises ValueError with the line if it is no JSON object.
    """
    rows = _objects(Path(name))
    first = next(rows, None)
    if first is None:
        return [], iter(())
    names = list(first[1])
    missing: dict[str, Any] = dict.fromkeys(names)
    return names, ((where, {**missing, **row}) for where, row in chain([first], rows))


def _objects(path: Path) -> Rows:
    number = 0  # of the row; blank lines do not count
    for at, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        number += 1
        try:
            row = json.loads(line)
            if "\\u" in line:
                json.dumps(row, ensure_ascii=False).encode()  # half of a surrogate pair is an error
        except (ValueError, RecursionError) as error:
            reason = str(error)[:160]
            raise ValueError(f"{path}: line {at}: cannot read it as JSON ({reason}); fix or remove it") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}: line {at} holds a {type(row).__name__}, not an object with columns as keys")
        yield f"row {number}", row


PARQUET_BATCH_ROWS = 256  # read at once


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, cells by column. Texts that repeat are stored once, and rows are made one at a time.

    Raises what pyarrow raises for a file that cannot be read.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        names = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
    with ParquetFile(path, read_dictionary=names) as file:
        for batch in file.iter_batches(batch_size=PARQUET_BATCH_ROWS):
            for row in range(batch.num_rows):
                yield {name: batch.column(name)[row].as_py() for name in batch.schema.names}
