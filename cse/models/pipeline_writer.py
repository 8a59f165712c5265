"""Folders that transformers and sentence-transformers open with an encoder's vectors, without code of this project."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cse.encoder.backbone import as_arrays
from cse.encoder.stored_tokenizer import OWN_KEY, ROLES
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.method import Head
from cse.methods.settings import to_json
from cse.models.pipeline import HEAD, SAVED_KEY, SPACE_PROMPT
from cse.models.plain import PlainModel, ReadAt, bare_model, plain_model, reason_against
from cse.models.sentence_transformers import BIAS, WEIGHT

MODULES = "sentence_transformers.models."  # valid in every version of the package
# Word weight of the mask in a run's folder. Further training cannot give other tokens a share too: their
# gradients are below the epsilon of Adam. In float16, which has no such number, vectors are NaN; an export has 1.
MASK_WEIGHT = 2.0**40
ACTIVATIONS = {
    Head.TANH: "torch.nn.modules.activation.Tanh", Head.LINEAR: "torch.nn.modules.linear.Identity"
}  # fmt: skip
TYPED_AS_TEXT = {"split_special_tokens": True}  # in a tokenizer_config.json: a typed "[MASK]" is text, as here
REFUSED_MODULE = "cse.models.pipeline.OnlyHere"  # a module that sentence-transformers refuses to open


def write_json(path: Path, value: object) -> None:
    """Write JSON to a file, creating its folder."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


def write_model(encoder: TorchEncoder, target: Path, *, half: bool = False) -> str:
    """Write an encoder to an empty folder: for sentence-transformers if it can compute its vectors.

    Otherwise the folder is one of transformers and of this project alone, sentence-transformers refuses it, and the
    reason is returned (`reason_against`). Weights are stored in float16 if `half`, else in float32.
    """
    from safetensors.torch import save_file

    if not (reason := reason_against(encoder)):
        write_pipeline(encoder, target, half=half, weight=MASK_WEIGHT)
        return ""
    plain, head = bare_model(encoder), None
    if plain.head is not None:
        head = HEAD
        (target / head).mkdir()
        save_file(_stored(dict(plain.head.named_parameters()), half), target / head / "model.safetensors")
    write_weights(target, plain, plain.whole(), half=half, **_record(plain, head))
    write_tokenizer(target, encoder, plain.tokenizer)
    write_json(target / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": REFUSED_MODULE}])
    return reason


def write_pipeline(
    encoder: TorchEncoder, target: Path, *, half: bool = False, weight: float = 1.0, **config: Any
) -> PlainModel:
    """Write an encoder to an empty folder for sentence-transformers, `config` into its `config.json`.

    `weight` is the word weight of a template's mask; that of other tokens is 0. A prefix is written next to the bare
    backbone, whose `config` then has to name a class that reads it. Raises ValueError for an encoder that
    sentence-transformers cannot compute.
    """
    plain = plain_model(encoder)
    modules = ["Transformer"]
    if plain.read_at is ReadAt.MASK:
        modules.append("WordWeights")
        _write_word_weights(plain, weight, target / "1_WordWeights")
    mode = "mean" if plain.read_at is ReadAt.MASK else plain.read_at.value
    folder = target / f"{len(modules)}_Pooling"
    width = int(encoder.model.config.hidden_size)
    write_json(folder / "config.json", pooling_json(width, mode, prompt=encoder.reading.prompt_pooled))
    modules.append("Pooling")
    if plain.head is not None:
        arrays = as_arrays(dict(plain.head.named_parameters()))
        write_dense(arrays, encoder.reading.head, target / f"{len(modules)}_Dense", half=half)
        modules.append("Dense")
    if encoder.reading.normalised:
        modules.append("Normalize")
    paths = write_modules(target, modules)
    tensors = plain.whole() if encoder.prefix is None else plain.tensors | {"prefix": encoder.prefix}
    record = _record(plain, None if plain.head is None else paths[modules.index("Dense")])
    write_weights(target, plain, tensors, half=half, **{**record, **config})
    write_tokenizer(target, encoder, plain.tokenizer)
    _write_calls(plain, target)
    return plain


def write_modules(target: Path, kinds: Sequence[str]) -> list[str]:
    """Write the `modules.json` of a pipeline whose first module lies in `target` itself; return their subfolders."""
    paths = [f"{number}_{kind}" if number else "" for number, kind in enumerate(kinds)]
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"{MODULES}{kind}"}
        for number, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    write_json(target / "modules.json", modules)
    return paths


def write_tokenizer(target: Path, encoder: TorchEncoder, tokenizer: dict[str, Any]) -> None:
    """Write a tokenizer, with its post-processor, that reads typed special tokens and truncates like cse."""
    source = encoder.tokenizer
    specials = {name: str(token) for name in ROLES if (token := getattr(source, name, None)) is not None}
    write_json(target / "tokenizer.json", tokenizer)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",  # a model's own class would replace the post-processor
        "split_special_tokens": not encoder.reading.typed_specials,
        "model_max_length": encoder.max_seq_length, "padding_side": "right",
        "truncation_side": source.truncation_side, "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"], **specials,
    }  # fmt: skip
    write_json(target / "tokenizer_config.json", config)


def write_weights(
    target: Path, plain: PlainModel, tensors: dict[str, torch.Tensor], *, half: bool = False, **config: Any
) -> None:
    """Write a model's tensors, whole or bare, and the configuration of the backbone updated with `config`.

    The configuration asks for float32, in which float16 tensors are then computed.
    """
    from huggingface_hub import save_torch_state_dict

    model: Any = plain.encoder.model.base_model if plain.tensors.keys() <= tensors.keys() else plain.encoder.model
    values = {key: value for key, value in model.config.to_dict().items() if not key.startswith("_")}
    values |= {
        "architectures": [type(model).__name__],
        "dtype": "float32",
        "vocab_size": len(plain.tensors[plain.words]),
    }
    for key in (OWN_KEY, SAVED_KEY):  # of a backbone that was trained here; written by transformers alone
        values.pop(key, None)
    target.mkdir(exist_ok=True)
    write_json(target / "config.json", {**values, **config})
    save_torch_state_dict(_stored(tensors, half), target)


def _stored(tensors: Mapping[str, torch.Tensor], half: bool) -> dict[str, torch.Tensor]:
    dtype = torch.float16 if half else torch.float32
    return {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in tensors.items()}


def _record(plain: PlainModel, head: str | None) -> dict[str, Any]:
    """Return what `cse.models.pipeline` reads of the folder, also after another tool has saved it again."""
    record = {"method": to_json(plain.encoder.method.in_encoding), "tokens": plain.tokens, "slots": len(plain.slots)}
    return {OWN_KEY: {**record, "spaced": plain.spaced, "head": head}}


def _write_calls(plain: PlainModel, target: Path) -> None:
    encoder = plain.encoder
    options = {"max_seq_length": encoder.max_seq_length, "do_lower_case": False}
    write_json(target / "sentence_bert_config.json", {**options, "model_args": {"add_pooling_layer": False}})
    space = " " if plain.spaced else ""
    prompts = {name: space + text for name, text in encoder.prompts.items()} | ({SPACE_PROMPT: space} if space else {})
    write_json(
        target / "config_sentence_transformers.json",
        {
            "prompts": prompts,
            "default_prompt_name": encoder.default_prompt_name or (SPACE_PROMPT if space else None),
            "similarity_fn_name": encoder.similarity_fn_name,
            "truncate_dim": encoder.truncate_dim,
        },
    )


def _write_word_weights(plain: PlainModel, weight: float, folder: Path) -> None:
    from safetensors.torch import save_file

    weights = torch.tensor([[weight * (number == plain.mask_id)] for number in range(len(plain.vocabulary))])
    only = {"vocab": plain.vocabulary, "word_weights": {plain.mask_token: weight}, "unknown_word_weight": 0.0}
    write_json(folder / "wordweights_config.json", only)
    write_json(folder / "config.json", only)  # the file name in newer versions
    save_file({"emb_layer.weight": weights}, folder / "model.safetensors")


def pooling_json(width: int, mode: str, *, prompt: bool = True) -> dict[str, Any]:
    """Return the configuration of a pooling, with keys that every version of the package reads."""
    if mode == "mean-cls":  # the older keys mean the other order
        return {"embedding_dimension": width, "pooling_mode": mode.split("-"), "include_prompt": prompt}
    modes = mode.split("-")
    return {
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": "cls" in modes, "pooling_mode_mean_tokens": "mean" in modes,
        "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False, "include_prompt": prompt,
    }  # fmt: skip


def write_dense(arrays: Mapping[str, np.ndarray], kind: Head, folder: Path, *, half: bool = False) -> None:
    """Write a head, a linear layer of `0.weight` (m, n) and `0.bias` (m,), as a `Dense` module."""
    from safetensors.numpy import save_file

    outputs, inputs = arrays["0.weight"].shape
    shape = {"in_features": inputs, "out_features": outputs, "bias": True, "activation_function": ACTIVATIONS[kind]}
    write_json(folder / "config.json", shape)
    stored = {WEIGHT: arrays["0.weight"], BIAS: arrays["0.bias"]}
    dtype = np.float16 if half else np.float32
    save_file(
        {name: np.ascontiguousarray(array, dtype) for name, array in stored.items()}, folder / "model.safetensors"
    )
