"""Columns and rows of a source as batches of Arrow, whatever its format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count, islice
from typing import Any

import numpy as np
import pyarrow as pa

from cse.corpus.lines import Encoding

BATCH_ROWS = 16_384
MAX_BATCH_BYTES = 64 << 20  # of texts that are stored once for several rows
MAX_COLUMNS = 2_000
JSON_MARK = {b"cse": b"json"}  # metadata of a column whose cells are JSON
REPEATS = b"repeats"  # the key of the name of another column, which a column has as well

Batch = tuple[np.ndarray, pa.RecordBatch]  # the number of each row (n,), and its cells


@dataclass
class Source:
    """The columns of a source and its rows, which can be read once; `facts` say how it was read.

    `encoding` is that of a text format, which knows its undecoded lines after the last batch; `header` says whether the
    names of the columns are its first row; None if that is not sure.
    """

    name: str
    format: str
    schema: pa.Schema
    batches: Iterator[Batch]
    facts: list[str] = field(default_factory=list)
    encoding: Encoding | None = None
    header: bool | None = True
    varies: bool = False  # later batches may have other columns


def distinct_names(names: Sequence[str]) -> dict[str, dict[bytes, bytes] | None]:
    """Return names of which each is there once, "text" and "text.2", with the metadata of one that `repeats` another.

    A further one does not take a name that is there already.
    """
    distinct: dict[str, dict[bytes, bytes] | None] = {}
    for name in names:
        numbered = (f"{name}.{number}" for number in count(2))
        again = name in distinct
        free = next(free for free in numbered if free not in distinct and free not in names) if again else name
        distinct[free] = {REPEATS: name.encode()} if again else None
    return distinct


def text_batches(rows: Iterator[list[str]], schema: pa.Schema) -> Iterator[Batch]:
    """Yield rows of texts as batches of Arrow, numbered from 1."""
    first = 1
    while block := list(islice(rows, BATCH_ROWS)):
        arrays = [pa.array(column, pa.large_string()) for column in zip(*block, strict=True)]
        yield np.arange(first, first + len(block)), pa.record_batch(arrays, schema=schema)
        first += len(block)


def line_batches(lines: Iterator[str], schema: pa.Schema) -> Iterator[Batch]:
    """Yield the lines that are not blank as batches of Arrow, with their numbers."""
    first = 1
    while block := list(islice(lines, BATCH_ROWS)):
        filled = [at for at, line in enumerate(block) if line.strip()]
        if filled:
            texts = pa.array([block[at] for at in filled], pa.large_string())
            yield np.array(filled) + first, pa.record_batch([texts], schema=schema)
        first += len(block)


def of_dicts(name: str, kind: str, rows: Iterator[dict[str, Any]], encoding: Encoding | None = None) -> Source:
    """Return the source of rows that are cells by column or its number; its schema is that of the first batch."""
    batches = _dict_batches(rows)
    first = next(batches, None)
    schema = pa.schema([]) if first is None else first[1].schema
    named = schema.names != [str(number) for number in range(1, len(schema) + 1)] or not schema.names
    batches = batches if first is None else chain([first], batches)
    return Source(name, kind, schema, batches, [], encoding, named, varies=True)


def _dict_batches(rows: Iterator[dict[str, Any]]) -> Iterator[Batch]:
    """Yield rows of cells by column as batches of Arrow, whose schemas may differ (`unified`)."""
    first = 1
    while block := list(islice(rows, BATCH_ROWS)):
        keys = dict.fromkeys(key for row in block for key in row)
        if len(keys) > MAX_COLUMNS:
            raise ValueError(f"its rows have {len(keys):,} different keys; give at most {MAX_COLUMNS:,}")
        entries, arrays = [], []
        for key in keys:
            array, mark = _cells_of([row.get(key) for row in block])
            entries.append(pa.field(str(key), pa.large_string(), metadata=mark))
            arrays.append(array)
        yield np.arange(first, first + len(block)), pa.record_batch(arrays, schema=pa.schema(entries))
        first += len(block)


def _cells_of(values: list[Any]) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    """Return a column's cells: texts as they are, or all values as JSON, with the mark that says so."""
    try:
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.array(values, pa.large_string()), None
    except UnicodeEncodeError as error:
        reason = f"a cell holds half of a surrogate pair: {error.object!r:.60}; decode it again, or remove it"
        raise ValueError(reason) from error
    if all(type(value) is int for value in values):  # as JSON, but at once
        with suppress(pa.ArrowInvalid, OverflowError):
            return pa.array(values, pa.int64()).cast(pa.large_string()), JSON_MARK
    return pa.array([as_json(value) for value in values], pa.large_string()), JSON_MARK


def unified(tables: Sequence[pa.Table]) -> pa.Table:
    """Return one table of tables of JSON cells: missing columns hold nulls, and texts beside JSON become JSON."""
    mixed = {entry.name for table in tables for entry in table.schema if is_json(entry)}
    parts = []
    for table in tables:
        for at, entry in enumerate(table.schema):
            if entry.name in mixed and not is_json(entry):
                cells = pa.array([as_json(cell) for cell in table.column(at).to_pylist()], entry.type)
                table = table.set_column(at, entry.with_metadata(JSON_MARK), cells)
        parts.append(table)
    return pa.concat_tables(parts, promote_options="default")


def as_json(value: Any) -> str | None:
    """Return a value as JSON, dates and the like as texts; None stays None."""
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def is_json(column: pa.Field) -> bool:
    """True if the cells of a column are JSON."""
    return bool(column.metadata) and column.metadata.get(b"cse") == b"json"


def values_of(entry: pa.Field, column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of a column's cells, those of JSON decoded."""
    cells = column.to_pylist()
    return [None if cell is None else json.loads(cell) for cell in cells] if is_json(entry) else cells


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with distinct names, large strings for strings and named labels, and no dictionaries."""
    labels, entries = label_names(schema), []
    for (name, mark), entry in zip(distinct_names(schema.names).items(), schema, strict=True):
        kind = pa.large_string() if entry.name in labels else _plain(entry.type)
        entries.append(pa.field(name, kind, metadata={**(entry.metadata or {}), **(mark or {})} or None))
    return pa.schema(entries)


def label_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of the numbers in each column that the package datasets wrote as a `ClassLabel`."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"].items()
        labels = {column: list(kind["names"]) for column, kind in features if kind.get("_type") == "ClassLabel"}
    except (KeyError, TypeError, AttributeError, ValueError):  # it has none, or they are nested otherwise
        return {}
    numbers = {entry.name for entry in schema if pa.types.is_integer(entry.type)}  # a column may have changed since
    return {column: names for column, names in labels.items() if column in numbers}


def named_rows(stream: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a stream of the package datasets, with the names of labels in place of their numbers."""
    labels = label_names(stream.features.arrow_schema) if stream.features else {}
    if not labels:
        yield from stream
        return
    for row in stream:
        yield {**row, **{column: _label_name(row.get(column), names) for column, names in labels.items()}}


def _label_name(number: int | None, names: Sequence[str]) -> str | None:
    if number is None or number < 0:  # -1: the row has no label
        return None
    return names[number] if number < len(names) else str(number)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return pa.large_string() if text else kind


def plain_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[Batch]:
    """Yield batches of any schema in the plain one of `plain_schema`, with their row numbers."""
    first, labels = 1, None
    for batch in chain.from_iterable(map(_unpacked, batches)):
        if not batch.num_rows:
            continue
        labels = label_names(batch.schema) if labels is None else labels  # all batches have one schema
        arrays = []
        for name, column, entry in zip(batch.schema.names, batch.columns, schema, strict=True):
            if name in labels:
                column = pa.array([_label_name(number, labels[name]) for number in column.to_pylist()], entry.type)
            arrays.append(column if column.type == entry.type else column.cast(entry.type))
        yield np.arange(first, first + batch.num_rows), pa.record_batch(arrays, schema=schema)
        first += batch.num_rows


def _unpacked(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts that stay small when a text that is stored once is written for each of its rows."""
    import pyarrow.compute as pc

    size = 0
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and _plain(column.type) == pa.large_string():
            size += pc.sum(pc.take(pc.binary_length(column.dictionary), column.indices)).as_py() or 0
    if size <= MAX_BATCH_BYTES or batch.num_rows == 1:
        yield batch
        return
    half = batch.num_rows // 2
    for part in (batch.slice(0, half), batch.slice(half)):
        yield from _unpacked(part)
