"""FLOPs of encoding and of masked-LM training, and the matrix rate of a device, which bounds both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import linear

from cse.training.losses import CHOSEN_SHARE

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

SIZES = {"cpu": 1024, "cuda": 8192}
REPEATS = 5


def matrix_rate(device: torch.device, dtype: torch.dtype, clock: Callable[[], float] = time.perf_counter) -> float:
    """FLOP/s of the best of five square matrix products on `device`: the upper limit of what a model can reach."""
    size = SIZES.get(device.type, 1024)
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    best = float("inf")
    for _ in range(REPEATS + 1):  # the first one warms up, and the minimum drops it
        _wait(device)
        started = clock()
        linear(left, right)
        _wait(device)
        best = min(best, clock() - started)
    return 2 * size**3 / best


def step_rate(accelerator: Accelerator) -> float:
    """The matrix rate (FLOP/s) of the device in the precision that steps are computed in."""
    half = accelerator.mixed_precision == "bf16"
    return matrix_rate(accelerator.device, torch.bfloat16 if half else torch.float32)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def encoding_flops(model: PreTrainedModel, lengths: Iterable[int], prefix: int = 0) -> float:
    """FLOPs of one forward pass over rows of `lengths` tokens, none of them padding, behind a `prefix` of keys.

    Every token counts in every layer, also where only one position of the last is read: the figure is one of the work
    asked for, so that what is left out shows as a higher rate.
    """
    config: Any = model.config
    encoder: Any = model.base_model.encoder
    weights = sum(_weights(layer) for layer in encoder.layer)
    attention = 2 * config.hidden_size * len(encoder.layer)  # a key: its score, and its share of the weighted sum
    return float(sum(2 * length * (weights + attention * (length + prefix)) for length in lengths))


def contrastive_flops(model: PreTrainedModel, lengths: Iterable[int], prefix: int = 0) -> float:
    """FLOPs of a contrastive step over rows of `lengths` tokens: those of `encoding_flops`, and of their gradients.

    A backward pass takes twice the forward one, or as much as it where the weights are frozen. Denoising is no part.
    """
    encoder: Any = model.base_model.encoder
    return encoding_flops(model, lengths, prefix) * (3 if _learns(encoder) else 2)


def training_flops(model: PreTrainedModel, length: int) -> float:
    """FLOPs of masked-LM training per token, forward and backward, in rows of `length` tokens.

    2 forward and 4 backward for each weight that a token is multiplied with, and as often 2 x width x length in each
    layer for attention (Chowdhery et al. 2022, appendix B); frozen lowest layers have no backward. Only the masked
    tokens go through the MLM head.
    """
    config: Any = model.config
    encoder: Any = model.base_model.encoder
    attention = 2 * config.hidden_size * length
    blocks = sum((6 if _learns(layer) else 2) * (_weights(layer) + attention) for layer in encoder.layer)
    head = config.hidden_size * (config.hidden_size + config.vocab_size)
    return blocks + 6 * CHOSEN_SHARE * head


def _learns(part: torch.nn.Module) -> bool:
    return any(tensor.requires_grad for tensor in part.parameters())


def _weights(layer: torch.nn.Module) -> int:
    return sum(tensor.numel() for tensor in layer.parameters() if tensor.dim() > 1)
