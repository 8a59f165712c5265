"""Export encoders as sentence-transformers folders, which contain code only for prefix models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cse.backbones.backbone import as_arrays
from cse.engines.torch_encoder import TorchEncoder
from cse.methods.method import Head
from cse.models.dense import BIAS, WEIGHT
from cse.publishing.export_files import copy_code, write_json, write_record, write_tokenizer, write_weights
from cse.publishing.plain import PlainModel, Reading, plain_model

NAME = "sentence-transformers"
PREFIXED = {"bert": "PrefixBertModel", "roberta": "PrefixRobertaModel"}
SPACE = "sentence"  # name of the prompt that is only a space
MODULES = "sentence_transformers.models."  # valid in every version of the package
ACTIVATIONS = {
    Head.TANH: "torch.nn.modules.activation.Tanh", Head.LINEAR: "torch.nn.modules.linear.Identity"
}  # fmt: skip


def fill(encoder: TorchEncoder, target: Path) -> None:
    """Write an encoder to an empty folder. Raises ValueError for an unsupported encoder."""
    from safetensors.torch import save_file

    plain = plain_model(encoder)
    modules = ["Transformer"]
    _write_backbone(plain, target)
    if plain.reading is Reading.MASK:
        modules.append("WordWeights")
        weights = torch.tensor([[float(number == plain.mask_id)] for number in range(len(plain.vocabulary))])
        folder = target / "1_WordWeights"
        only = {"vocab": plain.vocabulary, "word_weights": {plain.mask_token: 1.0}, "unknown_word_weight": 0.0}
        write_json(folder / "wordweights_config.json", only)
        write_json(folder / "config.json", only)  # the file name in newer versions
        save_file({"emb_layer.weight": weights}, folder / "model.safetensors")
    mode = "cls" if plain.reading is Reading.FIRST else "mean"
    folder = target / f"{len(modules)}_Pooling"
    write_json(
        folder / "config.json", {**pooling_json(int(encoder.model.config.hidden_size), mode), "include_prompt": True}
    )
    modules.append("Pooling")
    if plain.head is not None:
        arrays = as_arrays(dict(plain.head.named_parameters()))
        write_dense(arrays, encoder.method.head, target / f"{len(modules)}_Dense")
        modules.append("Dense")
    paths = [f"{number}_{name}" if number else "" for number, name in enumerate(modules)]
    write_json(
        target / "modules.json",
        [{"idx": number, "name": str(number), "path": path, "type": f"{MODULES}{name}"}
         for number, (name, path) in enumerate(zip(modules, paths, strict=True))],
    )  # fmt: skip
    write_record(target, NAME, encoder, slots=plain.slots, head=paths[-1] if plain.head is not None else None)


def prefixed_class(encoder: TorchEncoder) -> str:
    """The class in `modeling_prefix.py` for an encoder's family. Raises ValueError for an unsupported family."""
    family = encoder.model.config.model_type
    if family not in PREFIXED:
        raise ValueError(f"{encoder.name}: prefixes are exported for {' and '.join(PREFIXED)}, not for {family}")
    return PREFIXED[family]


def _write_backbone(plain: PlainModel, target: Path) -> None:
    encoder = plain.encoder
    extra: dict[str, torch.Tensor] = {}
    config: dict[str, Any] = {}
    if encoder.prefix is not None:
        kind = prefixed_class(encoder)
        extra = {"prefix": encoder.prefix.detach().float().cpu().contiguous()}
        config = {
            "architectures": [kind], "auto_map": {"AutoModel": f"modeling_prefix.{kind}"},
            "prefix_length": encoder.method.prefix,
        }  # fmt: skip
        copy_code(target)
    write_weights(target, plain, extra, config)
    write_tokenizer(target, encoder, plain.tokenizer)
    options = {"max_seq_length": encoder.max_seq_length, "do_lower_case": False}
    write_json(target / "sentence_bert_config.json", {**options, "model_args": {"add_pooling_layer": False}})
    space = " " if plain.spaced else ""
    prompts = {name: space + text for name, text in encoder.prompts.items()} | ({SPACE: space} if space else {})
    write_json(
        target / "config_sentence_transformers.json",
        {
            "prompts": prompts,
            "default_prompt_name": encoder.default_prompt_name or (SPACE if space else None),
            "similarity_fn_name": encoder.similarity_fn_name,
            "truncate_dim": encoder.truncate_dim,
        },
    )


def pooling_json(width: int, mode: str) -> dict[str, Any]:
    """The configuration of a pooling, with keys that every version of the package reads."""
    return {
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": mode == "cls", "pooling_mode_mean_tokens": mode == "mean",
        "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False,
    }  # fmt: skip


def write_dense(arrays: Mapping[str, np.ndarray], kind: Head, folder: Path) -> None:
    """Write a head, a linear layer of `0.weight` (m, n) and `0.bias` (m,), as a `Dense` module in float32."""
    from safetensors.numpy import save_file

    outputs, inputs = arrays["0.weight"].shape
    shape = {"in_features": inputs, "out_features": outputs, "bias": True, "activation_function": ACTIVATIONS[kind]}
    write_json(folder / "config.json", shape)
    stored = {WEIGHT: arrays["0.weight"], BIAS: arrays["0.bias"]}
    save_file(
        {name: np.ascontiguousarray(array, np.float32) for name, array in stored.items()},
        folder / "model.safetensors",
    )
