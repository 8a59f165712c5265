"""Stamps: notes in the user's cache folder of large files that were read whole and were as their manifest says.

Reading a file of 10 GB takes seconds, so it is done once: a stamp holds for as long as the file's place, size, times
and inode stay. Without a cache folder that can be written, such a file is read whole each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

VARIABLE = "CSE_CACHE"
MOST_STAMPS = 1000  # the oldest ones go
SETTLED = 2.0  # seconds: a file that changed less long ago may change again without another time


def cache_folder() -> Path:
    """The folder for what can be computed again: the variable CSE_CACHE, or `cse` in the platform's cache folder."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cse"
    platform = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(platform) if platform else Path.home() / ".cache") / "cse"


def file_state(path: Path) -> tuple[int, ...]:
    """Size, times (ns) and identity of a file; every write to it changes one of them."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev


def is_stamped(path: Path, sha256: str) -> bool:
    """Whether the file was once found to have this sha256 and has not changed since."""
    try:
        return json.loads(_stamp(path).read_text(encoding="utf-8")) == [*file_state(path), sha256]
    except (OSError, ValueError, RuntimeError):  # no stamp, a damaged one, or no home folder
        return False


def stamp(path: Path, state: Sequence[int], sha256: str) -> None:
    """Note that a file in this `state` has this sha256, unless it has just changed or nothing can be noted."""
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
