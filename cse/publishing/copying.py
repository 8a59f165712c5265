"""Copy model folders so that they open on any machine, including a local backbone."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

from cse.backbones.backbone import fingerprint, load_backbone
from cse.engines.torch_encoder import TorchEncoder
from cse.errors import ArtefactError
from cse.models.checkpoint import CHECKPOINT, read_checkpoint_config, weight_layouts
from cse.models.config import EMBEDDED, BackboneRecord, CheckpointConfig
from cse.models.exported import load_export
from cse.models.names import EXPORT_RECORD, Kind, ModelReference, canonical_name, read_config, record_file
from cse.models.pipeline import PIPELINE_FILES, SAVED
from cse.models.sentence_transformers import transformer_folder
from cse.publishing.export_files import EXPORT
from cse.storage.checksums import verify
from cse.storage.replace import read_settled
from cse.storage.weights import ANY, find_weights

T = TypeVar("T")

OTHER_FILES = (  # files other than weights that opening a model reads
    "config.json", "tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
    "merges.txt", "modules.json", "sentence_*_config.json", "config_sentence_transformers.json",
    *(f"*_{name}/config.json" for name in ("Pooling", "Dense", "Normalize", "Dropout")), "*_Dense/model.safetensors",
)  # fmt: skip


def copy_model(reference: ModelReference, target: Path) -> None:
    """Copy the files of a local model's folder that opening it needs to `target`.

    Raises ArtefactError for a model that is not a folder (a bundled name, a hub id, word vectors), and as the copy of
    its kind does.
    """
    source = Path(reference.name)
    if not source.is_dir():
        raise ArtefactError(f"{reference.name} is not a model folder; give a checkpoint's or a backbone's")
    if reference.kind is Kind.CHECKPOINT:
        copy_checkpoint(source, target)
    else:
        saved = copy_export if (source / EXPORT_RECORD).is_file() else copy_saved
        copied_whole(source, target, saved if reference.kind is Kind.EXPORT else copy_backbone)


def copy_checkpoint(source: Path, target: Path) -> CheckpointConfig:
    """Copy a checkpoint's configuration and weights, and return the copied configuration.

    If the checkpoint needs a local backbone folder, that is copied to `target/backbone`; a bundled one or a hub id
    stays a name. Of a folder that it does not need, the last part of the name is kept. Raises ArtefactError if a file,
    or a backbone that is needed, is missing or has changed since training.
    """
    return copied_whole(source, target, _copy_checkpoint)


def copied_whole(source: Path, target: Path, copy: Callable[[Path, Path], T]) -> T:
    """Return `copy(source, target)`, repeated until all files are of one version of the folder `source`.

    `target` is absent or empty, and stays so on an error.
    """

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:

        def attempt() -> tuple[Path, T]:
            fresh = Path(tempfile.mkdtemp(dir=temporary)) / "copy"
            return fresh, copy(source, fresh)

        fresh, found = read_settled(source, attempt)
        fresh.rename(target)
        return found


def _copy_checkpoint(source: Path, target: Path) -> CheckpointConfig:
    config = read_checkpoint_config(source)
    origin = config.backbone
    if config.whole:
        _copy_whole(source, target, config)
        named = replace(origin, name=Path(origin.name).name) if Path(origin.name).is_absolute() else origin
        return _with_backbone(source, target, config, replace(named, relative=None))
    layouts = weight_layouts(config)
    weights = find_weights(str(source), layouts)
    target.mkdir(parents=True, exist_ok=True)
    for path in {*weights, *(path for name in layouts if (path := source / name).exists())}:
        shutil.copyfile(path, target / path.name)
    if (place := backbone_folder(source, origin)) is not None:
        found = fingerprint(*load_backbone(place))
        if found != origin.fingerprint:
            raise ArtefactError(
                f"{source}: trained on {place} {origin.fingerprint}, but that is now {found}; restore that backbone"
            )
        copy_backbone(place, target / EMBEDDED)
        origin = BackboneRecord(f"./{EMBEDDED}", None, origin.fingerprint)
    return _with_backbone(source, target, config, origin)


def _copy_whole(source: Path, target: Path, config: CheckpointConfig) -> None:
    if SAVED in read_config(str(source)):
        raise ArtefactError(f"{source}: another tool has saved it again since its training; upload it with that tool")
    verify(source, config.sha256, "copy or train it again")
    for name in config.sha256:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)


def _with_backbone(source: Path, target: Path, config: CheckpointConfig, origin: BackboneRecord) -> CheckpointConfig:
    """Copy the record with another place of the backbone, and return it."""
    file = record_file(source)
    value = json.loads(file.read_text(encoding="utf-8"))
    value["backbone"] = {**value["backbone"], "name": origin.name, "revision": origin.revision}
    value["backbone"].pop("relative", None)
    (target / file.name).write_text(json.dumps(value, indent=1), encoding="utf-8")
    CHECKPOINT.check_replaceable(target)
    return replace(config, backbone=origin)


def copy_export(source: Path, target: Path) -> None:
    """Copy an export without its README, which names the path of its backbone.

    Raises ValueError if the folder has other files, ArtefactError if it does not open.
    """
    EXPORT.check_replaceable(source)
    load_export(source, source.name, TorchEncoder)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("README.md"))


def copy_saved(source: Path, target: Path) -> None:
    """Copy the model in a run's folder that sentence-transformers has saved again, without the record of the run."""
    for path in source.rglob("*"):
        name = path.relative_to(source).as_posix()
        if path.is_file() and any(fnmatch(name, pattern) for pattern in PIPELINE_FILES):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)


def backbone_folder(checkpoint: Path, origin: BackboneRecord) -> Path | None:
    """The folder of a checkpoint's backbone, which may be inside the checkpoint; None for a bundled one or a hub id.

    Raises ArtefactError if it was a local folder that no longer exists.
    """
    place = Path(canonical_name(origin.place(checkpoint)))
    if place.is_absolute() and not place.is_dir():
        raise ArtefactError(f"{checkpoint}: its backbone {origin.name} is missing; restore that folder")
    return place if place.is_absolute() else None


def copy_backbone(source: Path, target: Path) -> None:
    """Copy the configuration, tokenizer and weights of a backbone's folder.

    Raises ArtefactError if the weights are a pickle, as loading one can run code.
    """
    folder = Path(transformer_folder(str(source)))
    weights = find_weights(str(folder), ANY)
    if any(path.suffix != ".safetensors" for path in weights):
        raise ArtefactError(f"{source}: its weights are a pickle, which is not copied; save them as safetensors")
    indexes = [folder / name for name in ANY if name.endswith(".json")]
    others = [path for place in (source, folder) for pattern in OTHER_FILES for path in place.glob(pattern)]
    for path in {*weights, *(path for path in (*indexes, *others) if path.is_file())}:
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
