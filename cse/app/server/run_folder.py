"""A temporary folder of a running server, removed after it ends or is killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cse.files.writing import hold

PREFIX, LOCK = "cse-run-", "lock"


@contextmanager
def run_folder(within: Path | None = None) -> Iterator[Path]:
    """Make a folder that is removed at the end, after removing folders left by killed servers.

    It is made `within` a folder, by default the system's temporary one. A running server holds a lock in its folder, so
    that others do not remove it.
    """
    place = Path(tempfile.gettempdir()) if within is None else within
    place.mkdir(parents=True, exist_ok=True)
    sweep(place)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place)).resolve()
    try:
        with (folder / f"{LOCK}-new").open("w") as lock:
            hold(lock)
            if (
                os.name == "posix"
            ):  # others sweep a folder with a lock that they can hold, so it is held before it is one
                Path(lock.name).rename(folder / LOCK)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(place: Path) -> None:
    """Remove the folders of servers that have ended."""
    if os.name != "posix":  # no lock shows that a server still runs
        return
    for folder in place.glob(f"{PREFIX}*"):
        # Errors: another user's folder, or one in use.
        with suppress(OSError, ValueError), (folder / LOCK).open("r+") as lock:
            hold(lock)
            shutil.rmtree(folder, ignore_errors=True)
