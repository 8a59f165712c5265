"""Upload folders to the hub, with one-line errors."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse.errors import ArtefactError
from cse.storage import hub

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class Repository:
    """A repository on the hub: its `OWNER/NAME`, its kind (model, dataset, space), and `private` for a new one.

    `revision` is the branch to write, created if missing; None is the main one. `hardware` is that of a new Space.
    """

    name: str
    kind: str = "model"
    private: bool = False
    revision: str | None = None
    hardware: str | None = None


@dataclass(frozen=True)
class Uploaded:
    """The address of an upload, and its commit."""

    url: str
    commit: str


def check_name(name: str) -> None:
    """Raise ValueError unless `name` is a valid name of a repository: OWNER/NAME."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ValueError(f"{name!r} is not a valid name on the hub ({error}); give OWNER/NAME") from error
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid name on the hub; give OWNER/NAME")


def check_access() -> None:
    """Raise ArtefactError if the hub cannot be reached, or no token for it is stored."""
    from huggingface_hub import get_token

    if not hub.reachable():
        raise ArtefactError("the model hub cannot be reached; nothing was uploaded")
    if not get_token():
        raise ArtefactError("no token for the model hub; run `hf auth login` or set HF_TOKEN to one with write access")


def upload(folder: Path, repository: Repository, message: str, *, owned: Sequence[str]) -> Uploaded:
    """Upload the folder's files in one commit, creating the repository if it does not exist.

    `owned` are patterns, as in a `FolderKind`, of files of earlier uploads: matching files that are not in the folder
    are deleted, others stay. Raises ValueError for an invalid name, ArtefactError as `check_access` does and for errors
    of the hub.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HTTPError  # base class of all errors of its HTTP client

    check_name(repository.name)
    check_access()
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    kind: dict[str, Any] = {"repo_id": repository.name, "repo_type": repository.kind}
    space = repository.kind == "space"
    of_space: dict[str, Any] = {"space_sdk": "gradio", "space_hardware": repository.hardware} if space else {}
    api = HfApi()
    try:
        made = api.create_repo(**kind, private=repository.private or None, exist_ok=True, **of_space)
        if repository.revision:
            api.create_branch(**kind, branch=repository.revision, exist_ok=True)
        done = api.upload_folder(
            **kind, folder_path=folder, revision=repository.revision, commit_message=message, delete_patterns=[*owned]
        )
    except (HTTPError, OSError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ArtefactError(f"{repository.name}: the hub refused the upload ({reason[-1][:200]})") from error
    return Uploaded(str(made), done.oid)
