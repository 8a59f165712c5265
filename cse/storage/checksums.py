"""Checksums of the files of a folder, and of a JSON file: recorded when it is written, compared when it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from cse.errors import ArtefactError
from cse.storage.writing import digest, feed, read_json

RECORD = "checksums.json"
DIGEST = "digest"  # the key of a JSON object under which the digest of the others stands


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


def with_digest(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with a digest of its content, which does not depend on how a file lays it out."""
    return {**value, DIGEST: content_digest(value)}


def check_digest(value: Mapping[str, Any], path: Path, cure: str) -> None:
    """Raise ValueError, ending with `cure`, unless the JSON object that `path` holds is as it was written.

    Without a digest, which earlier versions did not write, anything passes.
    """
    if DIGEST in value and value[DIGEST] != content_digest(value):
        raise ValueError(f"{path}: damaged or edited (its {DIGEST} is not the one recorded); {cure}")


def content_digest(value: Mapping[str, Any]) -> str:
    """The digest of a JSON object, but of the digest in it."""
    read_back = json.loads(json.dumps({**value, DIGEST: None}))  # its keys are text, which sort otherwise than numbers
    return digest(json.dumps(read_back, sort_keys=True))
