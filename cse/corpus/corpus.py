"""A corpus: a table with one column of texts, at most one of labels, and each row's number in its source."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from cse.corpus import formats
from cse.corpus.dialect import TEXT_NAMES, prose
from cse.corpus.formats import Options
from cse.corpus.lines import MAX_LINE_BYTES
from cse.corpus.source import (
    BATCH_ROWS,
    JSON_MARK,
    REPEATS,
    Batch,
    Source,
    as_json,
    is_json,
    named_rows,
    of_dicts,
    plain_batches,
    plain_schema,
    unified,
    values_of,
)
from cse.corpus.words import label_note
from cse.files.writing import is_utf_8

IN_MEMORY = "texts in memory"  # their name in errors and records
MAX_MEMORY_BYTES = 64 << 20  # of a table; a larger one is mapped from a file
SAMPLE_ROWS = 1_000  # from which the column of texts is told
LABEL_ROWS, LABEL_SHARE, LABEL_WORDS = 50, 0.02, 3  # a column of labels: rows, share of distinct cells, words in one
PATH_MARK = {b"cse": b"path"}  # metadata of a column that a dotted path gave
SHOWN_ROWS = 5  # numbers of rows in a message


@dataclass(frozen=True)
class Corpus:
    """Rows of a source in their order.

    `numbers` (n,) int64 counts them as a user's program does: from 1 for the first row of data, a text file by its
    lines. `text` and `label` name columns of the `table`. Rows without a text stay in the table: `texts`, `sentences`,
    `labels` and `rows` leave them out, and position i means the same row in all four. `facts` say how it was read.
    """

    name: str
    table: pa.Table
    numbers: np.ndarray
    text: str
    label: str | None = None
    facts: Sequence[str] = field(default=())
    lines: bool = False

    @classmethod
    def read(
        cls,
        source: str | Path,
        column: str | None = None,
        labels: str | None = None,
        *,
        options: Options | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> Corpus:
        """Read a file of any common format (`cse.corpus.formats`) or a hub id, or its first `limit` rows.

        A table of more than `max_bytes` is refused before more of it is read.

        `column` holds the texts: a name, a number of a table without a header, or a path such as message.content into
        nested values; by default the column called "sentence" or "text", the only one, or the only one of prose.
        Raises ValueError, which names the source and the cure, for what cannot be read or decided.
        """
        rows = formats.read(str(source), options)
        first = next(rows.batches, None)
        header = None if first is None else _header_by(column, rows, first)
        if header is not None:
            rows = formats.read(str(source), replace(options or Options(), header=header))
            first = next(rows.batches, None)
        return _corpus(rows, first, column, labels, options or Options(), limit, max_bytes)

    @classmethod
    def of(
        cls,
        data: Any,
        column: str | None = None,
        labels: str | None = None,
        limit: int | None = None,
        *,
        options: Options | None = None,
    ) -> Corpus:
        """Return a corpus of a path, a hub id, texts, rows as objects, a data frame, a table, a Dataset or a corpus.

        `options` say how to read a file. Raises ValueError as `read`, and for anything else.
        """
        if isinstance(data, Corpus):
            text, label = column or data.text, labels or data.label
            for name in filter(None, (text, label)):
                _check_column(data.name, data.table.schema, name)
            paths = [name for name in (text, label) if name is not None and name not in data.columns]
            batches = _nested(((data.numbers, batch) for batch in data.table.to_batches()), paths)
            table = pa.Table.from_batches([batch for _, batch in batches]) if paths else data.table
            return replace(data, table=table, text=text, label=label)
        if isinstance(data, str | Path):
            return cls.read(data, column, labels, options=options, limit=limit)
        rows = source_in_memory(data.take(limit) if limit and is_stream(data) else data)
        return _corpus(rows, next(rows.batches, None), column, labels, Options(), limit)

    def __len__(self) -> int:
        """The number of rows with a text."""
        return len(self.positions)

    def __iter__(self) -> Iterator[str]:
        """Yield the sentences, so that `Encoder.encode` takes a corpus."""
        return iter(self.sentences)

    @cached_property
    def positions(self) -> np.ndarray:
        """The positions (N,) int64 in the table of the rows with a text."""
        return np.flatnonzero([bool(text.strip()) for text in self._cells(self.text)])

    @property
    def without_text(self) -> int:
        """The number of rows that have no text."""
        return self.table.num_rows - len(self)

    @cached_property
    def texts(self) -> list[str]:
        """The texts as they stand in the source."""
        return [text for text in self._cells(self.text) if text.strip()]

    @property
    def sentences(self) -> list[str]:
        """The texts without blanks at their ends, as they are encoded."""
        return [text.strip() for text in self.texts]

    @cached_property
    def labels(self) -> list[str]:
        """The label of each text, "" for none; all are "" without a column of labels."""
        if self.label is None:
            return [""] * len(self)
        return [cell.strip() for cell in self.cells(self.label)]

    @property
    def rows(self) -> np.ndarray:
        """The number (N,) of each text's row in the source."""
        return self.numbers[self.positions]

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self.table.schema.names)

    @property
    def source_table(self) -> pa.Table:
        """The table with the columns of the source, without those of dotted paths."""
        paths = [entry.name for entry in self.table.schema if (entry.metadata or {}).get(b"cse") == b"path"]
        return self.table.drop_columns(paths) if paths else self.table

    def fields(self, row: int) -> dict[str, Any]:
        """Return the other cells of text `row` (a position among `texts`) by column."""
        position = int(self.positions[row])
        return fields_of(self.table.slice(position, 1).drop_columns([self.text]), 0)

    def row(self, row: int) -> dict[str, Any]:
        """Return text `row` (a position among `texts`) as it leaves: its number, the text, and its other cells."""
        return {"row": int(self.numbers[self.positions[row]]), "text": self.texts[row], "fields": self.fields(row)}

    @property
    def with_text(self) -> Corpus:
        """The corpus of the rows that have a text."""
        return self.take(np.arange(len(self))) if self.without_text else self

    def cells(self, column: str) -> list[str]:
        """Return a column's cells as texts, one for each text. Raises ValueError if there is no such column."""
        _check_column(self.name, self.table.schema, column)
        corpus = self if column in self.columns else Corpus.of(self, column)  # a path into nested values
        cells = list(corpus._cells(column))
        return [cells[position] for position in self.positions.tolist()]

    def take(self, rows: Sequence[int] | np.ndarray) -> Corpus:
        """Return the corpus of some texts, by their positions among `texts`."""
        positions = self.positions[np.asarray(rows, np.int64)]
        first, last = (int(positions.min()), int(positions.max())) if len(positions) else (0, 0)
        part = self.table.slice(first, last - first + 1)  # else Arrow reads the whole of a mapped table
        return replace(self, table=part.take(pa.array(positions - first)), numbers=self.numbers[positions])

    def blocks(self, size: int) -> Iterator[Corpus]:
        """Yield the texts in their order, `size` at a time, as corpora of rows with a text."""
        for start in range(0, self.table.num_rows, size):
            part = replace(self, table=self.table.slice(start, size), numbers=self.numbers[start : start + size])
            if len(part):
                yield part.with_text

    @property
    def heading(self) -> str:
        """The name of the source, its rows and its format."""
        name = self.name if self.name == IN_MEMORY else Path(self.name).name
        rows = f"{self.table.num_rows:,} {'line' if self.lines else 'row'}{'' if self.table.num_rows == 1 else 's'}"
        return ", ".join([f"{name}: {rows}", *self.facts])

    def understood(self) -> str:
        """Return one line that says how the source was read: rows, format, columns, and rows without a text."""
        parts = [self.heading]
        if len(self.columns) > 1:
            labels = f", labels from `{self.label}`" if self.label else ""
            parts.append(f"texts from `{self.text}`{labels}")
        if self.without_text and not self.lines:
            parts.append(f"{self.without_text:,} row{'' if self.without_text == 1 else 's'} without a text")
        return "; ".join(filter(None, [*parts, label_note(self.labels) if self.label else ""]))

    def distinct_sample(self, most: int, seed: int) -> Corpus:
        """Return the first row of each distinct text, or `most` of them drawn at random."""
        first = list({text: row for row, text in reversed(list(enumerate(self.sentences)))}.values())[::-1]
        if len(first) > most:
            first = [first[row] for row in sorted(Random(seed).sample(range(len(first)), most))]
        return self.take(first)

    def check(self, least: int, purpose: str) -> Corpus:
        """Return this corpus. Raises ValueError if it cannot serve a `purpose`, which needs `least` distinct texts."""
        check_texts(self.name, self.sentences, least, purpose)
        return self

    def _cells(self, column: str) -> Iterator[str]:
        """Yield the cells of a column as texts, "" for missing ones. Raises ValueError for a cell that is no text."""
        entry = self.table.schema.field(column)
        values = chain.from_iterable(values_of(entry, chunk) for chunk in self.table.column(column).chunks)
        for number, value in zip(self.numbers, values, strict=True):
            if isinstance(value, list | dict | bytes):
                raise ValueError(
                    f"{self.name}: row {number} has a {type(value).__name__} as {column!r}, not text; give a column of "
                    "texts, or a path into it"
                )
            if isinstance(value, str) and len(value) > MAX_LINE_BYTES:
                raise ValueError(
                    f"{self.name}: row {number} is longer than {MAX_LINE_BYTES:,} characters; cut it into sentences"
                )
            yield "" if value is None or value != value else str(value)  # the second: NaN


def _corpus(
    rows: Source,
    first: Batch | None,
    column: str | None,
    labels: str | None,
    options: Options,
    limit: int | None,
    max_bytes: int | None = None,
) -> Corpus:
    if first is None:
        empty = pa.table({TEXT_NAMES[1]: pa.array([], pa.large_string())})
        return Corpus(rows.name, empty, np.empty(0, np.int64), TEXT_NAMES[1], None, tuple(rows.facts))
    sample, asked = first[1].slice(0, SAMPLE_ROWS), [name for name in (column, labels) if isinstance(name, str)]
    later = [name for name in asked if rows.varies and limit is None and not _has_column(rows.schema, name)]
    text = column if column in later else text_column(rows, sample, column, None if later else labels, options)
    nested = [path for path in (text, labels) if path is not None and path not in rows.schema.names]
    batches = _nested(chain([first], rows.batches), nested)
    numbers, table = _collected(rows.name, batches, limit, max_bytes)
    if labels is not None and labels == text:
        raise ValueError(f"{rows.name}: texts and labels are both in {labels!r}; give another `column` or `labels`")
    facts = list(rows.facts)
    if rows.encoding is not None:
        coding = str(rows.encoding)
        facts += [coding] if coding not in ("utf-8", "utf-8-sig") else []
        if rows.encoding.undecoded:
            numbered = zip(numbers, *(column.to_pylist() for column in table.columns), strict=True)
            odd = [str(row) for row, *cells in numbered if any("\ufffd" in cell for cell in cells if cell)]
            shown = ", ".join(odd[:SHOWN_ROWS]) + (", …" if len(odd) > SHOWN_ROWS else "")
            facts.append(f"{len(odd):,} row{'' if len(odd) == 1 else 's'} with undecoded characters ({shown})")
    corpus = Corpus(rows.name, table, numbers, text, labels, tuple(facts), lines=rows.format == formats.TEXT)
    for name in later:
        _check_column(rows.name, corpus.source_table.schema, name)
    return corpus


def _collected(
    name: str, batches: Iterator[Batch], limit: int | None, max_bytes: int | None
) -> tuple[np.ndarray, pa.Table]:
    """Return the numbers (n,) and the table of all batches, or of `limit` rows; a large table is mapped from files.

    Raises ValueError once the batches have more than `max_bytes`, if that is not None.
    """
    numbers: list[np.ndarray] = []
    tables: list[pa.Table] = []
    kept: list[pa.RecordBatch] = []
    size, rows, unpacked = 0, 0, 0
    for counted, batch in batches:
        unpacked += batch.nbytes
        if max_bytes is not None and unpacked > max_bytes:
            raise ValueError(f"{name}: unpacks to more than {max_bytes >> 20} MB; give a part of it.")
        if limit is not None:
            counted, batch = counted[: limit - rows], batch.slice(0, limit - rows)
        if kept and (size > MAX_MEMORY_BYTES or not kept[0].schema.equals(batch.schema, check_metadata=True)):
            tables.append(_mapped(kept) if size > MAX_MEMORY_BYTES else pa.Table.from_batches(kept))
            kept, size = [], 0
        numbers.append(counted)
        kept.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows == limit:
            break
    tables.append(pa.Table.from_batches(kept))
    table = tables[0] if len(tables) == 1 else unified(tables)
    return np.concatenate(numbers), table


def _mapped(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return a table of batches that is mapped from a temporary file, so that memory need not hold it."""
    handle, path = tempfile.mkstemp(prefix="cse-corpus-", suffix=".arrow")
    os.close(handle)
    try:
        with pa.ipc.new_file(path, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return pa.ipc.open_file(pa.memory_map(path)).read_all()
    finally:
        with suppress(OSError):  # the map keeps its content; Windows keeps the file, too
            os.unlink(path)


def _header_by(column: str | None, rows: Source, first: Batch) -> bool | None:
    """Return whether a table that was read otherwise has a header, as the name of its column says; else None."""
    if column is None or rows.format not in (formats.DELIMITED, formats.XLSX) or column in rows.schema.names:
        return None
    if rows.header is None and str(column).isdecimal():
        return False
    row = [str(entry[0].as_py() or "").strip() for entry in first[1].columns]
    return True if rows.header is False and column in row else None


def text_column(
    rows: Source,
    sample: pa.RecordBatch,
    column: str | None = None,
    labels: str | None = None,
    options: Options = Options(),  # noqa: B008  # frozen
) -> str:
    """Return the column of texts. Raises ValueError where a name is wrong, or where it cannot be told."""
    names = list(rows.schema.names)
    _check_named(rows, {"column": column, "labels": labels})
    if column is not None:
        return column
    if rows.header is None:
        raise ValueError(
            f"{rows.name}: its first row may name the columns: {', '.join(names[:20])}; say which: give `column` a "
            "name or a number, or read it with header=yes or header=no"
        )
    if len(names) == 1:
        word = str(sample.column(0)[0].as_py() or "")
        asked = rows.format == formats.DELIMITED and not rows.header and options.header is None
        if asked and re.fullmatch(r"\w+", word.strip()):
            raise ValueError(
                f"{rows.name}: its first line {word!r} may be the column's name or a sentence; say which: give "
                f"`column` {word!r}, or read it with header=no"
            )
        return names[0]
    spelled = {name.lower(): name for name in names} | {name: name for name in names}
    if usual := next((spelled[name] for name in TEXT_NAMES if spelled.get(name, labels) != labels), None):
        _check_column(rows.name, rows.schema, usual)
        return usual
    others = [name for name in names if name != labels]
    if len(others) == 1:
        return others[0]
    texts = [
        name
        for name in others
        if pa.types.is_large_string(rows.schema.field(name).type)
        and not is_json(rows.schema.field(name))
        and prose([cell or "" for cell in sample.column(name).to_pylist()])
    ]
    if len(texts) == 1:
        return texts[0]
    shown = {name: f" ({str(sample.column(name)[0].as_py() or '')[:20]!r})" for name in names if rows.header is False}
    choices = [name + shown.get(name, "") for name in names]
    choices += [path for name in names if not texts for path in _paths(sample, name)]
    raise ValueError(
        f"{rows.name}: which column holds the texts? Pass `column`, one of {', '.join(choices[:40])}"
        f"{', …' if len(choices) > 40 else ''}, or call one of them {TEXT_NAMES[1]!r}"
    )


def _check_named(rows: Source, options: Mapping[str, str | None]) -> None:
    """Raise ValueError for an option that names no column of a source."""
    names = rows.schema.names
    for option, name in options.items():
        if name is None:
            continue
        if not isinstance(name, str):
            raise ValueError(f"{rows.name}: a column is {name!r:.60}, not text; give its name, or its number as '1'")
        if rows.format == formats.TEXT:
            raise ValueError(f"{rows.name}: a text file has no column {name!r}; leave out `{option}` or give a table")
        if name.isdecimal() and name not in names and rows.header and int(name) <= len(names):
            raise ValueError(
                f"{rows.name}: line 1 looks like a header: {', '.join(names[:20])}; give the column by its name, or "
                "say that it is none: header=no"
            )
        _check_column(rows.name, rows.schema, name)


def _paths(sample: pa.RecordBatch, name: str) -> list[str]:
    """Return the paths to texts within the nested values of a column."""
    entry = sample.schema.field(name)
    if is_json(entry):
        objects = [value for value in values_of(entry, sample.column(name).slice(0, 1)) if isinstance(value, dict)]
        return [f"{name}.{key}" for item in objects for key, value in item.items() if isinstance(value, str)]
    return [f"{name}.{part.name}" for part in entry.type] if pa.types.is_struct(entry.type) else []


def _check_column(source: str, schema: pa.Schema, name: str) -> None:
    if not _has_column(schema, name):
        raise ValueError(f"{source}: no column {name!r}; it has {', '.join(schema.names[:40]) or 'none'}")
    if any((entry.metadata or {}).get(REPEATS) == name.encode() for entry in schema):
        raise ValueError(f"{source}: several columns are called {name!r}; give each another name")


def _has_column(schema: pa.Schema, name: str) -> bool:
    """True if there is a column of this name, or one of nested values that it may be a path into."""
    root = _root(schema, name)
    return root is not None and (root.name == name or is_json(root) or pa.types.is_nested(root.type))


def _root(schema: pa.Schema, path: str) -> pa.Field | None:
    """Return the column at the beginning of a dotted path, which may have dots itself."""
    parts = path.split(".")
    stems = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((schema.field(stem) for stem in stems if stem in schema.names), None)


def _nested(batches: Iterator[Batch], paths: Sequence[str]) -> Iterator[Batch]:
    """Yield batches with a further column for each dotted path into nested values, where they have those."""

    def inner(value: Any, keys: Sequence[str]) -> str | None:
        for key in keys:
            if isinstance(value, Mapping):
                value = value.get(key)
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                return None
        return value if value is None or isinstance(value, str) else as_json(value)

    for numbers, batch in batches:
        for path in paths:
            root = _root(batch.schema, path)
            if root is None or root.name == path:
                continue
            keys = path[len(root.name) + 1 :].split(".")
            cells = [inner(value, keys) for value in values_of(root, batch.column(root.name))]
            column = pa.field(path, pa.large_string(), metadata=PATH_MARK)
            batch = batch.append_column(column, pa.array(cells, pa.large_string()))
        yield numbers, batch


def is_stream(data: Any) -> bool:
    """True for an IterableDataset, which may have no end."""
    return hasattr(data, "column_names") and hasattr(data, "with_format") and not hasattr(data, "__len__")


def is_items(data: object) -> bool:
    """True for a list of items or the like; not for what has columns or keys, such as a data frame or a dataset."""
    columned = any(hasattr(data, name) for name in ("columns", "column_names"))
    return isinstance(data, Iterable) and not (isinstance(data, Mapping | str | bytes | Path) or columned)


def source_in_memory(data: Any) -> Source:
    """Return the rows of texts, objects, a data frame, an Arrow table, a Dataset or a stream of one.

    Raises ValueError for others.
    """
    if is_stream(data):
        return of_dicts(IN_MEMORY, "stream", named_rows(data.with_format(None)))
    if hasattr(data, "column_names") and hasattr(data, "with_format") and not isinstance(data, Mapping):  # a Dataset
        data = data.with_format("arrow")[:] if len(data) else pa.table({name: [] for name in data.column_names})
    elif hasattr(data, "to_arrow"):  # Polars
        data = data.to_arrow()
    elif hasattr(data, "columns") and hasattr(data, "iloc"):  # pandas
        data = _of_frame(data)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        schema = plain_schema(data.schema)
        batches = plain_batches(data.to_batches(BATCH_ROWS), schema)
        return Source(IN_MEMORY, "table", schema, iter(batches))
    if not is_items(data):
        raise ValueError(
            f"data is a {type(data).__name__}; give a list of texts such as a column, one split of a dataset, or a path"
        )
    items = data.to_pylist() if isinstance(data, pa.Array | pa.ChunkedArray) else list(data)
    if not items or not all(isinstance(item, Mapping) for item in items):
        items = [{TEXT_NAMES[1]: check_text(item, number)} for number, item in enumerate(items, 1)]
    return of_dicts(IN_MEMORY, "table", iter(items))


def _of_frame(frame: Any) -> pa.Table:
    """Return a data frame's columns, those of mixed values as JSON."""
    columns, entries = [], []
    for name, cells in frame.items():
        try:
            column = pa.array(cells, from_pandas=True)
            entries.append(pa.field(str(name), column.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            column = pa.array([as_json(value) for value in cells], pa.large_string())
            entries.append(pa.field(str(name), column.type, metadata=JSON_MARK))
        columns.append(column)
    return pa.table(columns, schema=pa.schema(entries))


def check_text(item: Any, number: int, where: str | None = None) -> str:
    """Return a text. Raises ValueError, with its number, unless it is a string that can be written as UTF-8."""
    where = where or f"{IN_MEMORY}: item {number}"
    if not isinstance(item, str):
        raise ValueError(f"{where} is {item!r:.60}, not a text; give a list of texts, or a Dataset")
    if not is_utf_8(item):
        raise ValueError(f"{where} holds half of a surrogate pair: {item!r:.60}; decode it again, or remove it")
    return item


def fields_of(table: pa.Table | pa.RecordBatch, row: int) -> dict[str, Any]:
    """Return one row's cells by column, as JSON can hold them."""
    values = {}
    for entry, column in zip(table.schema, table.columns, strict=True):
        value = column[row].as_py()
        if value is not None and is_json(entry):
            value = json.loads(value)
        if isinstance(value, list | dict):
            value = json.loads(as_json(value) or "null")  # dates within
        elif isinstance(value, float) and not math.isfinite(value):
            value = None if math.isnan(value) else str(value)
        plain = value is None or isinstance(value, str | int | float | list | dict)
        values[entry.name] = value if plain else str(value)
    return values


def free_name(name: str, columns: Iterable[str]) -> str:
    """Return a name for a column of this project beside those of a user: `name`, or one that begins with cse_."""
    taken = set(columns)
    while name in taken:
        name = f"cse_{name}"
    return name


def text_blocks(texts: Iterable[str] | Corpus, size: int) -> Iterator[tuple[Any, list[str]]]:
    """Yield texts, `size` at a time, each block a list or a corpus, with its sentences as they are encoded.

    A Dataset or a stream is read as a corpus.
    """
    texts = Corpus.of(texts) if hasattr(texts, "column_names") else texts
    if isinstance(texts, Corpus):
        yield from ((block, block.sentences) for block in texts.blocks(size))
        return
    stream = iter(texts)
    while block := list(islice(stream, size)):
        yield block, block


def check_texts(source: str | Path, texts: Sequence[str], least: int, purpose: str) -> None:
    """Raise ValueError for texts that cannot serve a `purpose`, which needs `least` distinct ones.

    So do `LABEL_ROWS` rows or more that repeat two or more texts of few words: those are labels.
    """
    if not texts:
        raise ValueError(f"{source}: no text in it")
    distinct = set(texts)
    repeated = len(texts) >= LABEL_ROWS and 1 < len(distinct) <= LABEL_SHARE * len(texts)
    if repeated and all(len(text.split()) <= LABEL_WORDS for text in distinct):
        raise ValueError(
            f"{source}: {len(texts):,} rows hold only {len(distinct)} different short texts, which look like labels; "
            "give the `column` of the texts"
        )
    if len(distinct) < least:
        few = f"only {len(distinct):,} different texts in it"
        if len(distinct) == 1:
            few = "only 1 text in it" if len(texts) == 1 else "all its texts are the same"
        raise ValueError(f"{source}: {few}; {purpose} needs at least {least} different texts")
