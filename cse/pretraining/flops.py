"""How fast a device multiplies matrices, and which share of that a training run turns into learning."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

from cse.masking import CHOSEN

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SIZES = {"cpu": 1024, "cuda": 8192}
REPEATS = 5


def matrix_rate(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of the best of five square matrix products on `device`, which is what a model could reach at most."""
    size = SIZES.get(device.type, 1024)
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    best = float("inf")
    for _ in range(REPEATS + 1):  # the first one warms up, and a best does not care
        _wait(device)
        started = time.perf_counter()
        left @ right
        _wait(device)
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def training_flops(model: PreTrainedModel, length: int, bag: bool = False) -> float:
    """FLOP that masked-LM training of a token costs, forward and backward, in rows of `length` tokens.

    6 for each weight a token meets and 12 x layers x width x length for attention (Chowdhery et al. 2022, appendix
    B); the vocabulary is met by the masked tokens alone and, with a `bag`, by one position of each row.
    """
    config: Any = model.config
    encoder: Any = model.base_model.encoder
    blocks = sum(tensor.numel() for tensor in encoder.parameters() if tensor.dim() > 1)
    head = config.hidden_size * (config.hidden_size + config.vocab_size)
    attention = 2 * config.num_hidden_layers * config.hidden_size * length
    spoken = CHOSEN + bag / length
    return 6 * (blocks + spoken * head + attention)
