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
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cse.errors import IndexFolderError
from cse.files import writing
from cse.files.checksums import checksum_now, feed_texts, file_state
from cse.files.replace import followed
from cse.files.writing import FolderKind
from index.manifest import MANIFEST_FILE, Manifest, cure

FAISS_FILE = "index.faiss"
TEXTS_FILE = "texts.arrow"
DATA_FILES = (FAISS_FILE, TEXTS_FILE)
FILES = (MANIFEST_FILE, *DATA_FILES)
INDEX = FolderKind("an index", MANIFEST_FILE, ("format", "factory", "corpus_sha256"), FILES)
MIN_STAMPED_BYTES = 64 << 20  # larger files get a stamp and are not read again while it is valid
CACHE_VARIABLE = "CSE_CACHE"
MAX_STAMPS = 1000  # the oldest ones are deleted
SETTLED_SECONDS = 2.0  # a file changed more recently may change again without a new time


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a new sibling folder that replaces `folder` when the block succeeds.

    If the block raises, `folder` is unchanged and the new folder is removed. Raises ValueError, before and after the
    block, unless `folder` is absent, empty, or holds an index and nothing else.
    """
    folder = Path(os.path.realpath(followed(folder)))
    if above := next((path for path in folder.parents if path.is_file()), None):
        raise ValueError(f"{above}: is a file; give an index another folder")
    with writing.replacing(folder, INDEX) as fresh:
        yield fresh


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
        state, expected = file_state(path), recorded.get("sha256")
        if state[0] != recorded.get("bytes"):
            raise IndexFolderError(f"{folder}: {name} has {state[0]} bytes, not {recorded.get('bytes')}; {cure()}")
        large = state[0] > MIN_STAMPED_BYTES
        if large and not again and is_stamped(path, str(expected)):
            continue
        if checksum_now(path) != expected:
            raise IndexFolderError(f"{folder}: {name} is not what {MANIFEST_FILE} describes; {cure()}")
        if large:
            stamp(path, state, str(expected))


def cache_folder() -> Path:
    """The cache folder: the environment variable CSE_CACHE, or `cse` in the platform's cache folder."""
    if configured := os.environ.get(CACHE_VARIABLE):
        return Path(configured)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cse"
    platform = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(platform) if platform else Path.home() / ".cache") / "cse"


def is_stamped(path: Path, sha256: str) -> bool:
    """True if the file once matched this sha256 and has not changed since."""
    try:
        return json.loads(_stamp(path).read_text(encoding="utf-8")) == [*file_state(path), sha256]
    except (OSError, ValueError, RuntimeError):  # no stamp, a damaged one, or no home folder
        return False


def stamp(path: Path, state: Sequence[int], sha256: str) -> None:
    """Record that a file in this `state` has this sha256, unless it has just changed or the cache is not writable."""
    with suppress(OSError, RuntimeError):
        if tuple(state) != file_state(path) or time.time() - max(state[1:3]) / 1e9 < SETTLED_SECONDS:
            return
        record = _stamp(path)
        record.parent.mkdir(parents=True, exist_ok=True)
        fresh = record.with_name(f"{record.name}.{os.getpid()}")
        fresh.write_text(json.dumps([*state, sha256]), encoding="utf-8")
        fresh.replace(record)
        for old in sorted(record.parent.iterdir(), key=lambda path: path.stat().st_mtime_ns)[:-MAX_STAMPS]:
            old.unlink(missing_ok=True)


def _stamp(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
    return cache_folder() / "verified" / name


TEXT_COLUMN = "text"
TEXT_TYPE = pa.large_string()  # 64-bit offsets: a column may pass 2 GB
TEXT_SCHEMA = pa.schema([(TEXT_COLUMN, TEXT_TYPE)])

TextWriter = Callable[[pa.Array], None]


@contextmanager
def text_writer(path: Path) -> Iterator[TextWriter]:
    """Yield a function that appends an Arrow array of sentences to a new file; the file is complete after the block."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, TEXT_SCHEMA) as writer:
        yield lambda texts: writer.write_batch(pa.record_batch([texts], schema=TEXT_SCHEMA))


def open_texts(path: Path) -> pa.ChunkedArray:
    """The memory-mapped column of a texts file. Raises ValueError for any other file."""
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    if table.schema != TEXT_SCHEMA:
        raise ValueError(f"its columns are {table.schema.names}, not {TEXT_SCHEMA.names}")
    return table.column(TEXT_COLUMN)


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


def without_rows(column: pa.ChunkedArray, rows: np.ndarray) -> pa.ChunkedArray:
    """`column` with nulls at `rows` (n,) int64, ascending; unchanged chunks are shared, others copied."""
    chunks, start = [], 0
    for chunk in column.chunks:
        low, high = np.searchsorted(rows, (start, start + len(chunk)))
        if high > low:
            mask = np.zeros(len(chunk), dtype=bool)
            mask[rows[low:high] - start] = True
            # `if_else` would keep the removed characters
            chunk = chunk.take(pa.array(np.arange(len(chunk)), mask=mask))
        chunks.append(chunk)
        start += len(chunk)
    return pa.chunked_array(chunks, type=TEXT_TYPE)


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
        raise ValueError(
            f"vectors have {block.shape[1]} dimensions, not {dimension}: use the model the index was built with"
        )
    lengths = np.sqrt(np.vecdot(block, block, dtype=np.float64))  # float64: squares of float32 overflow
    if not math.isfinite(lengths.sum()):
        raise ValueError(f"row {first_row + int(np.argmin(np.isfinite(lengths)))} holds a value that is not finite")
    if not lengths.all():
        lengths[lengths == 0] = 1
    return (block / lengths[:, None]).astype(np.float32)
