"""Tables that leave: CSV, tab-separated, JSON lines or Parquet, with every cell as it came in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa

from cse.corpus.corpus import fields_of, free_name
from cse.corpus.source import as_json, is_json
from cse.files.writing import write_file

CSV, TSV, JSON_LINES, PARQUET = ".csv", ".tsv", ".jsonl", ".parquet"
OUTPUTS = (CSV, TSV, JSON_LINES, PARQUET)
# What a spreadsheet may take for a formula at the start of a cell; the last four are full-width forms of the signs.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def check_output(path: Path, option: str) -> None:
    """Raise ValueError unless a file of this name can be written."""
    if path.suffix.lower() not in OUTPUTS or path.is_dir():
        raise ValueError(f"{path}: give {option} a file name that ends in {', '.join(OUTPUTS[:-1])} or {OUTPUTS[-1]}")


def check_guarded(for_spreadsheets: bool, *paths: Path | None) -> None:
    """Raise ValueError for `for_spreadsheets` if no file is written that spreadsheets read."""
    if for_spreadsheets and not any(path and path.suffix.lower() in (CSV, TSV) for path in paths):
        raise ValueError("`for_spreadsheets` is for files that end in .csv or .tsv, and none is written; leave it out")


def beside(added: Mapping[str, pa.Array], table: pa.Table, last: bool = False) -> pa.Table:
    """Return a table with further columns before its own, or after them if they are to be `last`.

    One whose name the table has already is called cse_NAME: the columns of the source keep theirs.
    """
    used = {name.casefold() for name in table.schema.names}  # SQL does not tell "Row" from "row"
    further = pa.table(list(added.values()), names=[free_name(name, used) for name in added])
    first, second = (table, further) if last else (further, table)
    return pa.table([*first.columns, *second.columns], schema=pa.schema([*first.schema, *second.schema]))


def write_rows(path: Path, table: pa.Table, for_spreadsheets: bool = False) -> None:
    """Write a table whole or not at all, in the format that the file's name says.

    Cells stay as they are; `for_spreadsheets` puts an apostrophe before a cell of a .csv or .tsv that begins as a
    formula. Columns of JSON (`is_json`) are values in JSON lines, and JSON elsewhere.
    """
    suffix = path.suffix.lower()

    def write(fresh: Path) -> None:
        if suffix == PARQUET:
            import pyarrow.parquet as pq

            pq.write_table(table, fresh)
            return
        with fresh.open("w", encoding="utf-8", newline="") as file:
            if suffix == JSON_LINES:
                for batch in table.to_batches(1024):
                    rows = (fields_of(batch, row) for row in range(batch.num_rows))
                    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            else:
                delimiter = "\t" if suffix == TSV else ","
                _write_delimited(file, table.schema.names, _text_rows(table), delimiter, for_spreadsheets)

    write_file(path, write)


def with_vectors(table: pa.Table, vectors: np.ndarray) -> pa.Table:
    """Return a table with vectors (n, d) float32 as its last column, lists of a fixed size."""
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    return beside({"vector": flat}, table, last=True)


def _text_rows(table: pa.Table) -> Iterator[Sequence[str]]:
    """Yield the rows of a table as texts; of a column of JSON its texts as they are, other values as JSON."""
    for batch in table.to_batches(1024):
        columns = zip(table.schema, batch.columns, strict=True)
        yield from zip(
            *([_cell(value, is_json(entry)) for value in column.to_pylist()] for entry, column in columns), strict=True
        )


def _cell(value: Any, json_text: bool) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else str(as_json(value) if isinstance(value, list | dict) else value)
    return str(json.loads(text) if json_text and text.startswith('"') else text)


def _write_delimited(
    file: TextIO, columns: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str, for_spreadsheets: bool
) -> None:
    """Write rows under their header; all cells of a row are quoted where one has a carriage return.

    Before Python 3.13 `csv` leaves such a cell bare if rows do not end in one, and readers take it for a line's end.
    """
    usual = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    quoted = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in chain([columns], rows):
        if for_spreadsheets:
            row = [guarded(cell) if isinstance(cell, str) else cell for cell in row]
        (quoted if any("\r" in cell for cell in row if isinstance(cell, str)) else usual).writerow(row)


def guarded(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: an apostrophe before a first character that begins one."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]], for_spreadsheets: bool = False) -> str:
    """Return rows under their header as CSV; None is an empty cell."""
    file = io.StringIO()
    _write_delimited(file, columns, rows, ",", for_spreadsheets)
    return file.getvalue()
