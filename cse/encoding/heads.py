"""Heads on the pooled vector: those that methods train, and those of published checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from cse.encoding.backbone import mlm_head
from cse.errors import ArtefactError
from cse.methods.method import Head

if TYPE_CHECKING:
    from transformers import PreTrainedModel

INIT_STD = 0.02  # as the backbones' own initialisation
STORED = {  # name in the released checkpoints -> name here
    Head.TANH: {"dense.weight": "0.weight", "dense.bias": "0.bias"},
    Head.TRANSFORM: {
        "dense.weight": "dense.weight", "dense.bias": "dense.bias",
        "LayerNorm.weight": "norm.weight", "LayerNorm.bias": "norm.bias",
    },
}  # fmt: skip


class TransformHead(nn.Module):
    """The masked LM's transform (dense, GELU, LayerNorm) as a head."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=eps)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map (B, d) to (B, d)."""
        return self.norm(nn.functional.gelu(self.dense(hidden)))


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


def stored_head(
    name: str, kind: Head, model: PreTrainedModel, weights: Mapping[str, torch.Tensor], places: Sequence[str]
) -> nn.Module:
    """Return the head in the `weights` of `name`, under the first of `places` (key prefixes) that they have.

    Raises ArtefactError for a head that is missing, of another kind or of another width than the backbone.
    """
    place = next((place for place in places if any(key.startswith(place) for key in weights)), places[0])
    found = {key.removeprefix(place): tensor for key, tensor in weights.items() if key.startswith(place)}
    if odd := sorted(found.keys() ^ STORED[kind].keys()):
        key = f"{place}{odd[0]}"
        raise ArtefactError(
            f"{name}: unknown weight {key} in its head" if odd[0] in found else f"{name}: its head lacks {key}"
        )
    config = model.config
    head = (
        tanh_head(config.hidden_size) if kind is Head.TANH else TransformHead(config.hidden_size, config.layer_norm_eps)
    )
    for key, parameter in head.named_parameters():
        stored = {here: there for there, here in STORED[kind].items()}[key]
        copy_tensor(found[stored], parameter, f"{name}: {place}{stored}")
    return head


def copy_tensor(tensor: torch.Tensor, parameter: nn.Parameter, what: str) -> None:
    """Copy a stored tensor into a parameter. Raises ArtefactError, beginning with `what`, for another shape."""
    if tensor.shape != parameter.shape:
        raise ArtefactError(f"{what} is {tuple(tensor.shape)}, not {tuple(parameter.shape)}")
    with torch.no_grad():
        parameter.copy_(tensor)
