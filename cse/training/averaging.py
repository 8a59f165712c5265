"""Averaging of trained parameters with their start, which keeps more of what the start could do.

WiSE-FT: Wortsman et al. 2022, "Robust fine-tuning of zero-shot models" (CVPR).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch


def copied(parameters: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies of parameters by name."""
    return {name: tensor.detach().clone() for name, tensor in parameters.items()}


@contextmanager
def averaged(parameters: Mapping[str, torch.Tensor], start: Mapping[str, torch.Tensor], share: float) -> Iterator[None]:
    """In the block the parameters are `share` x `start` + (1 - `share`) x themselves; afterwards they are as before."""
    if not share:
        yield
        return
    trained = copied(parameters)
    try:
        with torch.no_grad():
            for name, tensor in parameters.items():
                tensor.lerp_(start[name], share)
        yield
    finally:
        with torch.no_grad():
            for name, tensor in parameters.items():
                tensor.copy_(trained[name])
