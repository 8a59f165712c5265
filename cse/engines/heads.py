"""Heads on the pooled vector as modules of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from cse.backbones.backbone import mlm_head
from cse.methods.method import Head

if TYPE_CHECKING:
    from transformers import PreTrainedModel

INIT_STD = 0.02  # as the backbones' own initialisation


class TransformHead(nn.Module):
    """The masked LM's transform (dense, GELU, LayerNorm) as a head."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=eps)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map (B, d) to (B, d)."""
        return self.norm(nn.functional.gelu(self.dense(hidden)))


def linear_head(kind: Head, arrays: Mapping[str, np.ndarray]) -> nn.Sequential:
    """Return a linear layer from (B, n) to (B, m), with tanh if the `kind` is TANH, of the shape of its arrays."""
    outputs, inputs = arrays["0.weight"].shape
    return nn.Sequential(nn.Linear(inputs, outputs), *([nn.Tanh()] if kind is Head.TANH else []))


def tanh_head(width: int) -> nn.Sequential:
    """Return a newly initialised linear layer with tanh, SimCSE's training head."""
    dense = nn.Linear(width, width)
    nn.init.normal_(dense.weight, std=INIT_STD)
    nn.init.zeros_(dense.bias)
    return nn.Sequential(dense, nn.Tanh())


def transform_head(model: PreTrainedModel) -> TransformHead:
    """Return a transform initialised from the backbone's own. Raises ArtefactError if that has none."""
    head: Any = mlm_head(model)
    source = head.predictions.transform if hasattr(head, "predictions") else head
    norm = source.LayerNorm if hasattr(source, "LayerNorm") else source.layer_norm
    made = TransformHead(norm.normalized_shape[0], norm.eps)
    made.dense.load_state_dict(source.dense.state_dict())
    made.norm.load_state_dict(norm.state_dict())
    return made


def head_module(kind: Head, arrays: Mapping[str, np.ndarray], config: Any) -> nn.Module:
    """Return the module of a head, from `stored_head`, on a backbone of this `config`."""
    head: nn.Module = TransformHead(config.hidden_size, config.layer_norm_eps)
    if kind is not Head.TRANSFORM:
        head = linear_head(kind, arrays)
    head.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
    return head
