"""The folder on disk: replaced as a whole or not at all, and checked against its manifest before use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from index.errors import IndexFolderError
from index.manifest import CURE, MANIFEST_FILE, Manifest
from index.swap import Replacement, recover

FAISS_FILE = "index.faiss"
TEXTS_FILE = "texts.arrow"
DATA_FILES = (FAISS_FILE, TEXTS_FILE)
FILES = (MANIFEST_FILE, *DATA_FILES)
BLOCK = 1 << 20  # bytes
READ_WHOLE = 64 * BLOCK  # a larger file is sampled where it is opened: hashing takes a second a gigabyte
SAMPLED = 32  # blocks


def check_replaceable(folder: Path) -> None:
    """Raise ValueError unless `folder` is absent, empty, or holds an index and nothing else."""
    recover(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{folder}: is a file; give the index another folder")
    names = {path.name for path in folder.iterdir()}
    foreign = sorted(names - set(FILES))
    if foreign:
        raise ValueError(f"{folder}: holds {foreign[0]}, which is no part of an index; give the index another folder")
    if names and not _is_marked_as_index(folder):
        raise ValueError(f"{folder}: is not an index folder; give the index another folder or delete this one yourself")


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A new sibling folder that takes the place of `folder` where the block ends well.

    A block that raises leaves `folder` as it was and nothing beside it. Raises ValueError for a `folder` that
    `check_replaceable` refuses, before the block and again after it.
    """
    folder = folder.resolve()
    check_replaceable(folder)
    if above := next((path for path in folder.parents if path.is_file()), None):
        raise ValueError(f"{above}: is a file; give the index another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    replacement = Replacement.begin(folder)
    try:
        yield replacement.fresh
        check_replaceable(folder)
        replacement.swap()
    finally:
        replacement.clear()


def file_records(folder: Path) -> dict[str, dict[str, Any]]:
    """The record of each data file, as the manifest keeps them."""
    return {name: file_record(folder / name) for name in DATA_FILES}


def file_record(path: Path) -> dict[str, Any]:
    """Bytes and sha256 of a file, and of a large one that of a sample."""
    size = path.stat().st_size
    record = {"bytes": size, "sha256": _sha256(path, [(0, size)])}
    return {**record, "sample": _sha256(path, sample(size))} if size > READ_WHOLE else record


def sample(size: int) -> list[tuple[int, int]]:
    """(start, length) in bytes of what is read of a large file of `size` bytes: evenly spaced, both ends among them."""
    return [(int(start), BLOCK) for start in np.linspace(0, size - BLOCK, SAMPLED)]


def verify_files(folder: Path, manifest: Manifest, whole: bool = False) -> None:
    """Raise IndexFolderError unless the data files have the sizes and the contents the manifest says.

    Of a file above `READ_WHOLE` a sample is read, which sees truncation, overwriting and zeroed stretches but not
    every flipped byte; with `whole`, all of it.
    """
    for name in DATA_FILES:
        path, recorded = folder / name, manifest.files.get(name)
        if not isinstance(recorded, dict) or not path.is_file():
            raise IndexFolderError(f"{folder}: {name} is missing; {CURE}")
        size = path.stat().st_size
        if size != recorded.get("bytes"):
            raise IndexFolderError(f"{folder}: {name} has {size} bytes, not {recorded.get('bytes')}; {CURE}")
        sampled = "sample" in recorded and size > READ_WHOLE and not whole
        kind, parts = ("sample", sample(size)) if sampled else ("sha256", [(0, size)])
        if _sha256(path, parts) != recorded.get(kind):
            raise IndexFolderError(f"{folder}: {name} is not what {MANIFEST_FILE} describes; {CURE}")


def _is_marked_as_index(folder: Path) -> bool:
    try:
        values = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and values.get("format") == Manifest.format


def _sha256(path: Path, parts: Sequence[tuple[int, int]]) -> str:
    """sha256 in hex of the `parts` (start, length) of a file, one after the other."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for start, length in parts:
            file.seek(start)
            while length and (chunk := file.read(min(BLOCK, length))):
                digest.update(chunk)
                length -= len(chunk)
    return digest.hexdigest()
