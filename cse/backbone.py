"""Backbones: any masked language model that transformers can open, and what the rest needs to know of it."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import torch

from cse import hub
from cse.errors import ArtefactError
from cse.files import DIGITS

if TYPE_CHECKING:
    from transformers import Cache, PreTrainedModel, PreTrainedTokenizerBase

HEADS = ("cls", "lm_head")  # BERT's and RoBERTa's masked-language-model head


def load_backbone(name: str | Path, revision: str | None = None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The masked language model (float32, eval mode) and the tokenizer of a folder or hub id.

    Half-precision files are computed in float32. `revision` is a hub commit.
    A model saved without its masked-language-model head, as sentence-transformers does, opens without one.
    Raises ArtefactError when there is no such model or when it is damaged.
    """
    from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    offline = not Path(name).is_dir() and not hub.reachable()
    source: dict[str, Any] = {"revision": revision or "main", "local_files_only": offline}
    try:
        config = AutoConfig.from_pretrained(name, **source)
        tokenizer = AutoTokenizer.from_pretrained(name, **source)
        options: dict[str, Any] = {
            "config": config, "dtype": torch.float32, "use_safetensors": True, "output_loading_info": True, **source
        }  # fmt: skip
        model, info = AutoModelForMaskedLM.from_pretrained(name, **options)
        if info["missing_keys"] and all(key.startswith(HEADS) for key in info["missing_keys"]):
            model, info = AutoModel.from_pretrained(name, add_pooling_layer=False, **options)
    except Exception as error:  # whatever a foreign folder provokes, the user's cure is the same
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = "no such folder, and the model hub cannot be reached" if offline else lines[0][:160]
        raise ArtefactError(
            f"cannot open backbone {str(name)!r}: {reason}; give a masked language model in safetensors"
        ) from error
    if info["missing_keys"] or info["mismatched_keys"]:
        first = sorted(str(key) for key in {*info["missing_keys"], *info["mismatched_keys"]})[0]
        raise ArtefactError(f"backbone {str(name)!r} lacks weights of a masked language model, first {first!r}")
    if tokenizer.mask_token_id is None:
        raise ArtefactError(f"backbone {str(name)!r} has no mask token in its tokenizer")
    check_inputs(model)
    return model.eval(), tokenizer


def set_dropout(model: PreTrainedModel, rate: float) -> None:
    """Give every dropout of a model this rate, and its config, which a copy would be made from."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = rate
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = rate


def mlm_head(model: PreTrainedModel) -> torch.nn.Module:
    """The module that maps hidden states (..., d) to vocabulary logits (..., V), bias included.

    Raises ArtefactError where the model was saved without one.
    """
    for name in HEADS:
        if isinstance(getattr(model, name, None), torch.nn.Module):
            return getattr(model, name)
    raise ArtefactError(
        f"this {model.config.model_type} model has no masked-language-model head, which words at [MASK] come from; "
        "give the model it was made from"
    )


def check_inputs(model: PreTrainedModel) -> None:
    """Raise ArtefactError unless the blocks take embeddings, positions and cached keys and values as BERT's do."""
    missing = {"inputs_embeds", "attention_mask", "position_ids", "past_key_values"} - set(
        inspect.signature(model.base_model.forward).parameters
    )
    if missing or not hasattr(model.base_model, "embeddings"):
        raise ArtefactError(
            f"a {model.config.model_type} model is not supported (its blocks take no {', '.join(sorted(missing))}); "
            "give a model of the BERT or RoBERTa family"
        )


def first_position(model: PreTrainedModel) -> int:
    """The position id of a row's first token: 0 in BERT, one past the padding id in RoBERTa."""
    padding = getattr(model.base_model.embeddings, "padding_idx", None)
    return 0 if padding is None else padding + 1


def row_limit(model: PreTrainedModel) -> int:
    """The longest row the model has positions for."""
    return int(model.config.max_position_embeddings) - first_position(model)


def prefix_cache(model: PreTrainedModel, prefix: torch.Tensor) -> Cache:
    """Keys and values of each row's `prefix` (B, P, layers * 2 * d) in front of every layer.

    Row layout of the published checkpoints: layer 0 keys, layer 0 values, layer 1 keys, ... A forward changes the
    cache, so every call needs its own.
    """
    from transformers import DynamicCache

    config = model.config
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    parts = prefix.unflatten(2, (layers, 2, heads, -1)).permute(2, 3, 0, 4, 1, 5)  # (layers, 2, B, heads, P, d / heads)
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(parts):
        cache.update(keys, values, layer)
    return cache


def tensor_digest(tensors: Mapping[str, torch.Tensor], *texts: str) -> str:
    """12 hex digits of sha256 over named tensors, by name, and texts."""
    sha = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        sha.update(name.encode())
        sha.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
    for text in texts:
        sha.update(text.encode())
    return sha.hexdigest()[:DIGITS]


def fingerprint(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> str:
    """The digest of a loaded backbone's weights and vocabulary."""
    return tensor_digest(dict(model.named_parameters()), json.dumps(sorted(tokenizer.get_vocab().items())))


class ModelDescription(TypedDict):
    """Family, layers, width, vocabulary size and parameter count of a model."""

    model_type: str
    layers: int
    hidden: int
    vocabulary: int
    parameters: int


def describe(model: PreTrainedModel) -> ModelDescription:
    """Family, layers, width and parameter count of a backbone, for logs and model cards."""
    config = model.config
    return {
        "model_type": config.model_type,
        "layers": config.num_hidden_layers,
        "hidden": config.hidden_size,
        "vocabulary": config.vocab_size,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
