"""Float32 linear layers by oneDNN, on processors where it is faster than PyTorch's default.

PyTorch multiplies float32 on x86 with Intel's MKL, which does not use AVX-512 on AMD's processors. From Zen 5 on, which
computes 512 bits at once, oneDNN, part of PyTorch too, is up to 2.2 times as fast; on Zen 4 it is not
(docs/benchmarks.md). Results are float32 in either case, summed in another order.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch.nn.functional import linear, pad
from torch.overrides import TorchFunctionMode

from cse.encoding.machine import AMD, extensions, family, vendor

ZEN_5 = 26  # its family
FEWEST_ROWS = 64  # below, preparing the weights costs more than the product saves
NUMBERS = 8  # row counts between two powers of two: oneDNN compiles and caches code for each


def quick_products(device: torch.device, rows: int) -> AbstractContextManager[Any]:
    """Return a context in which linear layers, and their gradients, use oneDNN if it is faster for so many `rows`."""
    faster = device.type == "cpu" and rows >= FEWEST_ROWS and onednn_is_faster()
    return _ByOneDNN() if faster else nullcontext()


@cache
def onednn_is_faster() -> bool:
    """True if MKL is slow on this processor and this PyTorch offers oneDNN's product."""
    slow = vendor() == AMD and family() >= ZEN_5 and "AVX-512" in extensions()
    return slow and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class _ByOneDNN(TorchFunctionMode):
    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is linear and not kwargs and _suits(*args):
            rows, weight, bias = args if len(args) == 3 else (*args, None)
            return _Linear.apply(rows.flatten(0, -2), weight, bias).unflatten(0, rows.shape[:-1])
        return function(*args, **(kwargs or {}))


def _suits(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> bool:
    float32 = rows.dtype is weight.dtype is torch.float32 and not torch.is_autocast_enabled("cpu")
    return float32 and rows.numel() >= FEWEST_ROWS * rows.shape[-1]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        ctx.save_for_backward(rows, weight)
        return _product(_filled(rows), weight, bias)[: len(rows)]

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        filled = _filled(gradients[0])  # (N, out)
        return (
            _product(filled, weight.T)[: len(rows)] if ctx.needs_input_grad[0] else None,
            _product(filled.T, _filled(rows).T) if ctx.needs_input_grad[1] else None,
            gradients[0].sum(0) if ctx.needs_input_grad[2] else None,
        )


def _filled(rows: torch.Tensor) -> torch.Tensor:
    """Pad rows (N, in) with zero rows to one of few row counts; the products of the other rows do not change.

    oneDNN compiles half a megabyte of code for each new row count and keeps part of it whatever the size of its cache:
    a process that meets all counts up to 2,048 would hold gigabytes.
    """
    step = 2 ** max(0, len(rows).bit_length() - NUMBERS.bit_length())
    missing = -len(rows) % step
    return pad(rows, (0, 0, 0, missing)) if missing else rows  # `pad` copies even if none is missing


def _product(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Return (N, out): rows (N, in) times the transpose of a weight (out, in), plus a bias (out,)."""
    return torch.ops.mkldnn._linear_pointwise(rows.contiguous(), weight.contiguous(), bias, "none", [], "")
