"""Upload of folders to the hub, with one-line errors, and copies of models that open on any machine."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from cse.encoder.torch_encoder import TorchEncoder
from cse.errors import ArtefactError, command_line
from cse.files import hub
from cse.files.checksums import verify
from cse.files.replace import read_settled
from cse.files.weights import ANY, find_weights
from cse.files.writing import read_json
from cse.models.checkpoint import (
    CHECKPOINT,
    CHECKPOINT_CURE,
    LOG,
    open_on_backbone,
    read_checkpoint_config,
    weight_layouts,
)
from cse.models.config import EMBEDDED, BackboneRecord, CardFacts, model_card
from cse.models.export import EXPORT
from cse.models.loading import load_export
from cse.models.names import EXPORT_RECORD, Kind, ModelReference, canonical_name, read_config, record_file
from cse.models.pipeline import PIPELINE_FILES, SAVED_KEY
from cse.models.sentence_transformers import transformer_folder


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


class Uploaded(NamedTuple):
    """The address of an upload, and its commit."""

    url: str
    commit: str


def check_name(name: str) -> None:
    """Raise ValueError unless `name` is a valid name of a repository: OWNER/NAME."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
        if "/" not in name:
            raise HFValidationError("it has no owner")
    except HFValidationError as error:
        raise ValueError(f"{name!r} is not a valid name on the hub ({error}); give OWNER/NAME") from error


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


OTHER_FILES = (  # files other than weights that opening a model reads
    "config.json", "tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
    "merges.txt", "modules.json", "sentence_*_config.json", "config_sentence_transformers.json",
    "[0-9]_*/config.json", "[0-9]_*/model.safetensors",
)  # fmt: skip


def copy_model(reference: ModelReference, target: Path) -> None:
    """Copy the files of a local model's folder that opening it needs to `target`.

    Raises ArtefactError for a model that is not a folder (a bundled name, a hub id, word vectors), and as the copy of
    its kind does.
    """
    source = Path(reference.name)
    if not source.is_dir():
        raise ArtefactError(f"{reference.name} is not a model folder; give a checkpoint's or a backbone's")
    copies: dict[Kind, Callable[[Path, Path], None]] = {
        Kind.CHECKPOINT: copy_checkpoint, Kind.EXPORT: _copy_export
    }  # fmt: skip
    copied_whole(source, target, copies.get(reference.kind, _copy_backbone))


def copied_whole(source: Path, target: Path, copy: Callable[[Path, Path], None]) -> None:
    """Call `copy(source, target)`, repeatedly until all files are of one version of the folder `source`.

    `target` is absent or empty, and stays so on an error.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:

        def attempt() -> Path:
            fresh = Path(tempfile.mkdtemp(dir=temporary)) / "copy"
            copy(source, fresh)
            return fresh

        read_settled(source, attempt).rename(target)


def _copy_files(paths: Iterable[Path], source: Path, target: Path) -> None:
    """Copy files to the same places below another folder."""
    for path in paths:
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def copy_checkpoint(source: Path, target: Path) -> None:
    """Copy a checkpoint's configuration and weights.

    If the checkpoint needs a local backbone folder, that is copied to `target/backbone`; a bundled one or a hub id
    stays a name. Of a folder that it does not need, the last part of the name is kept. Raises ArtefactError if a file,
    or a backbone that is needed, is missing or has changed since training.
    """
    config = read_checkpoint_config(source)
    origin = config.backbone
    if config.whole:
        if SAVED_KEY in read_config(str(source)):
            raise ArtefactError(f"{source}: another tool has saved it again; upload it with that tool")
        verify(source, config.sha256, CHECKPOINT_CURE)
        _copy_files((source / name for name in config.sha256), source, target)
        name = Path(origin.name).name if Path(origin.name).is_absolute() else origin.name
        origin = replace(origin, name=name, relative=None)
    else:
        layouts = weight_layouts(config)
        weights = find_weights(str(source), layouts)
        _copy_files({*weights, *(path for name in layouts if (path := source / name).exists())}, source, target)
        backbone = Path(canonical_name(origin.place(source)))
        if backbone.is_absolute():  # else a bundled one or a hub id
            open_on_backbone(source, config, source.name, TorchEncoder)  # raises if it is missing or has changed
            _copy_backbone(backbone, target / EMBEDDED)  # its path means nothing on another machine
            origin = BackboneRecord(f"./{EMBEDDED}", None, origin.fingerprint)
    file = record_file(source)
    value = json.loads(file.read_text(encoding="utf-8"))
    value["backbone"] = {**value["backbone"], "name": origin.name, "revision": origin.revision}
    value["backbone"].pop("relative", None)
    (target / file.name).write_text(json.dumps(value, indent=1), encoding="utf-8")
    CHECKPOINT.check_replaceable(target)


def _copy_export(source: Path, target: Path) -> None:
    """Copy an export without its README, which names the path of its backbone, or a run that was saved again.

    Of the latter the record of the run stays behind. Raises ValueError if the folder of an export has other files,
    ArtefactError if it does not open.
    """
    if (source / EXPORT_RECORD).is_file():
        EXPORT.check_replaceable(source)
        load_export(source, source.name, TorchEncoder)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("README.md"))
        return
    for path in filter(Path.is_file, source.rglob("*")):
        if any(fnmatch(path.relative_to(source).as_posix(), pattern) for pattern in PIPELINE_FILES):
            _copy_files([path], source, target)


def _copy_backbone(source: Path, target: Path) -> None:
    """Copy the configuration, tokenizer and weights of a backbone's folder.

    Raises ArtefactError if the weights are a pickle, as loading one can run code.
    """
    folder = Path(transformer_folder(str(source)))
    weights = find_weights(str(folder), ANY)
    modules = [path.parent for path in source.glob("[0-9]_*/pytorch_model.bin")]
    pickled = [path for path in modules if path != folder and not (path / "model.safetensors").is_file()]
    if pickled or any(path.suffix != ".safetensors" for path in weights):
        raise ArtefactError(f"{source}: its weights are a pickle, which is not copied; save them as safetensors")
    indexes = [folder / name for name in ANY if name.endswith(".json")]
    others = [path for root in (source, folder) for pattern in OTHER_FILES for path in root.glob(pattern)]
    _copy_files({*weights, *(path for path in (*indexes, *others) if path.is_file())}, source, target)


def stage_checkpoint(source: Path, target: Path, facts: CardFacts) -> None:
    """Write a checkpoint that opens on any machine to `target`, with its training log and card.

    Raises ArtefactError if `source` is damaged or no checkpoint, or its backbone is missing or has changed.
    """
    if "method" not in read_json(record_file(source)):
        opens_elsewhere = (source / "modules.json").is_file()
        cure = f'SentenceTransformer("{source}").push_to_hub("OWNER/NAME")' if opens_elsewhere else "`hf upload`"
        raise ArtefactError(f"{source}: is no checkpoint of {command_line('train')} and no index; upload it by {cure}")
    copied_whole(source, target, copy_checkpoint)
    if (source / LOG).is_file():
        shutil.copyfile(source / LOG, target / LOG)
    (target / "README.md").write_text(model_card(read_checkpoint_config(target), facts), encoding="utf-8")


def push_checkpoint(source: Path, repository: Repository, facts: CardFacts) -> Uploaded:
    """Upload a checkpoint, including a local backbone folder. Raises as `stage_checkpoint` and `upload` do."""
    with tempfile.TemporaryDirectory() as temporary:
        staged = Path(temporary) / "checkpoint"
        stage_checkpoint(source, staged, replace(facts, name=repository.name))
        return upload(staged, repository, f"Push the checkpoint {source.resolve().name}", owned=CHECKPOINT.files)
