"""ConSERT's feature cut-off, applied to the output of an embedding layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from cse.encoding.rows import Row


@contextmanager
def zero_cut(embeddings: nn.Module, rows: Sequence[Row]) -> Iterator[None]:
    """Zero the output (B, L, d) of an embedding layer in the dimensions that each of `rows` has `cut` (ConSERT)."""
    if not any(row.cut for row in rows):
        yield
        return

    def zero(module: nn.Module, inputs: tuple[Any, ...], states: torch.Tensor) -> torch.Tensor:
        kept = torch.ones(len(rows), 1, states.shape[2])
        for number, row in enumerate(rows):
            kept[number, :, list(row.cut)] = 0
        return states * kept.to(states)

    hook = embeddings.register_forward_hook(zero)
    try:
        yield
    finally:
        hook.remove()
