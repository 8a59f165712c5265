"""Checksums of files, texts, JSON objects and arrays: recorded on writing, verified on reading."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.errors import ArtefactError
from cse.files.writing import DIGITS, digest, feed, read_json, unreadable

if TYPE_CHECKING:
    import numpy as np

CHECKSUM_FILE = "checksums.json"
ARRAY_BATCH_ROWS = 1024  # of an array, which are copied to float32 at a time
CHECKSUM_CURE = f"copy it again, or delete {CHECKSUM_FILE} if you changed it"
DIGEST = "digest"  # the key in a JSON object that holds the digest of the other keys
Version = tuple[Path, tuple[int, ...]]  # of a file: its absolute path and its state


def checksums(folder: Path) -> dict[str, str]:
    """Return the sha256 in hex of each file in a folder, by its path there, except the record and Markdown files."""
    files = sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name != CHECKSUM_FILE and path.suffix != ".md"
    )
    return {path.relative_to(folder).as_posix(): checksum(path) for path in files}


def write_checksums(folder: Path) -> None:
    """Write the checksums of a folder's files into it."""
    (folder / CHECKSUM_FILE).write_text(json.dumps(checksums(folder), indent=1))


def check_checksums(folder: Path, cure: str) -> None:
    """Verify a folder against its record, if it has one (earlier versions wrote none). Raises as `verify` does."""
    if (folder / CHECKSUM_FILE).exists():
        verify(folder, read_json(folder / CHECKSUM_FILE), cure)


def verify(folder: Path, recorded: Mapping[str, str], cure: str) -> None:
    """Raise ArtefactError, ending with `cure`, unless the `recorded` files of a folder exist and are unchanged.

    A process reads a file again only if its state changed.
    """
    for name, expected in recorded.items():
        path = folder / name
        if not path.is_file():
            raise ArtefactError(f"{path}: is missing; {cure}")
        if checksum(path) != expected:
            raise unreadable(path, f"damaged (its sha256 is not the one recorded); {cure}")


def file_state(path: Path) -> tuple[int, ...]:
    """Size, times (ns) and identity of a file; every write to it changes one of them."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev


def version(path: Path) -> Version:
    """Return a file's path with its state, which together stand for its content within a process."""
    return path.absolute(), file_state(path)


def checksum(path: Path) -> str:
    """Return the sha256 of a file in hex; a process reads it again only if its state changed."""
    return _known_checksum(version(path))


@lru_cache(maxsize=1024)
def _known_checksum(version: Version) -> str:
    return checksum_now(version[0])


def checksum_now(path: Path) -> str:
    """Return the sha256 of a file in hex, read now."""
    sha = hashlib.sha256()
    feed(sha, path)
    return sha.hexdigest()


def feed_texts(sha: hashlib._Hash, texts: Iterable[str]) -> int:
    """Update a hash with texts, each followed by a newline; return their number."""
    count = 0
    for text in texts:
        sha.update(text.encode() + b"\n")
        count += 1
    return count


def with_digest(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with a digest of its content, independent of its layout in a file."""
    return {**value, DIGEST: content_digest(value)}


def check_digest(value: Mapping[str, Any], path: Path, cure: str) -> None:
    """Raise ValueError, ending with `cure`, unless the JSON object in `path` matches its digest.

    An object without a digest, as earlier versions wrote it, passes.
    """
    if DIGEST in value and value[DIGEST] != content_digest(value):
        raise ValueError(f"{path}: damaged or edited (its {DIGEST} is not the one recorded); {cure}")


def content_digest(value: Mapping[str, Any]) -> str:
    """Return the digest of a JSON object, without its own `DIGEST`."""
    read_back = json.loads(json.dumps({**value, DIGEST: None}))  # keys become text, which sorts otherwise
    return digest(json.dumps(read_back, sort_keys=True))


def array_digest(arrays: Mapping[str, np.ndarray], *texts: str) -> str:
    """Return 12 hex digits of sha256 over named arrays as float32, sorted by name, and texts."""
    import numpy as np

    sha = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        sha.update(name.encode())
        rows = np.atleast_1d(array)
        for start in range(0, len(rows), ARRAY_BATCH_ROWS):
            sha.update(np.ascontiguousarray(rows[start : start + ARRAY_BATCH_ROWS], np.float32).data)
    for text in texts:
        sha.update(text.encode())
    return sha.hexdigest()[:DIGITS]


def backbone_digest(parameters: Mapping[str, np.ndarray], vocabulary: Mapping[str, int]) -> str:
    """Return the fingerprint of a backbone: the digest of its parameters by name and of its vocabulary."""
    return array_digest(parameters, json.dumps(sorted(vocabulary.items())))
