"""In which numbers an encoder computes: float32, or bfloat16 where the machine multiplies it several times faster."""

from __future__ import annotations

import torch

from cse.encoding.encoder import Encoder
from cse.encoding.machine import extensions, gpu_has_bf16

PRECISIONS = ("auto", "no", "bf16")
FAST = {"AVX512-BF16", "AMX"}


def computes_in_bf16(precision: str, device: torch.device) -> bool:
    """Whether `precision` (bf16, no, or auto: where the device is fast at it) means bfloat16 on `device`.

    Raises ValueError for another word.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"`precision` is {precision!r}; choose from {', '.join(PRECISIONS)}")
    fast = gpu_has_bf16() if device.type == "cuda" else bool(FAST & set(extensions()))
    return precision == "bf16" or (precision == "auto" and fast)


def in_precision(encoder: Encoder, precision: str) -> Encoder:
    """The encoder with its weights in bfloat16 where `computes_in_bf16` says so; vectors are float32 in either case.

    What was rounded stays so, and its fingerprint is another: an encoder to encode with, not to save.
    """
    return encoder.bfloat16() if computes_in_bf16(precision, encoder.device) else encoder
