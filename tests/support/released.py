"""Checkpoints as the released training code saves them, made of a tiny backbone and random heads and prompts.

Key names are those of the code of SimCSE, ESimCSE, PromptBERT, PromCSE, ConPVP and OptiPrompt; nothing of this project
writes or reads them here.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModel

PREFIX, SLOTS, OPTI_SLOTS = 3, 4, 7


def noise(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 0.2


def linear(place: str, width: int, seed: int) -> dict[str, torch.Tensor]:
    return {f"{place}.dense.weight": noise(seed, width, width), f"{place}.dense.bias": noise(seed + 1, width)}


def norm(place: str, width: int) -> dict[str, torch.Tensor]:
    return {f"{place}.LayerNorm.weight": 1 + noise(5, width), f"{place}.LayerNorm.bias": noise(6, width)}


def trainer_keys(backbone: Path, family: str) -> dict[str, torch.Tensor]:
    """The tensors that the training code of a family saves."""
    model = AutoModel.from_pretrained(backbone, add_pooling_layer=False)
    kind, config = model.config.model_type, model.config
    width = config.hidden_size
    tensors = {f"{kind}.{key}": value.clone() for key, value in model.state_dict().items()}
    tensors[f"{kind}.embeddings.position_ids"] = torch.arange(80)[None]
    if family.startswith("promptbert"):
        tensors |= linear(f"{kind}.pooler", width, 3)  # pretrained, and unused; the converter overwrites it by the head
    tensors |= linear("mlp", width, 1)
    if family == "optiprompt" or (family == "promptbert-supervised" and kind == "bert"):
        tensors |= norm("mlp", width)
    if family == "esimcse":
        tensors |= {
            f"momentum_{key.replace(kind, 'model')}": value * 2 for key, value in tensors.items() if "layer.0" in key
        }
    if family.startswith("promcse"):
        tensors["prefix_encoder.embedding.weight"] = noise(7, PREFIX, 2 * config.num_hidden_layers * width)
    if family == "conpvp":
        tensors["endp"] = torch.rand(SLOTS, width, generator=torch.Generator().manual_seed(8))
    if family == "optiprompt":
        tensors["p_mbv"] = noise(9, OPTI_SLOTS, width)
    return tensors


def convert(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Keys as SimCSE's and PromptBERT's converters write them: no prefix, `mlp` is `pooler`; the head comes last."""
    renamed = {}
    for key, value in tensors.items():
        renamed[key.removeprefix("bert.").removeprefix("roberta.").replace("mlp", "pooler")] = value
    return renamed


def write(folder: Path, backbone: Path, tensors: dict[str, torch.Tensor], *, binary: bool = False) -> Path:
    """A folder with the tokenizer and configuration of `backbone` and these tensors."""
    shutil.copytree(backbone, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertForCL"]}))
    stored = {key: value.clone().contiguous() for key, value in tensors.items()}
    if binary:
        torch.save(stored, folder / "pytorch_model.bin")
    else:
        save_file(stored, folder / "model.safetensors")
    return folder


def release(folder: Path, backbone: Path, family: str, *, converted: bool = False, binary: bool = False) -> Path:
    """A folder as a family's checkpoints are published."""
    tensors = trainer_keys(backbone, family)
    return write(folder, backbone, convert(tensors) if converted else tensors, binary=binary)


def into_cache(folder: Path, cache: Path, model: str, revision: str = "0" * 40) -> None:
    """Put a folder where the hub's client keeps what it downloaded."""
    place = cache / f"models--{model.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(revision)
    shutil.copytree(folder, place / "snapshots" / revision)
