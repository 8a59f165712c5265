"""Locks on output folders against a second run; a killed run's lock is released."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from cse.storage.replace import followed
from cse.storage.writing import named_errors


def check_folder(output: Path) -> None:
    """Raise ValueError if `output` or a folder above it is a file."""
    for path in (output, *output.absolute().parents):
        if path.is_file():
            raise ValueError(f"{path} is a file; give a folder as `output`")


def hold(file: IO[Any], output: Path | None = None) -> None:
    """Lock a file of unfinished work until it is closed. Raises ValueError if another run has locked it.

    The error names `output`, by default the folder of the file. Does nothing on Windows and on file systems without
    locks.
    """
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        place = output or Path(file.name).parent
        raise ValueError(f"{place}: another run is writing there; give another `output`") from error
    except OSError:  # such as on a network folder
        return


@contextmanager
def reserved(output: Path) -> Iterator[None]:
    """Lock `output` in the block. Raises ValueError if another run is writing there.

    The lock is on a file `.NAME.held` next to `output`, which the next run can lock after a kill. Parent folders that
    were created for it are removed at the end if they are empty.
    """
    output = Path(os.path.realpath(followed(Path(output))))  # two links to one folder exclude each other
    if os.name != "posix" or not output.name:
        yield
        return
    made = [folder for folder in output.parents if not folder.exists()]
    with named_errors(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    lock = output.with_name(f".{output.name}.held")
    try:
        with _held(lock, output):
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
    finally:
        for folder in made:
            with suppress(OSError):  # not empty
                folder.rmdir()


@contextmanager
def _held(lock: Path, output: Path) -> Iterator[None]:
    """Create and lock the file `lock`; retry if its previous holder deleted it before it was locked."""
    while True:
        with named_errors(output):
            file = lock.open("ab")
        with file:
            hold(file, output)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                    yield
                    return
