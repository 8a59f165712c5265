"""Reading of exports: the encoder in a folder that was made for another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from cse.encoding.backbone import load_backbone
from cse.encoding.encoder import Encoder
from cse.encoding.heads import copy_tensor, tanh_head
from cse.errors import ArtefactError
from cse.methods.method import Method, When
from cse.methods.serialise import from_json
from cse.models.names import EXPORT_RECORD, location
from cse.storage.weights import check_finite, find_weights, read_tensors
from cse.storage.writing import read_json

CURE = "export it again"
FORMAT = "cse-export"
ADAPTER, PROMPTS = "adapter_model.safetensors", "prompt_embeddings"  # of peft
BASE = "base"  # a subfolder of an export to peft with its backbone, if that is no hub id
READABLE = ("sentence-transformers", "peft")


def load_export(folder: Path, name: str) -> Encoder:
    """Open the encoder of an export. Raises ArtefactError if it is damaged or of a kind that is not readable here."""
    record = read_json(folder / EXPORT_RECORD)
    to = record.get("to")
    if record.get("format") != FORMAT or record.get("version") != 1:
        raise ArtefactError(f"{folder / EXPORT_RECORD}: is of another version; {CURE}")
    if to not in READABLE:
        raise ArtefactError(
            f"{folder}: an export to {to}, which cse does not run; its README.md says what does, and {CURE} from "
            f"{record.get('model')} with `to` sentence-transformers for one that opens here"
        )
    try:
        method, length = from_json(record["method"]), int(record["max_length"])
        slots, prompts = [int(slot) for slot in record.get("slots", [])], dict(record.get("prompts", {}))
    except (KeyError, TypeError, ValueError) as error:
        raise ArtefactError(f"{folder / EXPORT_RECORD}: damaged ({error}); {CURE}") from error
    encoder = _of_peft(folder, record, method, name) if to == "peft" else _of_pipeline(folder, record, method, name)
    if encoder.slots is not None:
        words = encoder.model.get_input_embeddings().weight
        if len(slots) != len(encoder.slots) or not all(0 <= slot < len(words) for slot in slots):
            raise ArtefactError(f"{folder / EXPORT_RECORD}: its slots {slots} do not fit its template; {CURE}")
        copy_tensor(words[slots].detach(), encoder.slots, f"{folder}: learned slots")
    encoder.max_row_length, encoder.prompts = length, prompts
    encoder.default_prompt_name, encoder.truncate_dim = record.get("default_prompt_name"), record.get("truncate_dim")
    encoder.similarity_fn_name = record.get("similarity_fn_name")
    encoder.forget_biases()
    return encoder


def _of_pipeline(folder: Path, record: dict[str, Any], method: Method, name: str) -> Encoder:
    weights = read_tensors(find_weights(str(folder)))
    check_finite(weights, str(folder), CURE)
    prefix = weights.pop("prefix", None)
    model, tokenizer = load_backbone(folder, weights=weights)
    head = _dense(folder / str(record.get("head")), model.config.hidden_size) if _has_head(method) else None
    return _with_prefix(Encoder(model, tokenizer, method, name=name, backbone=str(folder), head=head), prefix, folder)


def _of_peft(folder: Path, record: dict[str, Any], method: Method, name: str) -> Encoder:
    weights = read_tensors([folder / ADAPTER]) if (folder / ADAPTER).is_file() else {}
    check_finite(weights, str(folder), CURE)
    base = str(folder / BASE) if record.get("base") == BASE else str(record.get("base"))
    model, tokenizer = load_backbone(location(base), revision=record.get("revision"))
    return _with_prefix(
        Encoder(model, tokenizer, method, name=name, backbone=base), weights.get(PROMPTS), folder
    )  # fmt: skip


def _has_head(method: Method) -> bool:
    return method.head_when is When.ALWAYS


def _with_prefix(encoder: Encoder, prefix: torch.Tensor | None, folder: Path) -> Encoder:
    if (prefix is None) != (encoder.prefix is None):
        raise ArtefactError(
            f"{folder}: its weights {'lack a' if prefix is None else 'hold an unexpected'} prefix; {CURE}"
        )
    if prefix is not None and encoder.prefix is not None:
        copy_tensor(prefix, encoder.prefix, f"{folder}: prefix")
    return encoder


def _dense(folder: Path, width: int) -> torch.nn.Module:
    stored = read_tensors(find_weights(str(folder)))
    head = tanh_head(width)
    for key, there in {"0.weight": "linear.weight", "0.bias": "linear.bias"}.items():
        if there not in stored:
            raise ArtefactError(f"{folder}: it has no {there}; {CURE}")
        copy_tensor(stored[there], head.get_parameter(key), f"{folder}: {there}")
    return head
