"""Index folders on disk: replaced as a whole or not at all, and checked against their manifest before use.

Reading a file of 10 GB takes seconds. A large file that matched the manifest therefore gets a stamp in the user's cache
folder, which is valid while the file's path, size, times and inode stay the same. Without a writable cache folder such
a file is read whole each time.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from cse.corpus.corpus import Corpus
from cse.corpus.source import as_json, is_json, values_of
from cse.errors import IndexFolderError
from cse.files import writing
from cse.files.checksums import checksum_now, feed_texts, file_state
from cse.files.remote import cache_folder, check_writable, is_remote, local_folder, upload
from cse.files.replace import followed
from cse.files.writing import FolderKind
from index.manifest import MANIFEST_FILE, Manifest, cure, read_manifest

FAISS_FILE = "index.faiss"
TEXTS_FILE = "texts.arrow"
DATA_FILES = (FAISS_FILE, TEXTS_FILE)
FILES = (MANIFEST_FILE, *DATA_FILES)
INDEX = FolderKind("an index", MANIFEST_FILE, ("format", "factory", "corpus_sha256"), FILES)
MIN_STAMPED_BYTES = 64 << 20  # larger files get a stamp and are not read again while it is valid
MAX_STAMPS = 1000  # the oldest ones are deleted
Texts = Sequence[str] | Corpus  # of a batch
SETTLED_SECONDS = 2.0  # a file changed more recently may change again without a new time


@contextmanager
def replacing(location: Path | str) -> Iterator[Path]:
    """Yield a folder for the files of an index that replaces what is at `location` when the block succeeds.

    A folder there has to be absent, empty or an index. Files for an address are uploaded, the manifest last.
    """
    if is_remote(location):
        check_writable(str(location))  # before hours of encoding
        with TemporaryDirectory() as folder:
            yield Path(folder)
            upload(Path(folder), str(location), FILES)
    else:
        with writing.replacing(Path(os.path.realpath(followed(Path(location)))), INDEX) as fresh:  # also of "."
            yield fresh


def local(location: Path | str) -> Path:
    """Return the folder of an index; that of an address is its copy, verified.

    Raises IndexFolderError, which names the address, if there is none or it is damaged.
    """
    if not is_remote(location):
        return Path(location)
    try:
        folder = local_folder(str(location), FILES)
    except ValueError as error:
        raise IndexFolderError(str(error)) from error
    try:
        verify_files(folder, read_manifest(folder))
    except IndexFolderError as error:
        for name in DATA_FILES:  # to be copied again, as a mended index may have the same manifest
            (folder / name).unlink(missing_ok=True)
        raise IndexFolderError(str(error).replace(str(folder), str(location))) from error
    return folder


def file_records(folder: Path) -> dict[str, dict[str, Any]]:
    """The manifest's record of each data file: its bytes and sha256."""
    paths = {name: folder / name for name in DATA_FILES}
    return {name: {"bytes": path.stat().st_size, "sha256": checksum_now(path)} for name, path in paths.items()}


def verify_files(folder: Path, manifest: Manifest, again: bool = False) -> None:
    """Raise IndexFolderError unless the data files match the manifest's sizes and checksums.

    A file above `MIN_STAMPED_BYTES` with a valid stamp is read only with `again`, which also detects a failing disk.
    """
    for name in DATA_FILES:
        path, recorded = folder / name, manifest.files.get(name)
        if not isinstance(recorded, dict) or not path.is_file():
            raise IndexFolderError(f"{folder}: {name} is missing; {cure()}")
        if (size := path.stat().st_size) != recorded.get("bytes"):
            raise IndexFolderError(f"{folder}: {name} has {size} bytes, not {recorded.get('bytes')}; {cure()}")
        if not has_checksum(path, str(recorded.get("sha256")), again):
            raise IndexFolderError(f"{folder}: {name} is not what {MANIFEST_FILE} describes; {cure()}")


def has_checksum(path: Path, sha256: str, again: bool) -> bool:
    """True if a file has this sha256; a stamp says that a large one had it, and is believed unless `again`."""
    state = file_state(path)
    large, stamped = state[0] > MIN_STAMPED_BYTES, [*state, sha256]
    with suppress(OSError, ValueError, RuntimeError):  # no stamp, a damaged one, or no home folder
        if large and not again and json.loads(_stamp(path).read_text(encoding="utf-8")) == stamped:
            return True
    if checksum_now(path) != sha256:
        return False
    settled = state == file_state(path) and time.time() - max(state[1:3]) / 1e9 >= SETTLED_SECONDS
    with suppress(OSError, ValueError, RuntimeError):  # another process is recording it, or no cache can be written
        if large and settled:
            writing.write_json(_stamp(path), stamped)
            stamps = sorted(_stamp(path).parent.iterdir(), key=lambda path: path.stat().st_mtime_ns)
            for old in stamps[:-MAX_STAMPS]:
                old.unlink(missing_ok=True)
    return True


def _stamp(path: Path) -> Path:
    return cache_folder() / "verified" / hashlib.sha256(os.fsencode(path.resolve())).hexdigest()


TEXT_COLUMN = "text"
TEXT_TYPE = pa.large_string()  # 64-bit offsets: a column may pass 2 GB
TEXT_SCHEMA = pa.schema([(TEXT_COLUMN, TEXT_TYPE)])  # of lists of sentences, and of all rows of earlier versions
NUMBERS = [pa.field("row", pa.int64()), pa.field("corpus", pa.int32())]  # the last columns of a numbered table
NUMBERED = {b"cse": b"rows"}  # metadata of its schema: names do not tell, as a user's column may have them


def write_rows(blocks: Iterator[tuple[pa.Table, np.ndarray]], path: Path) -> Iterator[np.ndarray]:
    """Yield the vectors of blocks, whose rows are written to a new file, which is complete at the end."""
    first, vectors = next(blocks)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
        writer.write_table(first)
        yield vectors
        for table, vectors in blocks:
            writer.write_table(conformed(table, first.schema))
            yield vectors


def open_rows(path: Path) -> pa.Table:
    """The memory-mapped rows of a file of rows. Raises ValueError for any other file."""
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    entries = list(table.schema)
    if table.schema != TEXT_SCHEMA and not (
        is_numbered(table) and entries[0].type == TEXT_TYPE and entries[-len(NUMBERS) :] == NUMBERS
    ):
        raise ValueError(f"its columns are {table.schema.names}, not {TEXT_SCHEMA.names}")
    return table


def text_array(texts: Sequence[str]) -> pa.Array:
    """`texts` as an Arrow array; a lone surrogate, which UTF-8 cannot encode, becomes "?", as encoders read it.

    Raises ValueError for anything that is not a str.
    """
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"text {position} of the batch is {text!r}, not a str")
    try:
        return pa.array(texts, type=TEXT_TYPE)
    except UnicodeEncodeError:
        return pa.array([text.encode("utf-8", "replace").decode() for text in texts], type=TEXT_TYPE)


def row_table(texts: Texts, corpus: int | None = 0) -> pa.Table:
    """The rows of a batch: its texts; of a `Corpus` also its other columns, and then `NUMBERS`.

    `corpus` is its number among the manifest's corpora. Raises ValueError for a text that is not a str.
    """
    if not isinstance(texts, Corpus):
        return pa.table([text_array(texts)], schema=TEXT_SCHEMA)
    texts = texts.with_text
    others = texts.table.select([name for name in texts.columns if name != texts.text])
    rows = pa.table(
        [text_array(texts.texts), *others.columns],
        schema=pa.schema([(texts.text, TEXT_TYPE), *(entry.with_nullable(True) for entry in others.schema)]),
    )
    return numbered(rows, texts.rows, corpus)


def is_numbered(table: pa.Table) -> bool:
    """True if the last columns of a table are `NUMBERS`."""
    return (table.schema.metadata or {}).get(b"cse") == NUMBERED[b"cse"]


def numbered(table: pa.Table, rows: np.ndarray, corpus: int | None) -> pa.Table:
    """A table with `NUMBERS`: the row numbers (n,) of its sentences in the manifest's corpus of this number."""
    own = [pa.array(rows, NUMBERS[0].type), pa.array([corpus] * table.num_rows, NUMBERS[1].type)]
    return pa.table([*table.columns, *own], schema=pa.schema([*table.schema, *NUMBERS], NUMBERED))


def user_columns(table: pa.Table) -> pa.Table:
    """The table of a user: the texts and the other columns, without `NUMBERS`."""
    own = len(NUMBERS) if is_numbered(table) else 0
    return table.select(range(table.num_columns - own)).replace_schema_metadata(None)


def check_columns(names: Sequence[str], columns: Sequence[str]) -> None:
    """Raise ValueError unless rows with the columns `names` fit into an index with these `columns`."""
    if set(names) != set(columns):
        more, fewer = (
            [name for name in one if name not in other] for one, other in ((names, columns), (columns, names))
        )
        difference = [f"have {', '.join(map(repr, more))}, which the index lacks"] if more else []
        difference += [f"lack {', '.join(map(repr, fewer))}, which it has"] if fewer else []
        raise ValueError(
            f"the columns differ: the new rows {' and '.join(difference)}; give them the same columns, or build the "
            "index again from all rows"
        )


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table of rows in the `schema` of others with the same columns, in any order. Raises ValueError for others."""
    if table.schema.equals(schema, check_metadata=True):
        return table
    own, target = user_columns(table), user_columns(schema.empty_table())
    check_columns(own.schema.names[1:], target.schema.names[1:])
    if is_numbered(table) != is_numbered(schema.empty_table()):
        raise ValueError("some batches are lists and some a Corpus; give one kind")
    columns = [own.column(0)]
    for entry in list(target.schema)[1:]:
        at = own.schema.names.index(entry.name, 1)
        columns.append(_converted(own.schema.field(at), own.column(at), entry))
    return pa.table([*columns, *table.columns[own.num_columns :]], schema=schema)


def _converted(entry: pa.Field, column: pa.ChunkedArray, target: pa.Field) -> pa.ChunkedArray:
    """A column's cells as another of its name holds them. Raises ValueError if it cannot hold them."""
    if entry.type == target.type and is_json(entry) == is_json(target):
        return column
    if is_json(target):
        cells = [as_json(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(cells, target.type)])
    if is_json(entry):
        values = values_of(entry, column)
        if pa.types.is_large_string(target.type):
            values = [value if value is None or isinstance(value, str) else as_json(value) for value in values]
    try:
        if is_json(entry):
            column = pa.chunked_array([pa.array(values)])
        return column.cast(target.type)
    except pa.ArrowException as error:
        kind = "values of several types" if is_json(entry) else entry.type
        raise ValueError(
            f"the new rows have {kind} in {entry.name!r}, and the index {target.type}; give the same type"
        ) from error


def without_rows(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """`table` with nulls at `rows` (n,) int64, ascending; unchanged batches are shared, others copied."""
    batches, start = [], 0
    for batch in table.to_batches():
        low, high = np.searchsorted(rows, (start, start + batch.num_rows))
        start += batch.num_rows
        if high > low:
            mask = np.zeros(batch.num_rows, dtype=bool)
            mask[rows[low:high] - (start - batch.num_rows)] = True
            # `if_else` would keep the removed characters
            batch = batch.take(pa.array(np.arange(batch.num_rows), mask=mask))
        batches.append(batch)
    return pa.Table.from_batches(batches, table.schema)


def live_rows(column: pa.ChunkedArray) -> np.ndarray:
    """The positions (n,) int64, ascending, whose sentence was not removed."""
    return np.flatnonzero(column.is_valid().to_numpy())


def gather(column: pa.ChunkedArray, rows: np.ndarray) -> list[Any]:
    """The cells of `rows` (n,) int64 in that order; none may have been removed."""
    return [column[row].as_py() for row in rows.tolist()]  # `take` would import pyarrow.compute, and look at all chunks


def checksum(column: pa.ChunkedArray) -> str:
    """The sha256 of the sentences in row order, as they are encoded, each followed by a newline."""
    sha = hashlib.sha256()
    for chunk in column.chunks:
        feed_texts(sha, map(str.strip, chunk.drop_null().to_pylist()))
    return sha.hexdigest()


def unit_rows(vectors: np.ndarray, *, dimension: int | None = None, first_row: int = 0) -> np.ndarray:
    """`vectors` (n, d) as contiguous float32 rows of length 1; a zero row stays zero.

    Raises ValueError for another number of axes, for d other than `dimension`, and for a value that is not a finite
    float32, naming its row counted from `first_row`.
    """
    block = np.ascontiguousarray(vectors)
    if block.dtype != np.float32:
        with np.errstate(over="ignore"):  # float64 beyond float32's range becomes inf and raises below
            block = block.astype(np.float32)
    if block.ndim != 2 or block.shape[1] == 0:
        raise ValueError(f"vectors have shape {block.shape}, not (n, d)")
    if dimension is not None and block.shape[1] != dimension:
        raise ValueError(f"vectors have {block.shape[1]} dimensions, not {dimension}: use the index's model")
    lengths = np.sqrt(np.vecdot(block, block, dtype=np.float64))  # float64: squares of float32 overflow
    if not math.isfinite(lengths.sum()):
        raise ValueError(f"row {first_row + int(np.argmin(np.isfinite(lengths)))} holds a value that is not finite")
    if not lengths.all():
        lengths[lengths == 0] = 1
    return (block / lengths[:, None]).astype(np.float32)
