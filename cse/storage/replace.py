"""Replacing a folder, so that a process killed at any moment leaves the old one or the new one under the name.

`read_settled` is the other side: a reader sees the old folder or the new one, never files of both.

What replaces the folder NAME is written to `.NAME.new-TOKEN` beside it, while `.NAME.lock-TOKEN` is held by the writing
process. Linux then exchanges the two names in one step. Elsewhere the old folder is `.NAME.old-TOKEN` for a moment, and
whoever opens NAME next finishes what a kill broke off there. The next writer removes what dead writers left.
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

HERE = f"{zlib.crc32(platform.node().encode()):08x}"  # a lock may not be seen from another machine
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # <fcntl.h>, <linux/fs.h>
MOST_READINGS = 20
T = TypeVar("T")


@dataclass
class Replacement:
    """A folder in the making: what `fresh` holds takes the place of `folder` by `swap`; `clear` ends it either way."""

    folder: Path
    token: str
    held: IO[bytes] | None = None

    @classmethod
    def begin(cls, folder: Path) -> Replacement:
        """An empty `fresh` folder beside `folder`, after what killed writers left there is finished and removed."""
        sweep(folder)
        begun = cls(folder, f"{HERE}-{secrets.token_hex(4)}")
        lock = begun.place("lock")
        try:
            begun.held = _hold(lock, "xb")
            if begun.held is None:  # a lock that nobody can hold would look like a dead writer's
                lock.unlink(missing_ok=True)
            begun.fresh.mkdir()
        except BaseException:
            begun.clear()
            raise
        return begun

    @property
    def fresh(self) -> Path:
        """The folder to fill."""
        return self.place("new")

    def place(self, kind: str) -> Path:
        """Where the "new" or "old" folder or the "lock" of this replacement lies."""
        return self.folder.with_name(f".{self.folder.name}.{kind}-{self.token}")

    def swap(self) -> None:
        """Give `fresh` the name of `folder`; an error leaves the old one there."""
        folder, old = self.folder, self.place("old")
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
        """Remove what lies beside the folder, but nothing that `recover` needs."""
        try:
            if self.folder.exists() or not self.place("old").exists():
                for kind in ("new", "old"):
                    shutil.rmtree(self.place(kind), ignore_errors=True)
                with suppress(OSError):
                    self.place("lock").unlink(missing_ok=True)
        finally:
            if self.held:
                self.held.close()


def settle(folder: Path) -> None:
    """Have the system store a folder and all in it, or a name could outlive its content when the power fails."""
    if os.name == "posix":
        for path in (*folder.rglob("*"), folder):
            place = os.open(path, os.O_RDONLY)
            try:
                os.fsync(place)
            finally:
                os.close(place)


def recover(folder: Path) -> None:
    """Finish a replacement of `folder` that was killed when the old one had lost the name and the new one not got it.

    A living writer between these two steps is waited for. Nothing happens where the name is there.
    """
    if folder.exists():
        return
    folder = followed(folder)
    for fresh in _beside(folder, "new"):
        broken = Replacement(folder, _token(fresh))
        if not broken.place("old").exists():  # still in the making, or left then
            continue
        held = _hold(broken.place("lock"), "r+b", wait=True)
        with suppress(OSError):  # then the name stays missing, which the caller says
            if broken.place("old").exists() and not folder.exists():
                os.rename(fresh, folder)
        if held:
            held.close()


def followed(path: Path) -> Path:
    """The target of a link, or the path itself. Raises OSError for links that lead in a circle."""
    found = Path(os.path.realpath(path)) if path.is_symlink() else path
    if found.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return found


def read_settled(folder: Path, read: Callable[[], T]) -> T:
    """The result of `read()`, repeated until `folder` was the same folder from its beginning to its end.

    So all that `read` opens below `folder` by path belongs to one commit of a writer. An error of `read` passes where
    the folder stayed the same. Raises OSError where each of `MOST_READINGS` attempts was overtaken by a writer.
    """
    for _ in range(MOST_READINGS):
        before = _identity(folder)
        try:
            found = read()
        except Exception:
            if _identity(folder) == before:
                raise
            continue
        if _identity(folder) == before:
            return found
    raise OSError(f"{folder}: was replaced during each of {MOST_READINGS} attempts to read it; stop the writer first")


def _identity(folder: Path) -> tuple[int, ...] | None:
    """What tells a folder from the one that replaces it, from itself with other files in it, and from a link's next."""
    try:
        found = folder.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def sweep(folder: Path) -> None:
    """Finish a replacement of `folder` that was killed, as `recover` does, and remove what dead writers left there."""
    recover(folder)
    for lock in _beside(folder, "lock"):
        _remove_if_dead(folder, lock)


def _remove_if_dead(folder: Path, lock: Path) -> None:
    token = _token(lock)
    held = _hold(lock, "r+b") if token.startswith(HERE) else None
    if held:
        Replacement(folder, token, held).clear()


def _beside(folder: Path, kind: str) -> Iterator[Path]:
    """What writers of `folder` keep, or left, of a kind."""
    with suppress(OSError, ValueError):  # no such place, or no path at all
        yield from [path for path in folder.parent.iterdir() if path.name.startswith(f".{folder.name}.{kind}-")]


def _token(place: Path) -> str:
    return place.name.rpartition(".")[2].partition("-")[2]


def _hold(lock: Path, mode: str, wait: bool = False) -> IO[bytes] | None:
    """The file held until it is closed or the process dies; None where another holds it or nothing can."""
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
    """Whether the system gave two folders each other's name at once; not every system and file system can."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0
