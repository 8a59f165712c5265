"""Model folders that travel: a copy that opens wherever it lies, a backbone of this machine put into it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from cse.encoding.backbone import fingerprint, load_backbone
from cse.errors import ArtefactError
from cse.models.checkpoint import CHECKPOINT, read_checkpoint_config, weight_layouts
from cse.models.config import EMBEDDED, CheckpointConfig
from cse.models.exported import load_export
from cse.models.names import CONFIG, Kind, ModelReference, canonical_name
from cse.publishing.export_files import EXPORT
from cse.storage.replace import read_settled
from cse.storage.weights import ANY, find_weights

T = TypeVar("T")

BESIDE = (  # what opening a model reads beside its weights
    "config.json", "tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
    "merges.txt", "modules.json", "sentence_bert_config.json", "*_Pooling/config.json",
)  # fmt: skip


def copy_model(reference: ModelReference, target: Path) -> None:
    """Copy a local model's folder to `target`, with what opening it reads and nothing else.

    Raises ArtefactError for what no folder holds: a bundled name, a hub id, word vectors; what copying each kind does.
    """
    source = Path(reference.name)
    if not source.is_dir():
        raise ArtefactError(f"{reference.name} is no model folder; give a checkpoint's or a backbone's")
    if reference.kind is Kind.CHECKPOINT:
        copy_checkpoint(source, target)
    else:
        copied_whole(source, target, copy_export if reference.kind is Kind.EXPORT else copy_backbone)


def copy_checkpoint(source: Path, target: Path) -> CheckpointConfig:
    """Copy a checkpoint's configuration and weights, and return what the copied configuration says.

    A backbone that is a folder goes along, as `target/backbone`; a bundled one or a hub id stays a name. Raises
    ArtefactError where the backbone is missing or has changed since training.
    """
    return copied_whole(source, target, _copy_checkpoint)


def copied_whole(source: Path, target: Path, copy: Callable[[Path, Path], T]) -> T:
    """The result of `copy(source, target)`, all of whose files are of one commit of the folder `source`.

    `target` is absent or empty; an error leaves it so.
    """

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as beside:

        def attempt() -> tuple[Path, T]:
            fresh = Path(tempfile.mkdtemp(dir=beside)) / "copy"
            return fresh, copy(source, fresh)

        fresh, found = read_settled(source, attempt)
        fresh.rename(target)
        return found


def _copy_checkpoint(source: Path, target: Path) -> CheckpointConfig:
    config = read_checkpoint_config(source)
    origin = config.backbone
    layouts = weight_layouts(config)
    weights = find_weights(str(source), layouts)
    target.mkdir(parents=True, exist_ok=True)
    for path in {*weights, *(path for name in layouts if (path := source / name).exists())}:
        shutil.copyfile(path, target / path.name)
    if (place := backbone_folder(source, origin.name)) is not None:
        found = fingerprint(*load_backbone(place))
        if found != origin.fingerprint:
            raise ArtefactError(
                f"{source}: trained on {place} {origin.fingerprint}, but that is now {found}; restore that backbone"
            )
        copy_backbone(place, target / EMBEDDED)
        config = replace(config, backbone=replace(origin, name=f"./{EMBEDDED}", revision=None))
    value = json.loads((source / CONFIG).read_text(encoding="utf-8"))
    value["backbone"] = {**value["backbone"], "name": config.backbone.name, "revision": config.backbone.revision}
    (target / CONFIG).write_text(json.dumps(value, indent=1), encoding="utf-8")
    CHECKPOINT.check_replaceable(target)
    return config


def copy_export(source: Path, target: Path) -> None:
    """Copy an export but for its README, which says where its backbone lay.

    Raises ValueError where something else lies in it, ArtefactError for one that does not open here.
    """
    EXPORT.check_replaceable(source)
    load_export(source, source.name)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("README.md"))


def backbone_folder(checkpoint: Path, name: str) -> Path | None:
    """The folder of a checkpoint's backbone, which may lie in the checkpoint's own; None for a bundled one or a hub id.

    Raises ArtefactError where it was a folder of this machine that is no more.
    """
    if name == f"./{EMBEDDED}":
        return checkpoint / EMBEDDED
    place = Path(canonical_name(name))
    if place.is_absolute() and not place.is_dir():
        raise ArtefactError(f"{checkpoint}: its backbone {name} is missing; restore that folder")
    return place if place.is_absolute() else None


def copy_backbone(source: Path, target: Path) -> None:
    """Copy the configuration, tokenizer and weights of a model folder that others wrote.

    Pickles do not travel. Raises ArtefactError where the weights are one.
    """
    weights = find_weights(str(source), ANY)
    if any(path.suffix != ".safetensors" for path in weights):
        raise ArtefactError(f"{source}: its weights are a pickle, which is not passed on; save it as safetensors")
    indexes = [source / name for name in ANY if name.endswith(".json")]
    beside = [path for pattern in BESIDE for path in source.glob(pattern)]
    for path in {*weights, *(path for path in (*indexes, *beside) if path.is_file())}:
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
