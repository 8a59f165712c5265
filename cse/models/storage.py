"""How a checkpoint stores what was learned: in full, in half precision, or as int8 differences from its backbone.

Training moves a weight far less than its own size, so eight bits a weight hold the difference better than sixteen hold
the weight, in half the space.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import torch

from cse.errors import ArtefactError

DIFFERENCE, SCALE = ".difference", ".scale"  # what follows a tensor's name
LEVELS = 127  # of an int8, on either side of zero


class Storage(str, Enum):
    """The numbers in a checkpoint's file; all are computed in float32 once loaded."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"  # matrices as their difference from the backbone's, a scale for each row; the rest as float16


def pack(
    learned: Mapping[str, torch.Tensor], start: Mapping[str, torch.Tensor], storage: Storage
) -> dict[str, torch.Tensor]:
    """The tensors to store for `learned` ones; `start` holds the backbone's by the same names, read for int8 alone.

    A matrix (n, m) of the backbone becomes its difference (n, m) int8 and scales (n, 1) float32, the largest
    difference of each row over 127. What the backbone does not have, as a prefix or a head, stays whole.
    """
    stored: dict[str, torch.Tensor] = {}
    for name, tensor in learned.items():
        value = tensor.detach().cpu()
        if storage is Storage.INT8 and name in start and value.dim() == 2:
            difference = value.float() - start[name].detach()
            scale = difference.abs().amax(1, keepdim=True) / LEVELS
            levels = torch.where(scale > 0, difference / scale, 0.0).round()
            stored |= {name + DIFFERENCE: levels.to(torch.int8), name + SCALE: scale}
        else:
            half = storage is not Storage.FLOAT32
            stored[name] = value.to(torch.float16 if half else torch.float32).contiguous()
    return stored


def unpack(stored: Mapping[str, torch.Tensor], start: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The learned tensors of `pack`'s, any storage; `start` holds the backbone's by name.

    Raises ArtefactError for a difference that lacks its scale or fits no tensor of `start`.
    """
    learned: dict[str, torch.Tensor] = {}
    for key, tensor in stored.items():
        name = key.removesuffix(DIFFERENCE)
        if name != key:
            origin, scale = start.get(name), stored.get(name + SCALE)
            if origin is None or scale is None or origin.shape != tensor.shape or scale.shape != (len(tensor), 1):
                raise ArtefactError(f"{key} does not fit its backbone or its scale")
            learned[name] = origin.detach().cpu() + tensor.float() * scale
        elif key.removesuffix(SCALE) + DIFFERENCE not in stored:
            learned[key] = tensor
    return learned
