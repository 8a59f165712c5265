"""Index folders on disk: replaced as a whole or not at all, and checked against their manifest before use.

Reading a file of 10 GB takes seconds. A large file that matched the manifest therefore gets a stamp in the user's cache
folder, which is valid while the file's path, size, times and inode stay the same. Without a writable cache folder such
a file is read whole each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cse.errors import IndexFolderError
from cse.storage.checksums import checksum_now, file_state
from cse.storage.replace import Replacement, followed
from cse.storage.writing import FolderKind, named_errors
from index.manifest import MANIFEST_FILE, Manifest, cure

FAISS_FILE = "index.faiss"
TEXTS_FILE = "texts.arrow"
DATA_FILES = (FAISS_FILE, TEXTS_FILE)
FILES = (MANIFEST_FILE, *DATA_FILES)
INDEX = FolderKind("an index", MANIFEST_FILE, ("format", "factory", "corpus_sha256"), FILES)
STAMPED = 64 << 20  # bytes: larger files get a stamp and are not read again while it is valid
CACHE_VARIABLE = "CSE_CACHE"
MOST_STAMPS = 1000  # the oldest ones are deleted
SETTLED = 2.0  # seconds; a file changed more recently may change again without a new time


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a new sibling folder that replaces `folder` when the block succeeds.

    If the block raises, `folder` is unchanged and the new folder is removed. Raises ValueError, before and after the
    block, unless `folder` is absent, empty, or holds an index and nothing else.
    """
    folder = Path(os.path.realpath(followed(folder)))
    INDEX.check_replaceable(folder)
    if above := next((path for path in folder.parents if path.is_file()), None):
        raise ValueError(f"{above}: is a file; give an index another folder")
    with named_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        replacement = Replacement.begin(folder)
    try:
        yield replacement.fresh
        INDEX.check_replaceable(folder)
        replacement.swap()
    finally:
        replacement.clear()


def file_records(folder: Path) -> dict[str, dict[str, Any]]:
    """The manifest's record of each data file: its bytes and sha256."""
    paths = {name: folder / name for name in DATA_FILES}
    return {name: {"bytes": path.stat().st_size, "sha256": checksum_now(path)} for name, path in paths.items()}


def verify_files(folder: Path, manifest: Manifest, again: bool = False) -> None:
    """Raise IndexFolderError unless the data files match the manifest's sizes and checksums.

    A file above `STAMPED` bytes with a valid stamp is read only with `again`, which also detects a failing disk.
    """
    for name in DATA_FILES:
        path, recorded = folder / name, manifest.files.get(name)
        if not isinstance(recorded, dict) or not path.is_file():
            raise IndexFolderError(f"{folder}: {name} is missing; {cure()}")
        state, expected = file_state(path), recorded.get("sha256")
        if state[0] != recorded.get("bytes"):
            raise IndexFolderError(f"{folder}: {name} has {state[0]} bytes, not {recorded.get('bytes')}; {cure()}")
        large = state[0] > STAMPED
        if large and not again and is_stamped(path, str(expected)):
            continue
        if checksum_now(path) != expected:
            raise IndexFolderError(f"{folder}: {name} is not what {MANIFEST_FILE} describes; {cure()}")
        if large:
            stamp(path, state, str(expected))


def cache_folder() -> Path:
    """The cache folder: the environment variable CSE_CACHE, or `cse` in the platform's cache folder."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
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
        if tuple(state) != file_state(path) or time.time() - max(state[1:3]) / 1e9 < SETTLED:
            return
        place = _stamp(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f"{place.name}.{os.getpid()}")
        fresh.write_text(json.dumps([*state, sha256]), encoding="utf-8")
        fresh.replace(place)
        for old in sorted(place.parent.iterdir(), key=lambda each: each.stat().st_mtime_ns)[:-MOST_STAMPS]:
            old.unlink(missing_ok=True)


def _stamp(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
    return cache_folder() / "verified" / name
