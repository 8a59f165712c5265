"""Precision of encoding: float32, or bfloat16 where the processor or GPU multiplies it natively."""

from __future__ import annotations

from cse.encoding.encoder import Encoder
from cse.engines.machine import extensions, gpu_has_bf16

INT8 = "int8"
PRECISIONS = ("auto", "no", "bf16", INT8)
FAST = {"AVX512-BF16", "AMX"}


def computes_in_bf16(precision: str, device: str) -> bool:
    """True if `precision` (no, bf16, int8, or auto: bf16 if the device is fast at it) means bfloat16 on `device`.

    Raises ValueError for any other value.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"`precision` is {precision!r}; choose from {', '.join(PRECISIONS)}")
    fast = gpu_has_bf16() if device.startswith("cuda") else bool(FAST & set(extensions()))
    return precision == "bf16" or (precision == "auto" and fast)


def in_precision(encoder: Encoder, precision: str) -> Encoder:
    """Return the encoder, computing in bfloat16 if `computes_in_bf16`, or in int8; vectors are float32 in any case.

    PyTorch rounds the weights, which changes them and the fingerprint for good: do not save such an encoder.
    """
    if precision == INT8:
        return encoder.int8()
    return encoder.bfloat16() if computes_in_bf16(precision, str(encoder.device)) else encoder
