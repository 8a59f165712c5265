"""Reading of exports: the encoder in a folder that was made for another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.errors import ArtefactError
from cse.methods.method import Method, When
from cse.methods.serialise import from_json
from cse.models.checkpoint import copy_array
from cse.models.dense import dense_arrays, recorded_dense
from cse.models.names import EXPORT_RECORD, location
from cse.storage.weights import check_finite, find_weights, read_arrays
from cse.storage.writing import read_json

if TYPE_CHECKING:
    from cse.models.checkpoint import Engine

CURE = "export it again"
FORMAT = "cse-export"
ADAPTER, PROMPTS = "adapter_model.safetensors", "prompt_embeddings"  # of peft
BASE = "base"  # a subfolder of an export to peft with its backbone, if that is no hub id
READABLE = ("sentence-transformers", "peft")


def load_export(folder: Path, name: str, engine: type[Engine]) -> Engine:
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
    opened = _of_peft if to == "peft" else _of_pipeline
    encoder = opened(folder, record, method, name, engine)
    learned = encoder.learned_arrays()
    if "slots" in learned:
        words = encoder.word_embeddings()
        if len(slots) != len(learned["slots"]) or not all(0 <= slot < len(words) for slot in slots):
            raise ArtefactError(f"{folder / EXPORT_RECORD}: its slots {slots} do not fit its template; {CURE}")
        copy_array(words[slots], learned["slots"], f"{folder}: learned slots")
    encoder.max_row_length, encoder.prompts = length, prompts
    encoder.default_prompt_name, encoder.truncate_dim = record.get("default_prompt_name"), record.get("truncate_dim")
    encoder.similarity_fn_name = record.get("similarity_fn_name")
    encoder.forget_biases()
    return encoder


def _of_pipeline(folder: Path, record: dict[str, Any], method: Method, name: str, engine: type[Engine]) -> Engine:
    weights = read_arrays(find_weights(str(folder)))
    check_finite(weights, str(folder), CURE)
    prefix = weights.pop("prefix", None)
    head = _dense(folder, str(record.get("head"))) if method.head_when is When.ALWAYS else None
    encoder = engine.open(folder, method, name=name, backbone=str(folder), weights=weights, head=head)
    return _with_learned(encoder, {"prefix": prefix}, folder)


def _of_peft(folder: Path, record: dict[str, Any], method: Method, name: str, engine: type[Engine]) -> Engine:
    weights = read_arrays([folder / ADAPTER]) if (folder / ADAPTER).is_file() else {}
    check_finite(weights, str(folder), CURE)
    base = str(folder / BASE) if record.get("base") == BASE else str(record.get("base"))
    encoder = engine.open(location(base), method, name=name, backbone=base, revision=record.get("revision"))
    return _with_learned(encoder, {"prefix": weights.get(PROMPTS)}, folder)


def _with_learned(encoder: Engine, stored: dict[str, np.ndarray | None], folder: Path) -> Engine:
    learned = encoder.learned_arrays()
    if (stored["prefix"] is None) != ("prefix" not in learned):
        raise ArtefactError(
            f"{folder}: its weights {'lack a' if stored['prefix'] is None else 'hold an unexpected'} prefix; {CURE}"
        )
    for name, array in stored.items():
        if array is not None:
            copy_array(array, learned[name], f"{folder}: {name}")
    return encoder


def _dense(folder: Path, path: str) -> dict[str, np.ndarray]:
    """Return the head in the `Dense` module of an export, by the names of the head's module."""
    width = int(read_json(folder / "config.json").get("hidden_size", 0))
    return dense_arrays(str(folder), recorded_dense(str(folder), path), width)
