"""The sentences of an index: one Arrow column whose position is the row number, memory-mapped when read.

A removed sentence becomes a null, so that later rows keep their numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from cse.storage.checksums import feed_texts

COLUMN = "text"
TYPE = pa.large_string()  # 64-bit offsets: a column may pass 2 GB
SCHEMA = pa.schema([(COLUMN, TYPE)])

TextWriter = Callable[[pa.Array], None]


@contextmanager
def text_writer(path: Path) -> Iterator[TextWriter]:
    """Yield a function that appends an Arrow array of sentences to a new file; the file is complete after the block."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        yield lambda texts: writer.write_batch(pa.record_batch([texts], schema=SCHEMA))


def open_texts(path: Path) -> pa.ChunkedArray:
    """The memory-mapped column of a texts file. Raises ValueError for any other file."""
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    if table.schema != SCHEMA:
        raise ValueError(f"its columns are {table.schema.names}, not {SCHEMA.names}")
    return table.column(COLUMN)


def text_array(texts: Sequence[str]) -> pa.Array:
    """`texts` as an Arrow array; a lone surrogate, which UTF-8 cannot encode, becomes "?", as encoders read it.

    Raises ValueError for anything that is not a str.
    """
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"text {position} of the batch is {text!r}, not a str")
    try:
        return pa.array(texts, type=TYPE)
    except UnicodeEncodeError:
        return pa.array([text.encode("utf-8", "replace").decode() for text in texts], type=TYPE)


def without_rows(column: pa.ChunkedArray, rows: np.ndarray) -> pa.ChunkedArray:
    """`column` with nulls at `rows` (n,) int64, ascending; unchanged chunks are shared, others copied."""
    chunks, start = [], 0
    for chunk in column.chunks:
        low, high = np.searchsorted(rows, (start, start + len(chunk)))
        chunks.append(_blanked(chunk, rows[low:high] - start) if high > low else chunk)
        start += len(chunk)
    return pa.chunked_array(chunks, type=TYPE)


def live_rows(column: pa.ChunkedArray) -> np.ndarray:
    """The row numbers (n,) int64, ascending, whose sentence was not removed."""
    return np.flatnonzero(column.is_valid().to_numpy())


def gather(column: pa.ChunkedArray, rows: np.ndarray) -> list[str]:
    """The sentences of `rows` (n,) int64 in that order; none may have been removed."""
    return [column[row].as_py() for row in rows.tolist()]  # `take` would import pyarrow.compute, and look at all chunks


def checksum(column: pa.ChunkedArray) -> str:
    """The sha256 of the sentences in row order, each followed by a newline."""
    sha = hashlib.sha256()
    for chunk in column.chunks:
        feed_texts(sha, chunk.drop_null().to_pylist())
    return sha.hexdigest()


def _blanked(chunk: pa.Array, positions: np.ndarray) -> pa.Array:
    mask = np.zeros(len(chunk), dtype=bool)
    mask[positions] = True
    return chunk.take(pa.array(np.arange(len(chunk)), mask=mask))  # `if_else` would keep the removed characters
