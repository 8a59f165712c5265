"""Atomic writing of files and folders that replaces only the project's own, reading of JSON, and digests."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from cse.errors import ArtefactError
from cse.files.replace import beside, followed, locked, recover, replacement, settle, swap

DIGITS = 12  # of a digest, in hex
BLOCK = 1 << 20
TEXTS = tuple(f"{kind}{packed}" for kind in (".tsv", ".csv", ".txt", ".jsonl") for packed in ("", ".gz"))
Read = TypeVar("Read", bound=Callable[..., Any])
LFS_SIGN = b"version https://git-lfs"  # how a pointer of Git LFS begins
LFS_POINTER = "a pointer of Git LFS, not the file itself; run git lfs pull where it was cloned"
DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class FolderKind:
    """A kind of folder: its `noun` with article, the JSON file `mark`, whose object has `keys`, and its `files`.

    `older` is the mark of an earlier layout, if there was one. `files` are patterns of all paths that belong in it,
    relative and with "/"; a `*` also matches in subfolders.
    """

    noun: str
    mark: str
    keys: tuple[str, ...]
    files: tuple[str, ...]
    older: str = ""

    def check_replaceable(self, folder: Path) -> None:
        """Raise ValueError unless `folder` is missing, empty, or of this kind with no other files."""
        recover(folder)
        if not folder.exists():
            return
        if not folder.is_dir():
            raise ValueError(f"{folder}: is a file; give {self.noun} another folder")
        names = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
        foreign = next((name for name in names if not any(fnmatch(name, pattern) for pattern in self.files)), None)
        if foreign:
            raise ValueError(
                f"{folder}: holds {foreign}, which is no part of {self.noun}; move it away or give another folder"
            )
        if any(folder.iterdir()) and not self.is_marked(folder):
            raise ValueError(
                f"{folder}: is not {self.noun} of this project (no {', '.join(self.keys)} in {self.mark}); "
                "delete it yourself or give another folder"
            )

    def is_marked(self, folder: Path) -> bool:
        """True if the mark of `folder` is that of this kind."""
        for mark in filter(None, (self.mark, self.older)):
            with suppress(OSError, ValueError, RecursionError):
                value = json.loads((folder / mark).read_text(encoding="utf-8"))
                if isinstance(value, dict) and value.keys() >= set(self.keys):
                    return True
        return False

    def delete(self, folder: Path) -> None:
        """Delete what belongs to a folder of this kind, and the folder if nothing else is in it.

        The mark goes last, so that what an interrupted deletion leaves is recognised.
        """
        for path in folder.glob("*"):
            if path.name != self.mark and any(fnmatch(path.name, pattern) for pattern in self.files):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (folder / self.mark).unlink(missing_ok=True)
        with suppress(OSError):  # missing, or not empty
            folder.rmdir()


@contextmanager
def replacing(folder: Path, kind: FolderKind | None = None) -> Iterator[Path]:
    """Yield a new folder that replaces `folder` at the end of the block; after an error in it `folder` is unchanged.

    With a `kind`, only that kind of folder is replaced, which is checked before the work and before the swap. Raises
    OSError naming `folder` if it cannot be written, ValueError if another process is writing it.
    """
    with named_errors(folder):
        folder = followed(Path(folder))
    if kind is not None:
        kind.check_replaceable(folder)
    with ExitStack() as stack:
        with named_errors(folder):
            if folder.is_file():
                raise NotADirectoryError("it is a file")
            folder.parent.mkdir(parents=True, exist_ok=True)
            fresh = stack.enter_context(replacement(folder))
        with named_errors(folder, only_full=True):
            yield fresh
        if kind is not None:
            kind.check_replaceable(folder)
        with named_errors(folder):
            for file in filter(Path.is_file, fresh.rglob("*")):
                file.chmod(0o644)  # safetensors writes files that only their owner can read
            swap(fresh, folder)


def write_folder(folder: Path, fill: Callable[[Path], object], kind: FolderKind | None = None) -> None:
    """Replace `folder` by what `fill(temporary_folder)` writes, as `replacing` does."""
    with replacing(folder, kind) as fresh:
        fill(fresh)


def partial_folder(output: Path) -> Path:
    """Return the path of unfinished work on `output`."""
    absolute = Path(output).absolute()  # "." gets a name
    if not absolute.name:
        raise ValueError(f"{output}: cannot be written; give a folder with a name as `output`")
    return absolute.with_name(f"{absolute.name}.partial")


@contextmanager
def named_errors(path: Path, what: str = "folder", only_full: bool = False) -> Iterator[None]:
    """Turn a failed write into an OSError that names `path` and the cure; with `only_full` only for a full disk."""
    try:
        yield
    except Exception as error:
        full = _disk_is_full(error)
        if not full and (only_full or not isinstance(error, OSError)):
            raise
        cure = f"free some space or give another {what}" if full else f"give another {what}"
        raise OSError(f"{path}: cannot be written ({error}); {cure}") from error


def damage_named(read: Read) -> Read:
    """Return `read`, whose first argument names a model, with the errors of code that trusts its files as one line.

    Any error but ValueError, OSError and those of the machine then becomes an ArtefactError.
    """

    @wraps(read)
    def named(model: Any, *args: Any, **options: Any) -> Any:
        try:
            return read(model, *args, **options)
        except Exception as error:
            known = isinstance(error, (ValueError, OSError, MemoryError, ImportError))
            if known and not isinstance(error, UnicodeError):
                raise
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
            name = getattr(model, "name", model)
            raise ArtefactError(f"{name}: its files are damaged ({reason}); copy or train it again") from error

    return cast("Read", named)


def _disk_is_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in DISK_FULL_ERRORS
    if type(error) is Exception:  # the library `tokenizers` raises nothing else
        return any(str(error).endswith(f"(os error {number})") for number in DISK_FULL_ERRORS)
    # safetensors uses one error type for reading and writing; only errors of reading mention "deserializing"
    return type(error).__name__ == "SafetensorError" and "deserializing" not in str(error)


def write_file(path: Path, fill: Callable[[Path], object]) -> None:
    """Replace `path` by what `fill(temporary_file)` writes; create its folder if it is missing.

    The temporary file has the name of `path`, in a folder next to it. If `path` is a link, its target is written.
    After a failure `path` is unchanged and no temporary file is left; those of a killed process are removed by the
    next write. Raises OSError naming `path` if it cannot be written or is no file.
    """
    with _new_file(path) as (fresh, target):
        fill(fresh)
        settle(fresh.parent)
        os.replace(fresh, target)


def check_writable(*paths: Path | None) -> None:
    """Raise OSError naming a path that `write_file` could not begin to write; its folder is made, a file unchanged."""
    for path in filter(None, paths):
        with _new_file(path):
            pass


@contextmanager
def _new_file(path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the path of a file to write, and the one that it is to replace: `path`, or its target if it is a link."""
    with named_errors(path, "file"):
        target = followed(path)
        if target.exists() and not target.is_file():
            raise OSError("it is a folder, a device or a pipe")
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacement(target) as fresh:
            yield fresh / path.name, target


def write_text(path: Path, text: str) -> None:
    """Write a text to `path` by `write_file`."""
    write_file(path, lambda fresh: fresh.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: object) -> None:
    """Write a JSON document to `path` by `write_file`."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1))


def not_permitted(path: Path | str) -> str:
    """Return the error of a file or folder whose permissions keep this user out."""
    return f"{path}: permission denied; change its permissions, or give another"


def unreadable(path: Path, problem: str) -> ArtefactError:
    """Return the error of a file with a `problem`, or of a pointer of Git LFS in a file's place."""
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(LFS_SIGN)) == LFS_SIGN:
            problem = f"is {LFS_POINTER}"
    return ArtefactError(f"{path}: {problem}")


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a model folder. Raises ArtefactError if it is missing or damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ArtefactError(f"{path.parent}: no {path.name} in it; give a model's folder") from error
    except PermissionError as error:
        raise ArtefactError(not_permitted(path)) from error
    except (OSError, ValueError, RecursionError) as error:  # RecursionError: deeply nested lists
        raise unreadable(path, f"cannot read {path.name}, damaged ({error}); copy or train it again") from error
    if not isinstance(value, dict):
        raise ArtefactError(f"{path}: holds no configuration; copy or train it again")
    return value


def check_regular(path: Path) -> None:
    """Raise ValueError unless `path` is a regular file: no folder, device or pipe, and not missing.

    Its name has to be UTF-8, since it is written to JSON files.
    """
    if not is_utf_8(str(path)):
        raise ValueError(f"{os.fsencode(path)!r}: the name is not UTF-8; rename it")
    if path.is_file():
        return
    what = "is a folder, not a file" if path.is_dir() else "is a device or a pipe; give a file"
    raise ValueError(f"{path}: {what if path.exists() else 'no such file'}")


def is_utf_8(text: str) -> bool:
    """True if a text can be encoded as UTF-8; file names with other bytes cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def digest(*parts: str) -> str:
    """Return 12 hex digits of sha256 over concatenated texts."""
    return digest_of(parts)


def digest_of(parts: Iterable[str]) -> str:
    """Return the `digest` of texts that are read one after another."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part.encode())
    return sha.hexdigest()[:DIGITS]


def file_digest(path: Path) -> str:
    """Return 12 hex digits of sha256 over a file, or over names and contents of a folder's files of texts."""
    sha = hashlib.sha256()
    texts = (file for file in path.rglob("*") if file.name.endswith(TEXTS))
    for file in sorted(texts) if path.is_dir() else [path]:
        if file != path:
            sha.update(str(file.relative_to(path)).encode())
        feed(sha, file)
    return sha.hexdigest()[:DIGITS]


def feed(sha: hashlib._Hash, path: Path) -> None:
    """Update a hash with a file, a block at a time. Raises ValueError for anything but a regular file."""
    check_regular(path)
    with path.open("rb") as content:
        while block := content.read(BLOCK):
            sha.update(block)


def check_folder(output: Path) -> None:
    """Raise ValueError if `output` or a folder above it is a file."""
    for path in (output, *output.absolute().parents):
        if path.is_file():
            raise ValueError(f"{path} is a file; give a folder as `output`")


@contextmanager
def reserved(output: Path) -> Iterator[None]:
    """Lock `output` in the block, by a file `.NAME.held`. Raises ValueError if another run is writing there.

    Parent folders that were created for it are removed at the end if they are empty.
    """
    output = Path(os.path.realpath(followed(Path(output))))  # two links to one folder exclude each other
    if not output.name:
        yield
        return
    made = [folder for folder in output.parents if not folder.exists()]
    try:
        with ExitStack() as stack:
            with named_errors(output):
                output.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(beside(output, "held"), output))
            yield
    finally:
        for folder in made:
            with suppress(OSError):  # not empty
                folder.rmdir()
