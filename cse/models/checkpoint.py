"""Checkpoints: exactly the learned tensors and a configuration.

A folder holds `config.json`, `model.safetensors` (in shards if large) and a model card. The backbone is referenced by
id or folder and by its fingerprint; `cse.publishing.copying` puts it into the folder `backbone`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from cse.errors import ArtefactError
from cse.models.card import model_card
from cse.models.config import EMBEDDED, BackboneRecord, CheckpointConfig, TrainingRecord
from cse.models.names import CONFIG, location, read_config
from cse.models.storage import Storage, pack, stored_names, unpack
from cse.storage.checksums import checksums, verify
from cse.storage.weights import INDEX, SAFE, SHARD, SINGLE, check_finite, find_weights, read_arrays
from cse.storage.writing import FolderKind, write_folder

if TYPE_CHECKING:
    from cse.encoding.encoder import Encoder
    from cse.engines.torch_encoder import TorchEncoder

    Engine = TypeVar("Engine", bound=Encoder)

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
    encoder: TorchEncoder,
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
    import torch
    from huggingface_hub import save_torch_state_dict

    from cse.backbones.backbone import as_arrays

    learned = as_arrays(encoder.learned())
    revision = getattr(encoder.model.config, "_commit_hash", None)  # of a hub model
    stored = pack(learned, read_start(encoder) if storage is Storage.INT8 else {}, storage)
    tensors = {name: torch.from_numpy(array) for name, array in stored.items()}
    config = CheckpointConfig(
        encoder.method, BackboneRecord(encoder.backbone, revision, encoder.backbone_fingerprint),
        encoder.freeze_embeddings, sum(array.size for array in learned.values()), storage, training,
    )  # fmt: skip

    def fill(target: Path) -> None:
        shard = max_shard_size or ("9MB" if storage is Storage.INT8 else "2GB")
        save_torch_state_dict(tensors, target, max_shard_size=shard)
        recorded = replace(config, sha256=checksums(target))
        (target / CONFIG).write_text(json.dumps(recorded.to_json(), indent=1))
        (target / "README.md").write_text(model_card(config))

    write_folder(folder, fill, CHECKPOINT)


def read_start(encoder: TorchEncoder) -> dict[str, np.ndarray]:
    """Read the arrays of the backbone that an encoder was initialised from.

    Raises ArtefactError if it cannot be opened or has changed.
    """
    from cse.backbones.backbone import as_arrays, backbone_tensors, fingerprint, load_backbone

    model, tokenizer = load_backbone(location(encoder.backbone), getattr(encoder.model.config, "_commit_hash", None))
    if (found := fingerprint(model, tokenizer)) != encoder.backbone_fingerprint:
        raise ArtefactError(
            f"{encoder.backbone}: changed since training began (from {encoder.backbone_fingerprint} to {found}), so "
            "differences from it cannot be stored; restore it, or store float16"
        )
    return as_arrays(backbone_tensors(model))


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


def load_checkpoint(folder: Path, name: str, engine: type[Engine]) -> Engine:
    """Open the encoder of a checkpoint folder; its tensors must be exactly those that its method learns."""
    config = read_checkpoint_config(folder)
    files, origin = find_weights(str(folder), weight_layouts(config)), config.backbone
    verify(folder, config.sha256, CURE)
    stored = read_arrays(files)
    check_finite(stored, str(folder), CURE)
    place = str(Path(folder) / EMBEDDED) if origin.name == f"./{EMBEDDED}" else origin.name
    encoder = engine.open(location(place), config.method, name=name, backbone=place, revision=origin.revision)
    if (found := encoder.backbone_fingerprint) != origin.fingerprint:
        raise ArtefactError(
            f"{folder}: trained on {origin.name} {origin.fingerprint}, but that is now {found}; restore that backbone"
        )
    encoder.select_learned(freeze_embeddings=config.frozen_embeddings)
    _copy_learned(stored, encoder, folder)
    return encoder


def _copy_learned(stored: dict[str, np.ndarray], encoder: Encoder, folder: Path) -> None:
    learned = encoder.learned_arrays()
    if odd := sorted(stored_names(stored) ^ learned.keys()):
        raise ArtefactError(f"{folder}: tensors do not fit {encoder.method.name}, first {odd[0]!r}; train it again")
    for name, array in unpack(stored, learned, str(folder)):  # `learned` still holds the backbone's values
        copy_array(array, learned[name], f"{folder}: {name}")


def copy_array(array: np.ndarray, target: np.ndarray, what: str) -> None:
    """Copy a stored array into one of `learned_arrays`.

    Raises ArtefactError, beginning with `what`, for another shape.
    """
    if array.shape != target.shape:
        raise ArtefactError(f"{what} is {array.shape}, not {target.shape}")
    np.copyto(target, array)
