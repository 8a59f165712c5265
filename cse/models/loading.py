"""Opening of models: from a reference to an encoder. All code that loads a model uses this module."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.encoder.devices import best_device, device_of, gpu_is_possible
from cse.encoder.encoder import Encoder
from cse.encoder.stored_backbone import UnsupportedError, stored_head
from cse.encoder.stored_tokenizer import OWN_KEY
from cse.errors import ArtefactError
from cse.files import hub
from cse.files.replace import read_settled
from cse.files.weights import ANY, check_finite, find_weights, read_arrays
from cse.files.writing import damage_named, read_json
from cse.methods.catalogue import UNTRAINED
from cse.methods.method import LAYERS, When
from cse.methods.settings import from_json
from cse.models.checkpoint import CHECKPOINT_CURE, load_checkpoint, open_on_backbone, read_checkpoint_config
from cse.models.names import (
    AUTO,
    BACKENDS,
    CONFIG,
    EXPORT_RECORD,
    FAMILIES,
    HEADS,
    OPENVINO,
    Family,
    Kind,
    ModelReference,
    location,
    model_folder,
    read_config,
    resolve,
)
from cse.models.pipeline import SENTENCE_TRANSFORMERS, copy_array, copy_learned, hidden_size, open_pipeline, saved_again
from cse.models.sentence_transformers import call_as, recorded_static, static_folder
from cse.versions import check_versions

log = logging.getLogger("cse.models")

if TYPE_CHECKING:
    from cse.encoder.torch_encoder import TorchEncoder
    from cse.models.pipeline import Engine


def load_start(folder: Path, name: str, engine: type[Engine]) -> Engine:
    """Open the encoder that a checkpoint's training began with: its backbone, with the prefix, slots and head drawn.

    They are drawn by the seed, as training does once the backbone is open (`cse.training.run.prepare`). Raises
    ArtefactError if the backbone is missing or has changed, or if nothing records the seed of what is drawn.
    """
    config = read_checkpoint_config(folder)
    encoder = open_on_backbone(folder, config, name, engine)
    headed = encoder.reading.head_when is When.ALWAYS
    if not encoder.reading.prefix and not headed:  # slots begin as the word that stands for them
        return encoder
    import torch

    from cse.encoder.backbone import as_arrays, load_backbone
    from cse.encoder.torch_encoder import TorchEncoder, new_prefix

    seed = config.training.get("settings", {}).get("seed")
    if seed is None:
        raise ArtefactError(f"{folder}: records no seed, so its start cannot be drawn again; train it again")
    # A head's layers are drawn after the prefix, with the whole model.
    opened = load_backbone(location(config.backbone.place(folder)), config.backbone.revision) if headed else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if opened is None:
            prefix = encoder.learned_arrays()["prefix"]
            copy_array(new_prefix(*prefix.shape).numpy(), prefix, str(folder))
        else:
            begun = as_arrays(TorchEncoder(*opened, config.method, name=config.method.name).learned())
            drawn = {key: array for key, array in begun.items() if not key.startswith("backbone.")}
            copy_learned(drawn, encoder, str(folder), CHECKPOINT_CURE)
    return encoder


def load(
    model: str,
    pooling: str | None = None,
    device: str | None = None,
    family: str | None = None,
    backend: str = AUTO,
    start: bool = False,
) -> Encoder:
    """Open the encoder of a bundled name, a checkpoint, or a masked language model's folder or hub id."""

    def opened() -> Encoder:
        reference = resolve(model, pooling, family)
        return open_model(reference.start if start else reference, device, backend)

    return read_settled(Path(str(model)), opened)


def open_model(reference: ModelReference, device: str | None = None, backend: str = AUTO) -> Encoder:
    """Open the encoder of a reference on `device`, by default the one that CSE_DEVICE names, else a GPU, else the CPU.

    `backend` auto is the one that CSE_BACKEND names, else OpenVINO on a CPU if it is installed and can run the model,
    else PyTorch.
    Raises ArtefactError for a damaged model and for a file of word vectors, which is no encoder; ValueError for an
    unknown or missing device or backend, a package that is too old, and a model that the `backend` cannot run.
    """
    check_versions()
    asked_by = "`backend`"
    if backend == AUTO and os.environ.get("CSE_BACKEND"):
        backend, asked_by = os.environ["CSE_BACKEND"], "CSE_BACKEND"
    if backend not in BACKENDS:
        raise ValueError(f"{asked_by} is {backend!r}; choose from {', '.join(BACKENDS)}")
    target = device or os.environ.get("CSE_DEVICE") or None
    if reference.kind is Kind.STATIC:
        return _opened(reference, Encoder)
    if backend == OPENVINO or (
        backend == AUTO
        and find_spec("openvino")
        # PyTorch is imported only where there may be a GPU.
        and (
            target == "cpu" if target else not (gpu_is_possible() and find_spec("torch")) or best_device().type == "cpu"
        )
    ):
        try:
            if find_spec("openvino") is None:
                raise ValueError("`backend` is openvino, which is not installed; run: pip install openvino")
            check_versions("openvino")
            from cse.encoder.openvino_encoder import OpenVinoEncoder

            encoder = _opened(reference, OpenVinoEncoder).to(target or "cpu")
            encoder.reference = reference
            return encoder
        except UnsupportedError as error:
            if backend == OPENVINO:
                return _converted(reference, str(error), target)
            log.info("%s runs on PyTorch, not on OpenVINO (%s)", reference.name, error)
    return open_by_torch(reference, device)


def open_by_torch(reference: ModelReference, device: str | None = None) -> TorchEncoder:
    """Open the encoder of a reference on PyTorch, for training and for looking inside it; errors as `open_model`."""
    _check_torch(reference.name)
    if reference.kind is Kind.STATIC:
        raise ValueError(
            f"{reference.name} is a {reference.kind.value}, which has no layers to train, export or show; other tools "
            "open its folder as it is"
        )
    from cse.encoder.torch_encoder import TorchEncoder

    target = device_of(device) if device else best_device()
    return _opened(reference, TorchEncoder).to(target)


def on_torch(encoder: Encoder) -> TorchEncoder:
    """Return an encoder on PyTorch: itself, or the same model, opened by the first call."""
    _check_torch(encoder.name)
    from cse.encoder.torch_encoder import TorchEncoder

    if isinstance(encoder, TorchEncoder):
        return encoder
    if encoder.reference is None:
        raise ValueError(f"{encoder.name} was not opened by `cse.load`; open it with `backend` torch")
    if encoder.on_torch is None:  # threads may open it twice, and keep one
        encoder.on_torch = open_by_torch(encoder.reference, "cpu")
    return encoder.on_torch


def _converted(reference: ModelReference, reason: str, device: str | None) -> TorchEncoder:
    """Open an encoder on the CPU whose blocks OpenVINO runs by a graph converted from PyTorch's, which takes seconds.

    Raises ValueError, with the `reason` that there is no graph of ours, for a model of BERT's or RoBERTa's kind, whose
    positions and prefixes are given, for a reading of other layers than the last, and if it cannot be converted.
    """
    from cse.encoder.converted_graph import converted_graph

    encoder = open_by_torch(reference, "cpu")
    try:
        if encoder.placed or encoder.reading.pooling in LAYERS:
            raise UnsupportedError(reason)
        encoder.converted = converted_graph(encoder.model)
    except UnsupportedError as error:
        raise ValueError(f"{reference.name}: OpenVINO cannot run it ({error}); give `backend` torch") from error
    encoder.backend = OPENVINO
    Encoder.to(encoder, device or "cpu")  # raises for another
    return encoder


def _static(reference: ModelReference) -> Encoder:
    from tokenizers import Tokenizer

    from cse.encoder.static_encoder import StaticEncoder, static_table

    folder = model_folder(reference.name)
    path, recorded = static_folder(folder), recorded_static(folder)
    start = f"{path}/" if path else ""
    file = hub.cached_file(folder, f"{start}tokenizer.json")
    if file is None:
        raise ArtefactError(f"{reference.name}: no {start}tokenizer.json; {CHECKPOINT_CURE}")
    stored = read_json(file)
    tokenizer = Tokenizer.from_str(json.dumps({**stored, "post_processor": None, "padding": None}))
    table = static_table(read_arrays(find_weights(folder, [f"{start}{layout}" for layout in ANY])), reference.name)
    if stored.get("truncation"):
        recorded = replace(recorded, max_length=int(stored["truncation"]["max_length"]))
    method = recorded.applied_to(UNTRAINED[recorded.pooling])
    encoder = StaticEncoder(table, tokenizer, method, name=reference.label, backbone=reference.name)
    call_as(recorded, encoder, reference.name)
    encoder.reference = reference
    return encoder


def _check_torch(name: str) -> None:
    if find_spec("torch") is None:
        raise ValueError(f"{name}: this needs PyTorch, which is not installed; pip install torch transformers")


@damage_named
def _opened(reference: ModelReference, engine: type[Engine]) -> Engine:
    def read() -> Any:
        if reference.kind is Kind.STATIC:
            return _static(reference)
        if reference.kind in (Kind.CHECKPOINT, Kind.START, Kind.EXPORT):
            known: dict[Kind, Any] = {
                Kind.CHECKPOINT: load_checkpoint, Kind.START: load_start, Kind.EXPORT: load_export
            }  # fmt: skip
            folder = hub.model_folder(location(reference.name))
            return known[reference.kind](folder, reference.label, engine)
        if reference.family:
            return _published(reference, FAMILIES[reference.family], engine)
        return _untrained(reference, engine)

    return read_settled(Path(location(reference.name)), read)


def _untrained(reference: ModelReference, engine: type[Engine]) -> Engine:
    recorded = reference.recorded
    method = UNTRAINED[recorded.pooling if recorded else str(reference.pooling)]
    weights = read_arrays(find_weights(location(reference.name)))
    head = None
    if method.reading.head_when is When.ALWAYS:
        places = tuple(f"{base}pooler." for base in ("bert.", "roberta.", ""))
        if not any(key.startswith(places) for key in weights):
            raise ArtefactError(f"{reference.name}: its files hold no pooler; give another `pooling`")
        head = stored_head(reference.name, method.reading.head, _width(reference.name), weights, places)
    if recorded:
        method = recorded.applied_to(method)
    if recorded and recorded.head:
        method = recorded.head.applied_to(method)
        head = recorded.head.arrays(model_folder(reference.name), method.reading.width(_width(reference.name)))
    encoder = engine.open(
        location(reference.name), method, name=reference.label, backbone=reference.name, weights=weights, head=head
    )
    if recorded:
        call_as(recorded, encoder, reference.name)
    return encoder


def _published(reference: ModelReference, family: Family, engine: type[Engine]) -> Engine:
    """Open a published checkpoint; check and copy every tensor that its family's encoding reads."""
    name = reference.name
    weights = read_arrays(find_weights(location(name)))
    learned = weights.pop(family.tensor, None) if family.tensor else None
    if family.tensor and learned is None:
        raise ArtefactError(f"{name}: it has no {family.tensor}, so it is no {family.name} checkpoint")
    if learned is not None and (learned.ndim != 2 or not len(learned)):
        raise ArtefactError(f"{name}: its {family.tensor} is {learned.shape}, not a matrix")
    method = family.published(
        "roberta" in str(read_config(location(name)).get("model_type")), rows=0 if learned is None else len(learned)
    )
    head = None
    if method.reading.head_when is When.ALWAYS:
        head = stored_head(name, method.reading.head, _width(name), weights, HEADS)
    encoder = engine.open(location(name), method, name=reference.label, backbone=name, weights=weights, head=head)
    if learned is not None:
        copy_array(learned, encoder.learned_arrays()[family.learned], f"{name}: {family.tensor}")
    return encoder


def _width(name: str) -> int:
    return hidden_size(read_config(location(name)))


EXPORT_CURE = "export it again"
FORMAT = "cse-export"
ADAPTER, PROMPTS = "adapter_model.safetensors", "prompt_embeddings"  # of peft
BASE = "base"  # a subfolder of an export to peft with its backbone, if that is no hub id
READABLE_EXPORTS = (SENTENCE_TRANSFORMERS, "peft")


def load_export(folder: Path, name: str, engine: type[Engine]) -> Engine:
    """Open the encoder of an export, or of a run that another tool has saved again.

    Raises ArtefactError if it is damaged or of a kind that is not readable here.
    """
    if not (folder / EXPORT_RECORD).is_file():
        return saved_again(folder, name, engine)
    record = read_json(folder / EXPORT_RECORD)
    to = record.get("to")
    if record.get("format") != FORMAT or record.get("version") != 1:
        raise ArtefactError(f"{folder / EXPORT_RECORD}: is of another version; {EXPORT_CURE}")
    if to not in READABLE_EXPORTS:
        raise ArtefactError(
            f"{folder}: an export to {to}, which cse does not run; its README.md says what does, and {EXPORT_CURE} "
            f"from {record.get('model')} with `to` sentence-transformers for one that opens here"
        )
    try:
        method, length = from_json(record["method"]), int(record["max_length"])
        slots, prompts = [int(slot) for slot in record.get("slots", [])], dict(record.get("prompts", {}))
    except (KeyError, TypeError, ValueError) as error:
        raise ArtefactError(f"{folder / EXPORT_RECORD}: damaged ({error}); {EXPORT_CURE}") from error
    if to == SENTENCE_TRANSFORMERS:
        head = record.get("head") or (read_json(folder / CONFIG).get(OWN_KEY) or {}).get("head")
        encoder = open_pipeline(folder, method, engine, name=name, head=head, slots=slots, cure=EXPORT_CURE)
    else:
        weights = read_arrays([folder / ADAPTER]) if (folder / ADAPTER).is_file() else {}
        check_finite(weights, str(folder), EXPORT_CURE)
        base = str(folder / BASE) if record.get("base") == BASE else str(record.get("base"))
        encoder = engine.open(location(base), method, name=name, backbone=base, revision=record.get("revision"))
        learned = {"prefix": weights[PROMPTS]} if PROMPTS in weights else {}
        copy_learned(learned, encoder, str(folder), EXPORT_CURE)
    encoder.max_row_length, encoder.prompts = length, prompts
    encoder.default_prompt_name, encoder.truncate_dim = record.get("default_prompt_name"), record.get("truncate_dim")
    encoder.similarity_fn_name = record.get("similarity_fn_name")
    return encoder
