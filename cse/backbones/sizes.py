"""Checks of a model's config.json: blocks of a supported family, no larger than the weights.

Modules are built before their weights are read, so a damaged or hostile configuration could allocate any memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.errors import ArtefactError
from cse.storage.writing import read_json

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

SIZE = re.compile(r"(num|n)_\w+|\w+_(size|dim|positions|embeddings|labels)")  # names of sizes
LAYER = re.compile(r"\blayers?\.(\d+)\.")
# Sizes of every supported family.
POSITIVE = (
    "hidden_size", "intermediate_size", "max_position_embeddings", "num_attention_heads", "num_hidden_layers",
    "vocab_size",
)  # fmt: skip
MOST = 2  # parameters of a model per stored number; a file may lack the head or tied embeddings
CURE = "copy the model again, with the files that belong together"
# Blocks that read embeddings, positions and cached keys and values. Other blocks accept such arguments and ignore them,
# and the arguments' names change between versions of transformers, so no signature decides.
MODEL_TYPES = frozenset(
    "bert big_bird camembert data2vec-text electra ernie megatron-bert rembert roberta roberta-prelayernorm roc_bert "
    "xlm-roberta xlm-roberta-xl".split()
)


def check_sizes(path: Path, weights: Mapping[str, np.ndarray]) -> None:
    """Raise ArtefactError if a size in a config.json is no number, or larger than any dimension of the weights.

    Call it before transformers reads the file and creates lists of these sizes.
    """
    largest = max((size for tensor in weights.values() for size in tensor.shape), default=0)
    for name, value in read_json(path).items():
        if SIZE.fullmatch(name) and isinstance(value, int | float) and value > largest:
            raise ArtefactError(f"{path}: its {name} is {value:,}, and no weights are larger than {largest:,}; {CURE}")
        if name in POSITIVE and (type(value) is not int or value < 1):
            raise ArtefactError(f"{path}: its {name} is {value!r:.40}, not a number of 1 or more; {CURE}")


def check_family(config: PreTrainedConfig) -> None:
    """Raise ArtefactError unless the blocks accept embeddings, positions and cached keys and values as BERT's do."""
    if config.model_type not in MODEL_TYPES:
        raise ArtefactError(
            f"a {config.model_type} model is not supported; give a masked language model of the BERT or RoBERTa family"
        )


def check_fit(place: str, config: PreTrainedConfig, weights: Mapping[str, np.ndarray]) -> None:
    """Raise ArtefactError if a model of `config` has more layers or many more parameters than its weights.

    After the check of its layers, the model is built without memory (PyTorch's meta device).
    """
    import torch
    from transformers import MODEL_FOR_MASKED_LM_MAPPING

    whole: Any = MODEL_FOR_MASKED_LM_MAPPING
    layers = len({found[1] for key in weights if (found := LAYER.search(key))})
    if (wanted := int(config.num_hidden_layers)) > layers:
        raise ArtefactError(f"{place}: its config.json asks for {wanted:,} layers, its weights have {layers}; {CURE}")
    with torch.device("meta"):
        numbers = sum(parameter.numel() for parameter in whole[type(config)](config).parameters())
    if numbers > MOST * (stored := sum(tensor.size for tensor in weights.values())):
        raise ArtefactError(
            f"{place}: its config.json asks for {numbers:,} numbers, its weights have {stored:,}; {CURE}"
        )
