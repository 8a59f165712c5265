"""A temporary folder of a running server, removed after it ends or is killed."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cse.files.replace import WAIT_SECONDS, locked

PREFIX, LOCK = "cse-run-", ".lock"


@contextmanager
def run_folder(within: Path | None = None) -> Iterator[Path]:
    """Make a folder that is removed at the end, after removing folders left by killed servers.

    It is made `within` a folder, by default the system's temporary one. A running server holds a lock next to its
    folder, so that others do not remove it.
    """
    place = Path(tempfile.gettempdir()) if within is None else within
    place.mkdir(parents=True, exist_ok=True)
    sweep(place)
    folder = place.resolve() / f"{PREFIX}{secrets.token_hex(8)}"
    with locked(folder.with_suffix(LOCK), folder, WAIT_SECONDS):  # others may hold it for a moment, to sweep it
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def sweep(place: Path) -> None:
    """Remove the folders of servers that have ended."""
    for lock in place.glob(f"{PREFIX}*{LOCK}"):
        with suppress(OSError, ValueError), locked(lock, lock):  # another user's, or one in use
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
