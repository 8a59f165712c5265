"""Replacement at once: a process killed at any moment leaves the old folder or file under the name, or the new one.

The new content of NAME is written to `.NAME.new-TOKEN` next to it, under the lock `.NAME.lock`. Linux then exchanges
the two names in one step. Other systems rename it to `.NAME.new`, the old folder to `.NAME.old` and the new one to
NAME; after a kill there, the next to open NAME finishes. The next writer removes what a killed one left.
`read_settled` is the counterpart for readers.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # <fcntl.h>, <linux/fs.h>
WAIT_SECONDS = 10.0  # for another writer of the same name; most write for less
NO_LOCK_ERRORS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)  # of file systems without locks
MAX_ATTEMPTS = 20
T = TypeVar("T")


def beside(path: Path, kind: str) -> Path:
    """Return the path of a writer's folder or lock, of this kind, next to `path`."""
    return path.with_name(f".{path.name}.{kind}")


@contextmanager
def locked(lock: Path, subject: Path, seconds: float = 0.0) -> Iterator[None]:
    """Lock the file `lock` in the block, at most until the process dies; the file is removed at the end.

    Waits up to `seconds` for another holder, for ever with -1, then raises ValueError naming `subject`. Locks nothing
    on a file system without locks.
    """
    from filelock import FileLock, Timeout  # it imports asyncio, which would slow down each search

    held = FileLock(lock, thread_local=False)  # a generator may end on another thread
    try:
        lock.touch()  # raises at once where a folder refuses files, which filelock would take for a lock
        held.acquire(timeout=seconds)
    except Timeout as error:
        raise ValueError(f"{subject}: another run is writing there; give another `output`") from error
    except OSError as error:
        if error.errno not in NO_LOCK_ERRORS:
            raise
    try:
        yield
    finally:
        with suppress(OSError):  # Windows keeps an open file; filelock removes it there
            lock.unlink()  # while it is locked; who waits for it locks a new one
        held.release()


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Yield an empty folder for the new content of `path`, which only this writer replaces in the block."""
    with locked(beside(path, "lock"), path, WAIT_SECONDS):
        _finish(path)
        _clear(path)
        fresh = beside(path, f"new-{secrets.token_hex(4)}")  # no other machine's, whose lock may not be seen here
        try:
            fresh.mkdir()
            yield fresh
        finally:
            _clear(path)


def swap(fresh: Path, folder: Path) -> None:
    """Give `fresh` the name of `folder`; after an error the old one keeps it."""
    settle(fresh)
    if folder.exists() and _exchange(fresh, folder):
        return
    new, old = beside(folder, "new"), beside(folder, "old")
    os.rename(fresh, new)
    if folder.exists():
        os.rename(folder, old)
    try:
        os.rename(new, folder)
    except BaseException:
        if old.exists() and not folder.exists():
            os.rename(old, folder)
        raise


def settle(folder: Path) -> None:
    """Flush a folder and its content to disk; otherwise a power failure could leave a name without its content."""
    if os.name == "posix":
        for path in (*folder.rglob("*"), folder):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def recover(folder: Path) -> None:
    """Complete a replacement of `folder` that was killed between renaming the old folder and the new one.

    Waits for a live writer between these two steps. Does nothing if the folder exists.
    """
    if folder.exists():
        return
    folder = followed(folder)
    with suppress(OSError, ValueError):  # the folder stays missing, which the caller reports
        if _is_halfway(folder):
            with locked(beside(folder, "lock"), folder, -1):
                _finish(folder)


def sweep(path: Path) -> None:
    """Complete a killed replacement of `path`, as `recover` does, and remove what a dead writer left."""
    recover(path)
    with suppress(OSError, ValueError):  # a live writer, or a path that none can have
        if _left(path) or beside(path, "lock").exists():
            with locked(beside(path, "lock"), path):
                _clear(path)


def _is_halfway(folder: Path) -> bool:
    return beside(folder, "old").exists() and beside(folder, "new").exists() and not folder.exists()


def _left(path: Path) -> list[Path]:
    kinds = ("new", "new-????????", "old")
    return [left for kind in kinds for left in path.parent.glob(f".{glob.escape(path.name)}.{kind}")]


def _finish(folder: Path) -> None:
    if _is_halfway(folder):
        os.rename(beside(folder, "new"), folder)


def _clear(path: Path) -> None:
    """Remove a writer's folders, unless `recover` needs them."""
    if not _is_halfway(path):
        for folder in _left(path):
            shutil.rmtree(folder, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders atomically; False if the system or file system cannot.

    `os.replace` puts no folder in the place of one that holds files.
    """
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0


def followed(path: Path) -> Path:
    """Return the target of a link, or the path itself. Raises OSError for circular links."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def read_settled(folder: Path, read: Callable[[], T]) -> T:
    """Return the result of `read()`, repeated until `folder` did not change during the call.

    All files below `folder` that `read` opens by path then belong to one commit of a writer. An error of `read` is
    raised if the folder did not change. Raises OSError if a writer replaced it in each of `MAX_ATTEMPTS` attempts.
    """
    for _ in range(MAX_ATTEMPTS):
        before = _identity(folder)
        try:
            result = read()
        except Exception:
            if _identity(folder) == before:
                raise
            continue
        if _identity(folder) == before:
            return result
    raise OSError(f"{folder}: was replaced during each of {MAX_ATTEMPTS} attempts to read it; stop the writer first")


def _identity(folder: Path) -> tuple[int, ...] | None:
    """Return values that change when a folder is replaced, its files change, or a link gets another target."""
    try:
        stat = folder.stat()
    except (OSError, ValueError):
        return None
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns
