"""Opening of models: from a reference to an encoder. All code that loads a model uses this module."""

from __future__ import annotations

from pathlib import Path

from cse.encoding.backbone import load_backbone
from cse.encoding.devices import best_device, device_of
from cse.encoding.encoder import Encoder
from cse.encoding.heads import copy_tensor, stored_head
from cse.errors import ArtefactError
from cse.methods.method import UNTRAINED, When
from cse.models.checkpoint import load_checkpoint
from cse.models.exported import load_export
from cse.models.families import FAMILIES, HEADS, Family
from cse.models.names import Kind, ModelReference, location, resolve
from cse.models.sentence_transformers import RecordedPooling
from cse.storage import hub
from cse.storage.replace import read_settled
from cse.storage.weights import find_weights, read_tensors


def load(model: str, pooling: str | None = None, device: str | None = None, family: str | None = None) -> Encoder:
    """Open the encoder of a bundled name, a checkpoint, or a masked language model's folder or hub id."""
    return read_settled(Path(str(model)), lambda: open_model(resolve(model, pooling, family), device))


def open_model(reference: ModelReference, device: str | None = None) -> Encoder:
    """Open the encoder of a reference on `device`, by default that of `best_device`.

    Raises ArtefactError for a damaged model and for a file of word vectors, which is no encoder; ValueError for an
    unknown or missing device.
    """
    place = device_of(device) if device else best_device()
    if reference.kind is Kind.WORD_VECTORS:
        raise ArtefactError(f"{reference.name} is a file; give the model's folder")
    encoder = read_settled(Path(location(reference.name)), lambda: _read(reference))
    return encoder.to(place)


def _read(reference: ModelReference) -> Encoder:
    if reference.kind is Kind.CHECKPOINT:
        return load_checkpoint(hub.model_folder(location(reference.name)), name=reference.label)
    if reference.kind is Kind.EXPORT:
        return load_export(hub.model_folder(location(reference.name)), name=reference.label)
    return _published(reference, FAMILIES[reference.family]) if reference.family else _untrained(reference)


def _untrained(reference: ModelReference) -> Encoder:
    recorded = reference.recorded
    method = UNTRAINED[recorded.pooling if recorded else str(reference.pooling)]
    weights = read_tensors(find_weights(location(reference.name)))
    model, tokenizer = load_backbone(location(reference.name), weights=weights)
    head = None
    if method.head_when is When.ALWAYS:
        places = (f"{model.base_model_prefix}.pooler.", "pooler.")
        if not any(key.startswith(places) for key in weights):
            raise ArtefactError(f"{reference.name}: its files hold no pooler; give another `pooling`")
        head = stored_head(reference.name, method.head, model, weights, places)
    encoder = Encoder(model, tokenizer, method, name=reference.label, backbone=reference.name, head=head)
    if recorded:
        _call_as(recorded, encoder)
    if encoder.max_content < 1:
        raise ArtefactError(
            f"{reference.name}: its max_seq_length {encoder.max_row_length} leaves no token of a sentence"
        )
    return encoder


def _call_as(recorded: RecordedPooling, encoder: Encoder) -> None:
    """Set an encoder's length, prompts, dimension and similarity function as a sentence-transformers model records."""
    calls = recorded.calls
    encoder.max_row_length = recorded.max_length
    encoder.prompts |= dict(calls.prompts)
    encoder.default_prompt_name, encoder.truncate_dim = calls.default_prompt_name, calls.truncate_dim
    try:
        encoder.similarity_fn_name = calls.similarity_fn_name
        if recorded.max_length is None:
            encoder.max_seq_length = calls.tokens
    except ValueError as error:
        raise ArtefactError(f"{encoder.backbone}: its own {error}") from error


def _published(reference: ModelReference, family: Family) -> Encoder:
    """Open a published checkpoint; check and copy every tensor that its family's encoding reads."""
    name = reference.name
    weights = read_tensors(find_weights(location(name)))
    learned = weights.pop(family.tensor, None) if family.tensor else None
    if family.tensor and learned is None:
        raise ArtefactError(f"{name}: it has no {family.tensor}, so it is no {family.name} checkpoint")
    if learned is not None and (learned.dim() != 2 or not len(learned)):
        raise ArtefactError(f"{name}: its {family.tensor} is {tuple(learned.shape)}, not a matrix")
    model, tokenizer = load_backbone(location(name), weights=weights)
    method = family.reading("roberta" in model.config.model_type, rows=0 if learned is None else len(learned))
    head = stored_head(name, method.head, model, weights, HEADS) if method.head_when is When.ALWAYS else None
    encoder = Encoder(model, tokenizer, method, name=reference.label, backbone=name, head=head)
    if learned is not None:
        copy_tensor(learned, getattr(encoder, family.learned), f"{name}: {family.tensor}")
    return encoder
