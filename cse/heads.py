"""The heads that methods train on top of the pooled vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from cse.backbone import mlm_head

if TYPE_CHECKING:
    from transformers import PreTrainedModel

INIT_STD = 0.02  # the backbones' own initialiser


class TransformHead(nn.Module):
    """The masked LM's transform (dense, GELU, LayerNorm) as a head of its own, starting from the backbone's weights."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        head: Any = mlm_head(model)
        source = head.predictions.transform if hasattr(head, "predictions") else head
        norm = source.LayerNorm if hasattr(source, "LayerNorm") else source.layer_norm
        self.dense = nn.Linear(norm.normalized_shape[0], norm.normalized_shape[0])
        self.norm = nn.LayerNorm(norm.normalized_shape, eps=norm.eps)
        self.dense.load_state_dict(source.dense.state_dict())
        self.norm.load_state_dict(norm.state_dict())

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """(B, d) -> (B, d)."""
        return self.norm(nn.functional.gelu(self.dense(hidden)))


def tanh_head(width: int) -> nn.Sequential:
    """A fresh linear layer with tanh, SimCSE's training head."""
    dense = nn.Linear(width, width)
    nn.init.normal_(dense.weight, std=INIT_STD)
    nn.init.zeros_(dense.bias)
    return nn.Sequential(dense, nn.Tanh())
