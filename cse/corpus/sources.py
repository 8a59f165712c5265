"""Sources of text: a text file, a table, or a dataset on the hub, with the rows of the last two.

Text, .csv, .tsv and .jsonl files are streamed with the standard library, .parquet files with pyarrow, .json files and
hub ids through `datasets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from cse.corpus.files import COMPRESSED, DAMAGED, begins_with_text
from cse.corpus.tables import DELIMITED, JSON_LINES, Rows, delimited, json_lines, numbered, parquet_rows
from cse.files import hub
from cse.files.writing import check_regular

JSON, PARQUET = ".json", ".parquet"
Reader = Callable[[str, bool], tuple[list[str], Rows]]  # `Table.rows` of the file of a name


def loaded(rows: Callable[[Path], Iterator[dict[str, Any]]]) -> Reader:
    """Return the reader of a format whose `rows` a library yields, each a dictionary of cells by column."""
    return lambda name, _: _columns(name, rows(Path(name))) if Path(name).stat().st_size else ([], iter(()))


def json_table(name: str, has_header: bool) -> tuple[list[str], Rows]:
    """Return the column names and the rows of a .json file. Raises ValueError if it cannot be read."""
    if not begins_with_text(Path(name)):
        raise ValueError(f"{name}: holds NUL bytes; give a text table, not a binary file")
    return loaded(lambda path: _streamed("json", {"data_files": str(path)}))(name, has_header)


READERS: dict[str, Reader] = {
    **{suffix: partial(delimited, suffix) for suffix in DELIMITED},
    JSON_LINES: json_lines, JSON: json_table, PARQUET: loaded(parquet_rows),
}  # fmt: skip
TABLES = tuple(READERS)
WORKBOOKS = (".xlsx", ".xls", ".ods")


@dataclass(frozen=True)
class TextFile:
    """A file of one sentence per line."""

    name: str


@dataclass(frozen=True)
class Table:
    """A file of one of `TABLES`; `suffix` is without that of a compression."""

    name: str
    suffix: str

    def rows(self, has_header: bool) -> tuple[list[str], Rows]:
        """Return the column names and the rows; a .csv or .tsv of one column may lack the header unless `has_header`.

        An empty file has no columns. Raises ValueError for a file that cannot be read.
        """
        check_regular(Path(self.name))
        return READERS[self.suffix](self.name, has_header)

    def numbered_rows(self) -> tuple[list[str], Rows]:
        """Return the column numbers from "1" and the rows of a .csv or .tsv without a header. Raises ValueError."""
        path = Path(self.name)
        check_regular(path)
        if self.suffix not in DELIMITED:
            raise ValueError(f"{self.name}: its columns have names; give a column by its name, not its number")
        return numbered(path, self.suffix)


@dataclass(frozen=True)
class HubDataset:
    """A dataset on the hub, by its id."""

    name: str

    def rows(self) -> tuple[list[str], Rows]:
        """Return the column names and the rows of its training split. Raises ValueError if it cannot be read."""
        if not hub.reachable():
            raise ValueError(f"{self.name}: no such file, and the data hub cannot be reached")
        return _columns(self.name, _streamed(self.name, {}))


Source = TextFile | Table | HubDataset


def named_rows(source: Table | HubDataset, columns: Sequence[str]) -> tuple[list[str], Rows]:
    """Return the columns and rows of a table, by number where `columns` holds numbers that are no names."""
    if odd := [name for name in columns if not isinstance(name, str)]:
        raise ValueError(f"{source.name}: a column is {odd[0]!r:.60}, not text; give its name, or its number as '1'")
    if isinstance(source, HubDataset):
        return source.rows()
    names, rows = source.rows(has_header=bool(columns))
    numbers = [name for name in columns if name.isdecimal() and name not in names]
    return source.numbered_rows() if names and numbers else (names, rows)


def source_of(text: str | Path) -> Source:
    """Return the source that a path or hub id names.

    A table is known by its suffix. Any other name is a text file if it exists, ends in .txt or .text, or has no "/".
    Raises ValueError for a spreadsheet's workbook.
    """
    name, path = str(text), Path(text)
    suffix = (path.with_suffix("") if path.suffix.lower() in COMPRESSED else path).suffix.lower()
    if suffix in WORKBOOKS:
        raise ValueError(f"{name}: workbooks are not read; save the sheet as .csv in UTF-8")
    if suffix in TABLES:
        return Table(name, suffix)
    if path.exists() or suffix in (".txt", ".text") or "/" not in name:
        return TextFile(name)
    return HubDataset(name)


def _columns(name: str, stream: Iterator[dict[str, Any]]) -> tuple[list[str], Rows]:
    """Return the column names and the rows of a source that a library reads."""
    rows = _readable(name, stream)
    first = next(rows, None)
    if first is None:
        return [], iter(())
    return list(first), ((f"row {number}", row) for number, row in enumerate(chain([first], rows), start=1))


def _streamed(loader: str, options: dict[str, str]) -> Iterator[dict[str, Any]]:
    from datasets import load_dataset
    from datasets.utils.logging import CRITICAL, disable_progress_bar, set_verbosity

    disable_progress_bar()
    set_verbosity(CRITICAL)  # the error repeats what it would log
    yield from load_dataset(loader, split="train", streaming=True, **options)


def _readable(name: str, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield `rows`; turn any failure of `datasets` and the libraries below it into one line that names the source."""
    try:
        yield from rows
    except (
        OSError,
        ValueError,  # those of pandas and Arrow, too
        KeyError,
        NotImplementedError,
        RuntimeError,  # of `datasets`
        *DAMAGED,
    ) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
        known = ", ".join((".txt", *TABLES))
        raise ValueError(f"cannot read {name!r} ({reason}); give a file ({known}) or a hub id") from error
