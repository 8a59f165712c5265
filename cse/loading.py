"""Opening models: a reference in, an encoder out; everything that loads a model goes through here."""

from __future__ import annotations

import torch

from cse import hub
from cse.backbone import load_backbone
from cse.checkpoint import load_checkpoint
from cse.encoder import Encoder
from cse.errors import ArtefactError
from cse.methods import UNTRAINED
from cse.model_names import Kind, ModelReference, location, resolve


def load(model: str, pooling: str | None = None, device: str | None = None) -> Encoder:
    """The encoder of a bundled name, a checkpoint folder, or a masked language model's folder or hub id."""
    return open_model(resolve(model, pooling), device)


def open_model(reference: ModelReference, device: str | None = None) -> Encoder:
    """The encoder behind a reference, on a GPU where there is one and no `device` is named.

    Raises ArtefactError for a model that is damaged and for a file of word vectors, which is no encoder.
    """
    if reference.kind is Kind.WORD_VECTORS:
        raise ArtefactError(f"{reference.name} is a file; give the model's folder")
    if reference.kind is Kind.CHECKPOINT:
        encoder = load_checkpoint(hub.model_folder(location(reference.name)), name=reference.label)
    else:
        encoder = _untrained(reference)
    return encoder.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def _untrained(reference: ModelReference) -> Encoder:
    recorded = reference.recorded
    method = UNTRAINED[recorded.pooling if recorded else str(reference.pooling)]
    backbone = load_backbone(location(reference.name))
    encoder = Encoder(*backbone, method, name=reference.label, backbone=reference.name)
    encoder.max_row_length = recorded.max_length if recorded else None
    if encoder.max_content < 1:
        raise ArtefactError(
            f"{reference.name}: its max_seq_length {encoder.max_row_length} leaves no token of a sentence"
        )
    return encoder
