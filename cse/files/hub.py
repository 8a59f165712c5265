"""The model hub: a reachability check, made once so that a wrong name fails fast, and downloads of files."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlparse

from cse.errors import ArtefactError

TIMEOUT_SECONDS = 3.0
MODEL_FILES = ["*.json", "*.safetensors", "*.txt"]  # files of a model
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


_CACHE_ALONE: ContextVar[bool] = ContextVar("cache_alone", default=False)


@contextmanager
def cache_alone() -> Iterator[None]:
    """Treat the hub as unreachable inside the block: only files in its cache are found."""
    token = _CACHE_ALONE.set(True)
    try:
        yield
    finally:
        _CACHE_ALONE.reset(token)


def reachable() -> bool:
    """True if the hub answers, or may answer behind a proxy; False in offline mode and within `cache_alone`."""
    return not _CACHE_ALONE.get() and _answers()


@lru_cache(maxsize=1)
def _answers() -> bool:
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    if any(os.environ.get(name) for name in PROXIES):
        return True
    address = urlparse(constants.ENDPOINT)
    try:
        socket.create_connection((address.hostname, address.port or 443), TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True


def split_revision(model: str) -> tuple[str, str | None]:
    """Split `OWNER/NAME@REVISION` into hub id and branch, tag or commit; a folder or a plain id has None."""
    name, _, revision = model.partition("@")
    return (name, revision) if revision and not Path(model).exists() else (model, None)


def cached_file(model: str, name: str, revision: str | None = None) -> Path | None:
    """Return the path of the file `name` of a model folder or hub id; None if there is no such file.

    Downloads it if the hub is reachable, else looks in the hub's cache. `revision` is a hub commit, which may also
    follow the id after an "@". Raises ArtefactError for an unknown revision.
    """
    if Path(model).is_dir():
        return path if (path := Path(model) / name).is_file() else None
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    online, (repository, pinned) = reachable(), split_revision(model)
    try:
        return Path(hf_hub_download(repository, name, revision=revision or pinned, local_files_only=not online))
    except (HFValidationError, RepositoryNotFoundError):
        return None
    except RevisionNotFoundError as error:
        raise ArtefactError(f"{repository} has no revision {revision or pinned!r}; give one of its commits") from error
    except (EntryNotFoundError, OSError) as error:
        if online and not isinstance(error, EntryNotFoundError):
            raise ArtefactError(f"{model}: cannot fetch {name} from the hub ({error}); try again") from error
        return None


def commit_of(model: str, revision: str | None = None) -> str | None:
    """Return the current commit of a hub id, or of its `revision`; None for a folder or an unknown id."""
    path = None if Path(model).is_dir() else cached_file(model, "config.json", revision)
    return path.parent.name if path else None  # the cache has a folder per commit


def model_folder(model: str) -> Path:
    """Return the folder of a model; download a hub id's configuration and weights if the hub is reachable."""
    if Path(model).is_dir():
        return Path(model)
    repository, revision = split_revision(model)
    return _snapshot(repository, revision, MODEL_FILES, "model")


def data_folder(name: Path, files: Sequence[str]) -> Path:
    """Return the folder with the `files` of the dataset `OWNER/NAME[@REVISION]`, downloaded if necessary.

    A folder, and a name that is no dataset, is returned unchanged.
    """
    repository, revision = split_revision(name.as_posix())
    if name.exists() or name.is_absolute() or repository.count("/") != 1:
        return name
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return _snapshot(repository, revision, files, "dataset")
    except (HFValidationError, HfHubHTTPError, OSError):
        return name


def _snapshot(repository: str, revision: str | None, patterns: Sequence[str], kind: str) -> Path:
    from huggingface_hub import snapshot_download

    allowed, cached = list(patterns), not reachable()
    folder = snapshot_download(
        repository, revision=revision, repo_type=kind, allow_patterns=allowed, local_files_only=cached
    )
    return Path(folder)


def download_size(model: str) -> int | None:
    """Return the bytes of a hub id's usual files, pickled weights included; None if the hub does not report them."""
    from huggingface_hub import HfApi

    if not reachable():
        return None
    try:
        repository, revision = split_revision(model)
        facts = HfApi().model_info(repository, revision=revision, files_metadata=True, timeout=TIMEOUT_SECONDS)
        files = facts.siblings or []
    except Exception:  # a wrong name, an invalid answer, no connection
        return None
    downloads = [file for file in files if any(fnmatch(file.rfilename, pattern) for pattern in (*MODEL_FILES, "*.bin"))]
    return None if any(file.size is None for file in downloads) else sum(file.size or 0 for file in downloads)
