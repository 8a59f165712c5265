"""Folders that go to the hub, and what went wrong in one line."""

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
    """A repository on the hub: its `OWNER/NAME`, its kind (model, dataset, space), whether a new one is private.

    `revision` is the branch that is written, made where it is missing; None is the main one. `hardware` is what a new
    Space runs on.
    """

    name: str
    kind: str = "model"
    private: bool = False
    revision: str | None = None
    hardware: str | None = None


@dataclass(frozen=True)
class Uploaded:
    """Where an upload can be seen, and the commit that it made."""

    url: str
    commit: str


def check_name(name: str) -> None:
    """Raise ValueError unless `name` can be that of a repository: OWNER/NAME."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ValueError(f"{name!r} is no name for the hub ({error}); give OWNER/NAME") from error
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for the hub; give OWNER/NAME")


def check_access() -> None:
    """Raise ArtefactError where the hub cannot be reached, or where no token for it is stored."""
    from huggingface_hub import get_token

    if not hub.reachable():
        raise ArtefactError("the model hub cannot be reached; nothing was uploaded")
    if not get_token():
        raise ArtefactError("no token for the model hub; run `hf auth login` or set HF_TOKEN to one that may write")


def upload(folder: Path, repository: Repository, message: str, *, owned: Sequence[str]) -> Uploaded:
    """Make the repository where it is missing and put the folder's files into it, in one commit.

    `owned` are patterns, as a `FolderKind` has them, of what an earlier upload may have left there: files that match
    and are not in the folder are deleted, others stay.
    Raises ValueError for a name that is none, ArtefactError for what `check_access` says and what the hub refuses.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HTTPError  # of its HTTP client, from which all its errors derive

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
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ArtefactError(f"{repository.name}: the hub did not take it ({said[-1][:200]})") from error
    return Uploaded(str(made), done.oid)
