"""Tiny random models of many architectures, with the tokenizer of the tiny BERT."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer

SIZES: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "pad_token_id": 0,
    "max_position_embeddings": 80, "attn_implementation": "eager",
}  # fmt: skip
RELATIVE: dict[str, Any] = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8}
ARCHITECTURES: dict[str, dict[str, Any]] = {  # name -> what its configuration has besides `SIZES`
    "mpnet": {"max_position_embeddings": 82, "pad_token_id": 1},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 8, "max_position_embeddings": 8192},
    "deberta-v2": {**RELATIVE, "position_biased_input": False, "share_att_key": True},
    "electra": {"embedding_size": 16},
    "albert": {"embedding_size": 16},
}
DECODERS: dict[str, dict[str, Any]] = {
    "qwen3": {"num_key_value_heads": 1, "head_dim": 16},
    "t5": {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2},
}


def random_model(kind: str, folder: Path, tokenizer: Path, *, head: bool = True) -> Path:
    """Write a model of an architecture, with its masked-language-model head unless told otherwise."""
    reader = AutoTokenizer.from_pretrained(tokenizer)
    values = {**SIZES, **(ARCHITECTURES | DECODERS)[kind], "vocab_size": len(reader)}
    torch.manual_seed(4)
    config = AutoConfig.for_model(kind, **values)
    model = (AutoModelForMaskedLM if head and kind in ARCHITECTURES else AutoModel).from_config(config)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(folder)
    reader.save_pretrained(folder)
    return folder
