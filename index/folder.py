"""The folder on disk: replaced as a whole or not at all, and checked against its manifest before use."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cse.errors import IndexFolderError
from cse.storage.replace import Replacement, followed, recover
from index.manifest import CURE, MANIFEST_FILE, Manifest
from index.stamps import file_state, is_stamped, stamp

FAISS_FILE = "index.faiss"
TEXTS_FILE = "texts.arrow"
DATA_FILES = (FAISS_FILE, TEXTS_FILE)
FILES = (MANIFEST_FILE, *DATA_FILES)
BLOCK = 1 << 20  # bytes
STAMPED = 64 * BLOCK  # a larger file is read whole once and then for as long as its stamp holds


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
    folder = Path(os.path.realpath(followed(folder)))
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
    """Bytes and sha256 of a file."""
    return {"bytes": path.stat().st_size, "sha256": _sha256(path)}


def verify_files(folder: Path, manifest: Manifest, again: bool = False) -> None:
    """Raise IndexFolderError unless the data files hold, byte for byte, what the manifest says.

    A file above `STAMPED` bytes that was found right before and has not changed since is only read where it is asked
    for `again`, which also sees what a failing disk changes.
    """
    for name in DATA_FILES:
        path, recorded = folder / name, manifest.files.get(name)
        if not isinstance(recorded, dict) or not path.is_file():
            raise IndexFolderError(f"{folder}: {name} is missing; {CURE}")
        state, expected = file_state(path), recorded.get("sha256")
        if state[0] != recorded.get("bytes"):
            raise IndexFolderError(f"{folder}: {name} has {state[0]} bytes, not {recorded.get('bytes')}; {CURE}")
        large = state[0] > STAMPED
        if large and not again and is_stamped(path, str(expected)):
            continue
        if _sha256(path) != expected:
            raise IndexFolderError(f"{folder}: {name} is not what {MANIFEST_FILE} describes; {CURE}")
        if large:
            stamp(path, state, str(expected))


def _is_marked_as_index(folder: Path) -> bool:
    try:
        values = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and values.get("format") == Manifest.format


def _sha256(path: Path) -> str:
    """sha256 of a file in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(BLOCK):
            digest.update(chunk)
    return digest.hexdigest()
