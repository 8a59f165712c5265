"""Checksums of the files of a folder: recorded when it is written, compared when it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from cse.errors import ArtefactError
from cse.files import feed, read_json

RECORD = "checksums.json"


def checksums(folder: Path) -> dict[str, str]:
    """sha256 in hex of each file that lies in a folder, by name, but of the record itself and of pages to read."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != RECORD and path.suffix != ".md")
    return {path.name: checksum(path) for path in files}


def write_checksums(folder: Path) -> None:
    """Record the checksums of a folder's files in the folder."""
    (folder / RECORD).write_text(json.dumps(checksums(folder), indent=1))


def check_checksums(folder: Path, cure: str) -> None:
    """Compare a folder with the record in it, which earlier versions did not write; raises as `verify` does."""
    if (folder / RECORD).exists():
        verify(folder, read_json(folder / RECORD), cure)


def verify(folder: Path, recorded: Mapping[str, str], cure: str) -> None:
    """Raise ArtefactError, ending with `cure`, unless the `recorded` files of a folder are there as they were written.

    A file is read once in a process for as long as its size, time and inode stay.
    """
    for name, expected in recorded.items():
        path = folder / name
        if not path.is_file():
            raise ArtefactError(f"{path}: is missing; {cure}")
        if checksum(path) != expected:
            raise ArtefactError(f"{path}: damaged (its sha256 is not the one recorded); {cure}")


def checksum(path: Path) -> str:
    """sha256 of a file in hex."""
    at = path.stat()
    return _sha256(path.absolute(), at.st_size, at.st_mtime_ns, at.st_ino)


@lru_cache(maxsize=1024)
def _sha256(path: Path, size: int, changed: int, inode: int) -> str:
    sha = hashlib.sha256()
    feed(sha, path)
    return sha.hexdigest()
