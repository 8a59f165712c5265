"""Precision of an encoder: float32, or bfloat16 on machines that multiply it several times faster."""

from __future__ import annotations

import torch

from cse.encoding.encoder import Encoder
from cse.encoding.machine import extensions, gpu_has_bf16

PRECISIONS = ("auto", "no", "bf16")
FAST = {"AVX512-BF16", "AMX"}


def computes_in_bf16(precision: str, device: torch.device) -> bool:
    """True if `precision` (bf16, no, or auto: if the device is fast at it) means bfloat16 on `device`.

    Raises ValueError for any other value.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"`precision` is {precision!r}; choose from {', '.join(PRECISIONS)}")
    fast = gpu_has_bf16() if device.type == "cuda" else bool(FAST & set(extensions()))
    return precision == "bf16" or (precision == "auto" and fast)


def in_precision(encoder: Encoder, precision: str) -> Encoder:
    """Convert the encoder's weights to bfloat16 if `computes_in_bf16`; vectors are float32 in either case.

    Rounding changes the weights and the fingerprint for good, so use the encoder only for encoding; do not save it.
    """
    return encoder.bfloat16() if computes_in_bf16(precision, encoder.device) else encoder
