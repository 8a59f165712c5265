"""A model with a projection after its pooling, as a sentence-transformers folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cse.adaptation.projection import Projection, fit_projection
from cse.encoding.encoder import Encoder
from cse.methods.method import Head, When
from cse.models.loading import on_torch, open_model
from cse.models.names import Kind, ModelReference, location, model_folder, resolve
from cse.models.sentence_transformers import CALLS, TRANSFORMER, modules_of, transformer_options
from cse.storage import hub
from cse.storage.weights import SINGLE, find_weights, read_arrays
from cse.storage.writing import FolderKind, read_json, write_folder, write_json

RECORD = "projection.json"
COPIED = (  # files other than weights that opening a model reads, here or in sentence-transformers
    "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "vocab.txt", "merges.txt", "sentence_bert_config.json", "config_sentence_transformers.json",
)  # fmt: skip
MODEL_FILES = (
    *COPIED, SINGLE, "modules.json", RECORD, "README.md", "cse_export.json", "modeling_prefix.py",
    *(f"{number}_{name}{end}" for number in "123" for name in ("WordWeights", "Pooling", "Dense", "Normalize")
      for end in ("", "/config.json", "/wordweights_config.json", "/model.safetensors")),
)  # fmt: skip
PROJECTED = FolderKind("a model with a projection", RECORD, ("components", "texts"), MODEL_FILES)
PLAIN_POOLINGS = ("mean", "cls")
NO_POOLER = ("bert", "roberta", "xlm-roberta", "camembert")  # model types whose class takes `add_pooling_layer`


def project(
    model: str,
    texts: Sequence[str],
    output: str | Path,
    *,
    components: int | None = None,
    pooling: str | None = None,
    overwrite: bool = False,
) -> Projection:
    """Fit a projection on texts and write the model with it to the folder `output`, for cse and sentence-transformers.

    Raises ValueError as `fit_projection` and `check_projectable` do, and if `output` holds something else; an earlier
    model with a projection is replaced only with `overwrite`.
    """
    place = Path(output)
    PROJECTED.check_replaceable(place)
    if not overwrite and place.is_dir() and any(place.iterdir()):
        raise ValueError(f"{place} already holds a model; give another `output` or pass `overwrite`")
    reference = resolve(model, pooling)
    encoder = open_model(reference)
    check_projectable(reference, encoder)
    found = fit_projection(raw_vectors(encoder, texts), components)
    write_folder(place, lambda target: write_projected(reference, encoder, found, len(texts), target), PROJECTED)
    return found


def raw_vectors(encoder: Encoder, texts: Sequence[str]) -> np.ndarray:
    """Return the (N, d) vectors of texts, of all dimensions and not normalised."""
    if encoder.reading.normalised:
        encoder = encoder.reading_by(replace(encoder.reading, normalised=False))
    with encoder.truncate_embeddings(None):
        return encoder.encode(list(texts))


def check_projectable(reference: ModelReference, encoder: Encoder) -> None:
    """Raise ValueError for a model that sentence-transformers cannot hold with a linear layer after its pooling."""
    if encoder.reading.head_when is When.ALWAYS:
        raise ValueError(f"{encoder.name} has a linear layer or head already; give the model that it was fitted on")
    if reference.kind is Kind.BACKBONE and reference.pooling not in PLAIN_POOLINGS:
        raise ValueError(
            f"{encoder.name}: sentence-transformers has no pooling {reference.pooling}; give `pooling` mean or cls"
        )
    if reference.kind not in (Kind.BACKBONE, Kind.SENTENCE_TRANSFORMERS):
        from cse.models.plain import reason_against

        if reason := reason_against(on_torch(encoder)):
            raise ValueError(f"{encoder.name} {reason}, so sentence-transformers cannot hold it with a projection")


def write_projected(
    reference: ModelReference, encoder: Encoder, projection: Projection, texts: int, target: Path
) -> None:
    """Write a model with a projection, fitted on so many texts, to an empty folder.

    Files of a backbone or a sentence-transformers model are copied; any other model is written as `cse export` does.
    """
    if reference.kind in (Kind.BACKBONE, Kind.SENTENCE_TRANSFORMERS):
        copy_plain(reference, encoder, target)
        add_dense(target, projection)
    else:
        from cse.publishing.sentence_transformers import fill

        fill(with_head(encoder, projection), target)
    record = {
        "components": len(projection.components), "texts": texts, "explained": round(projection.explained, 4),
        "start": encoder.name, "fingerprint": encoder.fingerprint,
    }  # fmt: skip
    write_json(target / RECORD, record)


def with_head(encoder: Encoder, projection: Projection) -> Any:
    """Return the encoder on PyTorch with the projection as its head; it shares the weights."""
    from cse.engines.heads import head_module
    from cse.engines.torch_encoder import TorchEncoder

    plain = on_torch(encoder)
    method = plain.method.replaced(head=Head.LINEAR, head_when=When.ALWAYS)
    headed = TorchEncoder(
        plain.model, plain.tokenizer, method, name=plain.name, backbone=plain.backbone,
        head=head_module(Head.LINEAR, projection.arrays, plain.model.config),
    )  # fmt: skip
    headed.prefix, headed.slots, headed.dim = plain.prefix, plain.slots, len(projection.components)
    headed.backbone_fingerprint, headed.max_row_length = plain.backbone_fingerprint, plain.max_row_length
    headed.prompts, headed.default_prompt_name = plain.prompts, plain.default_prompt_name
    return headed


def copy_plain(
    reference: ModelReference, encoder: Encoder, target: Path, weights: Mapping[str, np.ndarray] | None = None
) -> None:
    """Copy a backbone, or a sentence-transformers model, as one of sentence-transformers in one weight file.

    The weights, or `weights` in their place, are written as float32; a backbone gets modules for its pooling and its
    length, and a tokenizer that reads typed special tokens as text, as an encoder does.
    """
    from safetensors.numpy import save_file

    from cse.models.pipeline_writer import TYPED_AS_TEXT, pooling_json, write_modules

    name, model = location(reference.name), model_folder(reference.name)
    for file in COPIED:
        if (path := hub.cached_file(model if file == CALLS else name, file)) is not None:
            shutil.copyfile(path, target / file)
    stored = read_arrays(find_weights(name)) if weights is None else weights
    arrays = {
        key: np.ascontiguousarray(array, np.float32 if array.dtype.kind == "f" else None)
        for key, array in stored.items()
    }
    save_file(arrays, target / SINGLE, {"format": "pt"})
    config = read_json(target / "config.json")
    config.pop("torch_dtype", None)
    write_json(target / "config.json", {**config, "dtype": "float32"})
    known = {} if reference.recorded is None else transformer_options(name)
    if reference.recorded is None:
        known |= {"max_seq_length": encoder.max_seq_length, "do_lower_case": False}
    if config.get("model_type") in NO_POOLER and (reference.recorded is None or weights is not None):
        known["model_args"] = {**(known.get("model_args") or {}), "add_pooling_layer": False}
    if known:
        write_json(target / TRANSFORMER, known)
    if reference.recorded is None:
        tokenizer = target / "tokenizer_config.json"
        write_json(tokenizer, {**(read_json(tokenizer) if tokenizer.exists() else {}), **TYPED_AS_TEXT})
    mode = reference.recorded.pooling if reference.recorded else str(reference.pooling)
    (target / "1_Pooling").mkdir()
    write_json(
        target / "1_Pooling" / "config.json",
        pooling_json(int(config["hidden_size"]), mode, prompt=encoder.reading.prompt_pooled),
    )
    write_modules(target, ["Transformer", "Pooling", *(["Normalize"] if encoder.reading.normalised else [])])


def add_dense(target: Path, projection: Projection) -> None:
    """Add the projection, after the pooling, to a folder of `copy_plain`; all its dimensions are kept."""
    from cse.models.pipeline_writer import write_dense, write_modules

    write_dense(projection.arrays, Head.LINEAR, target / "2_Dense")
    last = ["Normalize"] if any(kind == "Normalize" for kind, _ in modules_of(str(target)) or ()) else []
    write_modules(target, ["Transformer", "Pooling", "Dense", *last])
    calls = target / "config_sentence_transformers.json"
    if calls.exists():
        write_json(calls, {**read_json(calls), "truncate_dim": None})
