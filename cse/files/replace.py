"""Atomic replacement of a folder: a process killed at any moment leaves the old one or the new one under the name.

`read_settled` is the counterpart: a reader sees the old folder or the new one, never files of both.

The new content of the folder NAME is written to `.NAME.new-TOKEN` next to it, while the writing process locks
`.NAME.lock-TOKEN`. Linux then exchanges the two names in one step. Other systems first rename the old folder to
`.NAME.old-TOKEN`; after a kill there, the next to open NAME finishes. The next writer removes files of dead writers.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"  # a lock may be invisible to another machine
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # <fcntl.h>, <linux/fs.h>
MAX_ATTEMPTS = 20
T = TypeVar("T")


@dataclass
class Replacement:
    """A pending replacement: `swap` puts `fresh` in the place of `folder`; `clear` removes all temporary files."""

    folder: Path
    token: str
    held: IO[bytes] | None = None

    @classmethod
    def begin(cls, folder: Path) -> Replacement:
        """Create an empty `fresh` folder next to `folder`, after completing and removing what killed writers left."""
        sweep(folder)
        begun = cls(folder, f"{MACHINE}-{secrets.token_hex(4)}")
        lock = begun.sibling("lock")
        try:
            begun.held = _hold(lock, "xb", wait=True)  # for another writer that takes it for a dead one's
            if begun.held is None:  # a lock file without a lock would look like a dead writer's
                lock.unlink(missing_ok=True)
            elif not lock.exists():  # that writer removed it before it was locked
                begun.held.close()
                return cls.begin(folder)
            begun.fresh.mkdir()
        except BaseException:
            begun.clear()
            raise
        return begun

    @property
    def fresh(self) -> Path:
        """The folder to fill."""
        return self.sibling("new")

    def sibling(self, kind: str) -> Path:
        """Return the path of this replacement's "new" or "old" folder or its "lock"."""
        return self.folder.with_name(f".{self.folder.name}.{kind}-{self.token}")

    def swap(self) -> None:
        """Give `fresh` the name of `folder`; after an error the old one keeps it."""
        folder, old = self.folder, self.sibling("old")
        settle(self.fresh)
        if folder.exists():
            if _exchange(self.fresh, folder):
                return
            os.rename(folder, old)
        try:
            os.rename(self.fresh, folder)
        except BaseException:
            if old.exists() and not folder.exists():
                os.rename(old, folder)
            raise

    def clear(self) -> None:
        """Remove the temporary files, but nothing that `recover` needs."""
        try:
            if self.folder.exists() or not self.sibling("old").exists():
                for kind in ("new", "old"):
                    shutil.rmtree(self.sibling(kind), ignore_errors=True)
                with suppress(OSError):
                    self.sibling("lock").unlink(missing_ok=True)
        finally:
            if self.held:
                self.held.close()


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
    for fresh in _siblings(folder, "new"):
        broken = Replacement(folder, _token(fresh))
        if not broken.sibling("old").exists():  # still being written, or killed then
            continue
        held = _hold(broken.sibling("lock"), "r+b", wait=True)
        with suppress(OSError):  # the folder stays missing, which the caller reports
            if broken.sibling("old").exists() and not folder.exists():
                os.rename(fresh, folder)
        if held:
            held.close()


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


def sweep(folder: Path) -> None:
    """Complete a killed replacement of `folder`, as `recover` does, and remove the files of dead writers."""
    recover(folder)
    for lock in _siblings(folder, "lock"):
        token = _token(lock)
        held = _hold(lock, "r+b") if token.startswith(MACHINE) else None
        if held:
            Replacement(folder, token, held).clear()


def _siblings(folder: Path, kind: str) -> Iterator[Path]:
    """Yield the temporary paths of one kind, of live and dead writers of `folder`."""
    with suppress(OSError, ValueError):  # no such folder, or an invalid path
        yield from [path for path in folder.parent.iterdir() if path.name.startswith(f".{folder.name}.{kind}-")]


def _token(path: Path) -> str:
    return path.name.rpartition(".")[2].partition("-")[2]


def _hold(lock: Path, mode: str, wait: bool = False) -> IO[bytes] | None:
    """Open and lock a file until it is closed or the process dies; None if another holds it or locks do not work."""
    if os.name != "posix":
        return None
    import fcntl

    try:
        file = lock.open(mode)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        file.close()
        return None
    return file


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders atomically; False if the system or file system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0
