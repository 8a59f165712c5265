"""Reading of exports: the encoder in a folder that was made for another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.encoder.stored_tokenizer import OWN_KEY
from cse.errors import ArtefactError
from cse.files.weights import check_finite, read_arrays
from cse.files.writing import read_json
from cse.methods.method import Method
from cse.methods.settings import from_json
from cse.models.names import CONFIG, EXPORT_RECORD, location
from cse.models.pipeline import SENTENCE_TRANSFORMERS, copy_learned, open_pipeline, saved_again

if TYPE_CHECKING:
    from cse.models.pipeline import Engine

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
        encoder = _of_peft(folder, record, method, name, engine)
    encoder.max_row_length, encoder.prompts = length, prompts
    encoder.default_prompt_name, encoder.truncate_dim = record.get("default_prompt_name"), record.get("truncate_dim")
    encoder.similarity_fn_name = record.get("similarity_fn_name")
    encoder.forget_biases()
    return encoder


def _of_peft(folder: Path, record: dict[str, Any], method: Method, name: str, engine: type[Engine]) -> Engine:
    weights = read_arrays([folder / ADAPTER]) if (folder / ADAPTER).is_file() else {}
    check_finite(weights, str(folder), EXPORT_CURE)
    base = str(folder / BASE) if record.get("base") == BASE else str(record.get("base"))
    encoder = engine.open(location(base), method, name=name, backbone=base, revision=record.get("revision"))
    learned = {"prefix": weights[PROMPTS]} if PROMPTS in weights else {}
    copy_learned(learned, encoder, str(folder), EXPORT_CURE)
    return encoder
