"""A folder for what a server writes while it runs, which is gone once it has ended, however it did."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cse.storage.reservation import hold

PREFIX, LOCK = "cse-run-", "lock"


@contextmanager
def run_folder(within: Path | None = None) -> Iterator[Path]:
    """A new folder, removed at the end; what servers that were killed left beside it is removed first.

    It lies `within` a folder, by default the system's one for temporary files. A server keeps a lock in its folder for
    as long as it runs, so that its folder is not taken for a leftover.
    """
    place = Path(tempfile.gettempdir()) if within is None else within
    place.mkdir(parents=True, exist_ok=True)
    sweep(place)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place)).resolve()
    try:
        with (folder / LOCK).open("w") as lock:
            hold(lock)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(place: Path) -> None:
    """Remove the folders of servers that run no more."""
    if os.name != "posix":  # where nothing says that one still runs
        return
    for folder in place.glob(f"{PREFIX}*"):
        # Another user's stays, and one in use.
        with suppress(OSError, ValueError), (folder / LOCK).open("r+") as lock:
            hold(lock)
            shutil.rmtree(folder, ignore_errors=True)
