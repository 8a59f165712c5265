"""Poolings of states, and heads on pooled vectors, in PyTorch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from cse.encoder.backbone import mlm_head, norm_eps
from cse.errors import ArtefactError
from cse.methods.method import JOINED, Head, Pooling

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def mean_of_layers(output: Any, layers: Sequence[int]) -> torch.Tensor:
    """Return the mean (B, L, d) of the hidden states of `layers`, as `cse.methods.method.LAYERS` counts."""
    states = [output.last_hidden_state if layer == -1 else output.hidden_states[layer] for layer in layers]
    return torch.stack(states).mean(0) if len(states) > 1 else states[0]


def pooled_states(pooling: Pooling, hidden: torch.Tensor, pooled: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    """Return (B, d) float32 vectors of the states `hidden` (B, L, d), for JOINED (B, 2 d).

    `pooled` (B, L) is 1 where all tokens are read, `first` (B, d) is the state of the one token that else is read.
    """
    if pooling in (Pooling.TOKEN, Pooling.LAST):
        return first
    if pooling in JOINED:
        readings = {Pooling.TOKEN: first, Pooling.MEAN: token_mean(hidden, pooled)}
        return torch.cat([readings[part] for part in JOINED[pooling]], dim=1)
    if pooling is Pooling.MAX:
        return hidden.masked_fill(pooled[..., None] == 0, -torch.inf).amax(1).float()
    if pooling is Pooling.WEIGHTED_MEAN:
        pooled = pooled * torch.arange(1, pooled.shape[1] + 1, device=pooled.device)
    mean = token_mean(hidden, pooled)
    return mean * pooled.sum(1, keepdim=True).sqrt() if pooling is Pooling.MEAN_SQRT_LEN else mean


def token_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the (B, d) float32 mean of states (B, L, d) where a mask or weights (B, L) are not 0."""
    weights = mask[..., None].to(hidden.dtype)
    return ((hidden * weights).sum(1) / weights.sum(1).clamp(min=1)).float()


INIT_STD = 0.02  # as the backbones' own initialisation


def _transform(config: Any) -> Any:
    """Return the masked LM's transform as a head."""
    width = int(config.hidden_size)
    dense, norm = nn.Linear(width, width), nn.LayerNorm(width, eps=norm_eps(config))
    return nn.Sequential(OrderedDict(dense=dense, gelu=nn.GELU(), norm=norm))


def new_head(model: PreTrainedModel, kind: Head, width: int) -> nn.Module:
    """Return a training head: SimCSE's linear layer with tanh, or a transform initialised from the backbone's own.

    Raises ArtefactError for the second if the backbone has none.
    """
    if kind is Head.TANH:
        layer = nn.Linear(width, width)
        nn.init.normal_(layer.weight, std=INIT_STD)
        nn.init.zeros_(layer.bias)
        return nn.Sequential(layer, nn.Tanh())
    mlm_head(model)  # raises if there is none
    width, base = int(model.config.hidden_size), set(model.base_model.modules())
    own = [module for module in model.modules() if module not in base]
    dense = next((own for own in own if isinstance(own, nn.Linear) and own.weight.shape == (width, width)), None)
    norm = next((own for own in own if isinstance(own, nn.LayerNorm) and own.normalized_shape == (width,)), None)
    if dense is None or norm is None:
        raise ArtefactError(
            f"the masked-language-model head of this {model.config.model_type} model is of another width than its "
            "states, so no head can begin as it; train another method"
        )
    made = _transform(model.config)
    for target, source in ((made.dense, dense), (made.norm, norm)):
        nn.init.zeros_(target.bias)  # ModernBERT has none
        target.load_state_dict(source.state_dict(), strict=False)
    return made


class _Unit(nn.Module):
    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(hidden, dim=1)


def head_module(layers: Sequence[str], arrays: Mapping[str, np.ndarray], config: Any) -> nn.Module:
    """Return the module of a head on a backbone of this `config`; `layers` as `Reading.head_layers`."""
    made: dict[str, Callable[[int], nn.Module]] = {
        "linear": lambda number: nn.Linear(*arrays[f"{number}.weight"].shape[::-1]),
        "norm": lambda number: nn.LayerNorm(*arrays[f"{number}.weight"].shape),
        "tanh": lambda _: nn.Tanh(), "unit": lambda _: _Unit(),
    }  # fmt: skip
    modules = (made[layer](number) for number, layer in enumerate(layers))
    head = nn.Sequential(*modules) if layers else _transform(config)
    head.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
    return head
