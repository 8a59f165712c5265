"""Files at addresses such as s3://bucket/table.csv, by fsspec: read from a copy in the cache, written as a whole."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from cse.errors import first_line
from cse.files.writing import write_file

CACHE_VARIABLE = "CSE_CACHE"
VERSIONS = (  # facts of a file by which services tell one version from another; its size is not enough
    "ETag", "etag", "mtime", "LastModified", "last_modified", "created", "updated", "generation", "blob_id",
)  # fmt: skip
TRIES = 3  # of a folder that is replaced while it is copied
KEPT_VERSIONS = 2  # of an address in the cache: another process may still read the one before
PROBE = ".cse-probe"  # a file that is written and deleted


def cache_folder() -> Path:
    """The cache folder: the environment variable CSE_CACHE, or `cse` in the platform's cache folder."""
    if configured := os.environ.get(CACHE_VARIABLE):
        return Path(configured)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cse"
    platform = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(platform) if platform else Path.home() / ".cache") / "cse"


def is_remote(name: str | Path) -> bool:
    """True for an address, which has a scheme."""
    return isinstance(name, str) and "://" in name


def is_scheme(scheme: str) -> bool:
    """True for a scheme that fsspec knows, or the schemes of a chain such as simplecache::s3."""
    import fsspec

    return {*scheme.split("::")} <= {*fsspec.available_protocols(), *fsspec.registry}


def shown(address: str) -> str:
    """Return an address without its password and, on the web, without its query, which may hold a key."""
    if address.startswith(("http://", "https://")):
        return re.sub(r"//[^/@]*@", "//", address.partition("?")[0])
    return re.sub(r"//[^/@]*:[^/@]*@", "//", address)


def local_copy(address: str) -> Path:
    """Return the file at an address as a file in the cache, which is copied once for each version of it.

    It is copied each time where the service tells no versions apart, as some web servers do.

    Raises ValueError, which names the address and the cure, if it cannot be read.
    """
    with _place(address) as (system, path):
        facts = system.info(path)
        if facts["type"] != "file":
            raise FileNotFoundError(address)
        name = PurePosixPath(shown(path)).name  # whose suffix says what it is
        copy = _cached(address, system.ukey(path), sorted(map(str, facts.items()))) / name
        if not (copy.is_file() and any(facts.get(name) for name in VERSIONS)):
            write_file(copy, partial(system.get_file, path))
        return copy


def local_folder(address: str, names: Sequence[str]) -> Path:
    """Return the files `names` of a folder at an address as a folder in the cache; the first one tells versions apart.

    Others that are missing there are missing here. Raises ValueError as `local_copy`, and if the folder does not stop
    changing.
    """
    with _place(address) as (system, path):
        marks = [system.cat_file(f"{path}/{names[0]}")]
        for _ in range(TRIES):
            folder = _cached(address, marks[-1])
            write_file(folder / names[0], lambda fresh: fresh.write_bytes(marks[-1]))
            for name in names[1:]:
                if not (folder / name).is_file() and system.exists(f"{path}/{name}"):
                    write_file(folder / name, partial(system.get_file, f"{path}/{name}"))
            marks.append(system.cat_file(f"{path}/{names[0]}"))
            if marks[-1] == marks[-2]:
                return folder
        raise OSError("it is being replaced; try again later")


def names_at(address: str) -> list[str]:
    """Return the names of the files and folders in the folder at an address; none if there is no such folder."""
    with _place(address) as (system, path):
        return [PurePosixPath(name).name for name in system.ls(path, detail=False)] if system.exists(path) else []


def check_writable(address: str) -> None:
    """Raise ValueError if no file can be written to a folder at an address."""
    with _place(address, "cannot be written") as (system, path):
        system.makedirs(path, exist_ok=True)
        system.pipe_file(f"{path}/{PROBE}", b"cse")
        with suppress(Exception):  # the right to delete is not needed
            system.rm_file(f"{path}/{PROBE}")


def upload(folder: Path, address: str, names: Sequence[str]) -> None:
    """Copy the files `names` of a folder to one at an address, the first one last: it describes the others."""
    with _place(address) as (system, path):
        system.makedirs(path, exist_ok=True)
        for name in [*names[1:], names[0]]:
            system.put_file(str(folder / name), f"{path}/{name}")


def _cached(address: str, *version: Any) -> Path:
    """Return the folder in the cache of a version of an address, and delete the oldest ones of others."""
    versions = cache_folder() / "remote" / _digest(address)
    folder = versions / _digest(*version)
    others = [path for path in versions.iterdir() if path != folder] if versions.is_dir() else []
    for old in sorted(others, key=lambda path: path.stat().st_mtime_ns)[: 1 - KEPT_VERSIONS]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def _digest(*key: Any) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:24]


@contextmanager
def _place(address: str, failure: str = "not reached") -> Iterator[tuple[Any, str]]:
    """Yield the file system of an address, which remembers no listings, and the path there; errors become one line."""
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(address)
        system.invalidate_cache()
        yield system, path.rstrip("/")
    except ImportError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{shown(address)}: needs another package ({reason}); install it with pip") from error
    except FileNotFoundError as error:
        raise ValueError(f"{shown(address)}: no such file; check the address") from error
    except Exception as error:  # each service has errors of its own
        reason = first_line(error).replace(address, shown(address))
        cure = "give one such as s3://, gs://, hf:// or https://, and the rights that it needs"
        raise ValueError(f"{shown(address)}: {failure} ({reason}); {cure}") from error


@contextmanager
def naming(copy: Path, address: str) -> Iterator[None]:
    """Name an address in the messages of errors, in place of its copy."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error).replace(str(copy), address)) from error
