"""Checkpoints: the folder of a trained model, with a record of its method and training, and a model card.

If the method trains its backbone, the folder holds the whole model, as transformers and sentence-transformers open it
(`cse.models.pipeline_writer`), and the record `cse_checkpoint.json`. If it does not, or if differences from the
backbone are stored, the folder holds the learned tensors alone, and the record is its `config.json`; the backbone is
then referenced by id or folder and by its fingerprint, and `cse.models.push` puts it into the folder `backbone`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.encoder.stored_tokenizer import OWN_KEY
from cse.errors import ArtefactError
from cse.files.checksums import checksums, verify
from cse.files.weights import SAFE, SINGLE, check_finite, find_weights, read_arrays
from cse.files.writing import FolderKind, read_json, replacing
from cse.models.config import (
    EMBEDDED,
    BackboneRecord,
    CheckpointConfig,
    Storage,
    TrainingRecord,
    model_card,
    pack,
    unpack,
)
from cse.models.fitted_texts import FITTED_TEXTS
from cse.models.names import CONFIG, RECORD, location, record_file
from cse.models.pipeline import HEAD, PIPELINE_FILES, copy_learned, open_pipeline

if TYPE_CHECKING:
    from cse.encoder.torch_encoder import TorchEncoder
    from cse.models.pipeline import Engine

CHECKPOINT_CURE = "copy or train it again"
LOG = "train_log.jsonl"  # a JSON line per training step
CHECKPOINT = FolderKind(
    "a checkpoint", RECORD, ("method", "format"),
    (
        RECORD, *PIPELINE_FILES, "README.md", LOG, FITTED_TEXTS, HEAD, f"{HEAD}/{SINGLE}",
        EMBEDDED, *(f"{EMBEDDED}/{name}" for name in ("*.json", "*.safetensors", "*.txt", "[0-9]_*")),
    ), older=CONFIG,
)  # fmt: skip


def save(
    encoder: TorchEncoder,
    folder: Path,
    training: TrainingRecord,
    *,
    storage: Storage = Storage.FLOAT32,
    home: Path | None = None,
) -> CheckpointConfig:
    """Write a checkpoint folder, atomically replacing an earlier one, and return its record, with `training` in it.

    `home` is the folder that this one will be copied to, from which a path to the backbone is recorded.
    Raises ValueError if `folder` holds anything but a checkpoint, ArtefactError if differences are requested and the
    backbone cannot be opened again.
    """
    import torch
    from huggingface_hub import save_torch_state_dict

    from cse.encoder.backbone import as_arrays, opened_commit
    from cse.models.pipeline_writer import write_model

    revision = opened_commit(encoder.model)
    frozen = encoder.reading.frozen or storage.differs  # then the folder needs its backbone
    whole = not frozen and bool(getattr(encoder.tokenizer, "is_fast", False))
    base, relative = Path(encoder.backbone), None  # a bundled one and a hub id have no path
    if base.is_absolute() and base.is_dir():
        relative = Path(os.path.relpath(base.resolve(), (home or folder).resolve())).as_posix()
    with replacing(folder, CHECKPOINT) as target:
        reason = ""
        if whole:
            reason = write_model(encoder, target, half=storage is Storage.FLOAT16)
        else:
            arrays = pack(as_arrays(encoder.learned()), read_start(encoder) if storage.differs else {}, storage)
            save_torch_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()}, target)
        config = CheckpointConfig(
            encoder.method, BackboneRecord(encoder.backbone, revision, encoder.backbone_fingerprint, relative),
            encoder.freeze_embeddings, sum(tensor.numel() for tensor in encoder.learned().values()), storage, training,
            checksums(target), whole, reason,
        )  # fmt: skip
        (target / (RECORD if whole else CONFIG)).write_text(json.dumps(config.to_json(), indent=1))
        (target / "README.md").write_text(model_card(config))
    return config


def read_start(encoder: TorchEncoder) -> dict[str, np.ndarray]:
    """Read the arrays of the backbone that an encoder was initialised from.

    Raises ArtefactError if it cannot be opened or has changed.
    """
    from cse.encoder.backbone import as_arrays, backbone_tensors, fingerprint, load_backbone, opened_commit

    model, tokenizer = load_backbone(location(encoder.backbone), opened_commit(encoder.model))
    if (current := fingerprint(model, tokenizer)) != encoder.backbone_fingerprint:
        raise ArtefactError(
            f"{encoder.backbone}: changed since training began (from {encoder.backbone_fingerprint} to {current}), so "
            "differences from it cannot be stored; restore it, or store float16"
        )
    return as_arrays(backbone_tensors(model))


def read_checkpoint_config(folder: Path) -> CheckpointConfig:
    """Read the record of a checkpoint folder. Raises ArtefactError if it is missing or damaged."""
    try:
        return CheckpointConfig.from_json(read_json(record_file(folder)))
    except ArtefactError:
        raise
    except ValueError as error:
        raise ArtefactError(f"{folder}: {record_file(folder).name}: {error}; train it again") from error


def weight_layouts(config: CheckpointConfig) -> tuple[str, ...]:
    """Return those of `SAFE` that the checkpoint records; all of them if it records none (the first versions).

    A checkpoint copied over an earlier one may leave a file of the other layout, with old weights.
    """
    return tuple(name for name in SAFE if name in config.sha256) or SAFE


def load_checkpoint(folder: Path, name: str, engine: type[Engine]) -> Engine:
    """Open the encoder of a checkpoint folder; its tensors must be exactly those that its method learns."""
    config = read_checkpoint_config(folder)
    if config.whole:
        verify(folder, config.sha256, CHECKPOINT_CURE)
        head = read_json(folder / CONFIG).get(OWN_KEY, {}).get("head")
        encoder = open_pipeline(
            folder, config.method, engine, name=name, backbone=config.backbone.name, head=head,
            layouts=weight_layouts(config), cure=CHECKPOINT_CURE,
        )  # fmt: skip
        encoder.backbone_fingerprint = config.backbone.fingerprint
        encoder.select_learned(freeze_embeddings=config.frozen_embeddings)
        return encoder
    files = find_weights(str(folder), weight_layouts(config))
    verify(folder, config.sha256, CHECKPOINT_CURE)
    stored = read_arrays(files)
    check_finite(stored, str(folder), CHECKPOINT_CURE)
    encoder = open_on_backbone(folder, config, name, engine)
    encoder.select_learned(freeze_embeddings=config.frozen_embeddings)
    arrays = unpack(stored, encoder.learned_arrays(), str(folder))  # which still hold the backbone's values
    copy_learned(dict(arrays), encoder, str(folder), CHECKPOINT_CURE, backbone=True)
    return encoder


def open_on_backbone(folder: Path, config: CheckpointConfig, name: str, engine: type[Engine]) -> Engine:
    """Open a checkpoint's method on its backbone. Raises ArtefactError if that is missing or has changed."""
    origin = config.backbone
    backbone = origin.place(folder)
    if Path(backbone).is_absolute() and not Path(backbone).is_dir():
        raise ArtefactError(f"{folder}: its backbone {backbone} is missing; restore that folder")
    encoder = engine.open(location(backbone), config.method, name=name, backbone=backbone, revision=origin.revision)
    if (current := encoder.backbone_fingerprint) != origin.fingerprint:
        raise ArtefactError(
            f"{folder}: trained on {origin.name} {origin.fingerprint}, but that is now {current}; restore that backbone"
        )
    return encoder
