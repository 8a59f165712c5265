"""Checkpoints: exactly the learned tensors and a configuration.

A folder holds `config.json`, `model.safetensors` (in shards if large) and a model card. The backbone is referenced by
id or folder and by its fingerprint; `cse.publishing.copying` puts it into the folder `backbone`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch

from cse.encoding.backbone import backbone_tensors, fingerprint, load_backbone
from cse.encoding.encoder import Encoder
from cse.encoding.heads import copy_tensor
from cse.errors import ArtefactError
from cse.models.card import model_card
from cse.models.config import EMBEDDED, BackboneRecord, CheckpointConfig, TrainingRecord
from cse.models.names import CONFIG, location, read_config
from cse.models.storage import Storage, pack, unpack
from cse.storage.checksums import checksums, verify
from cse.storage.weights import INDEX, SAFE, SHARD, SINGLE, check_finite, find_weights, read_tensors
from cse.storage.writing import FolderKind, write_folder

CURE = "copy or train it again"
LOG = "train_log.jsonl"  # a JSON line per training step
CHECKPOINT = FolderKind(
    "a checkpoint", CONFIG, ("method", "format"),
    (
        CONFIG, SINGLE, SHARD, INDEX, "README.md", LOG,
        EMBEDDED, *(f"{EMBEDDED}/{name}" for name in ("*.json", "*.safetensors", "*.txt", "*_Pooling")),
    ),
)  # fmt: skip


def save(
    encoder: Encoder,
    folder: Path,
    training: TrainingRecord,
    *,
    storage: Storage = Storage.FLOAT32,
    max_shard_size: str | None = None,
) -> None:
    """Write a checkpoint folder, atomically replacing an earlier one; `training` goes into its config.

    No file is larger than `max_shard_size`, by default 2 GB, and for int8 9 MB, which hosts accept without Git LFS.
    Raises ValueError if `folder` holds anything but a checkpoint, ArtefactError if int8 differences are requested and
    the backbone cannot be opened again.
    """
    from huggingface_hub import save_torch_state_dict

    learned = encoder.learned()
    revision = getattr(encoder.model.config, "_commit_hash", None)  # of a hub model
    tensors = pack(learned, read_start(encoder) if storage is Storage.INT8 else {}, storage)
    config = CheckpointConfig(
        encoder.method, BackboneRecord(encoder.backbone, revision, encoder.backbone_fingerprint),
        encoder.freeze_embeddings, sum(tensor.numel() for tensor in learned.values()), storage, training,
    )  # fmt: skip

    def fill(target: Path) -> None:
        shard = max_shard_size or ("9MB" if storage is Storage.INT8 else "2GB")
        save_torch_state_dict(tensors, target, max_shard_size=shard)
        recorded = replace(config, sha256=checksums(target))
        (target / CONFIG).write_text(json.dumps(recorded.to_json(), indent=1))
        (target / "README.md").write_text(model_card(config))

    write_folder(folder, fill, CHECKPOINT)


def read_start(encoder: Encoder) -> dict[str, torch.nn.Parameter]:
    """Read the tensors of the backbone that an encoder was initialised from.

    Raises ArtefactError if it cannot be opened or has changed.
    """
    model, tokenizer = load_backbone(location(encoder.backbone), getattr(encoder.model.config, "_commit_hash", None))
    if (found := fingerprint(model, tokenizer)) != encoder.backbone_fingerprint:
        raise ArtefactError(
            f"{encoder.backbone}: changed since training began (from {encoder.backbone_fingerprint} to {found}), so "
            "differences from it cannot be stored; restore it, or store float16"
        )
    return backbone_tensors(model)


def read_checkpoint_config(folder: Path) -> CheckpointConfig:
    """Read the config of a checkpoint folder. Raises ArtefactError if it is missing or damaged."""
    try:
        return CheckpointConfig.from_json(read_config(folder))
    except ArtefactError:
        raise
    except ValueError as error:
        raise ArtefactError(f"{folder}: {CONFIG}: {error}; train it again") from error


def weight_layouts(config: CheckpointConfig) -> tuple[str, ...]:
    """Return those of `SAFE` that the checkpoint records; all of them if it records none (the first versions).

    A checkpoint copied over an earlier one may leave a file of the other layout, with old weights.
    """
    return tuple(name for name in SAFE if name in config.sha256) or SAFE


def load_checkpoint(folder: Path, name: str) -> Encoder:
    """Open the encoder of a checkpoint folder; its tensors must be exactly those that its method learns."""
    config = read_checkpoint_config(folder)
    files, origin = find_weights(str(folder), weight_layouts(config)), config.backbone
    verify(folder, config.sha256, CURE)
    tensors = read_tensors(files)
    check_finite(tensors, str(folder), CURE)
    place = str(Path(folder) / EMBEDDED) if origin.name == f"./{EMBEDDED}" else origin.name
    backbone = load_backbone(location(place), revision=origin.revision)
    encoder = Encoder(*backbone, config.method, name=name, backbone=place)
    if (found := encoder.backbone_fingerprint) != origin.fingerprint:
        raise ArtefactError(
            f"{folder}: trained on {origin.name} {origin.fingerprint}, but that is now {found}; restore that backbone"
        )
    encoder.select_learned(freeze_embeddings=config.frozen_embeddings)
    _copy_learned(tensors, encoder, folder)
    return encoder


def _copy_learned(stored: dict[str, torch.Tensor], encoder: Encoder, folder: Path) -> None:
    learned = encoder.learned()
    try:
        tensors = unpack(stored, learned)  # `learned` still holds the backbone's values
    except ArtefactError as error:
        raise ArtefactError(f"{folder}: {error}; train it again") from error
    if tensors.keys() != learned.keys():
        odd = sorted(tensors.keys() ^ learned.keys())[0]
        raise ArtefactError(f"{folder}: tensors do not fit {encoder.method.name}, first {odd!r}; train it again")
    for key, tensor in learned.items():
        copy_tensor(tensors[key], tensor, f"{folder}: {key}")
