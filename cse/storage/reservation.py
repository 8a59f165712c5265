"""Locks that keep a second run out of an output folder while the first one lives; a killed run keeps nobody out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from cse.storage.replace import followed
from cse.storage.writing import named_errors


def hold(file: IO[Any], output: Path | None = None) -> None:
    """Keep a file of unfinished work until it is closed, or raise ValueError where another run has it.

    The error names `output`, by default the folder of the file. Nothing is kept on Windows, nor where the file system
    cannot.
    """
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        place = output or Path(file.name).parent
        raise ValueError(f"{place}: another run is writing there; give another `output`") from error
    except OSError:  # such as on a network's folder
        return


@contextmanager
def reserved(output: Path) -> Iterator[None]:
    """Keep other runs out of `output` in the block, or raise ValueError where another one is writing there.

    A file `.NAME.held` beside `output` is held, which a killed run leaves to the next one. A folder that was made for
    it and is empty in the end goes with it.
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
    """Hold the file `lock`, made where it is missing. One that its holder deleted meanwhile would keep nobody out."""
    while True:
        with named_errors(output):
            file = lock.open("ab")
        with file:
            hold(file, output)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                    yield
                    return
