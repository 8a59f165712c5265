"""Storage of learned tensors in a checkpoint: float32, float16, or int8 differences from the backbone.

Training changes a weight by far less than its magnitude, so 8 bits per weight for the difference are more accurate than
16 bits for the weight, in half the space.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import torch

from cse.errors import ArtefactError

DIFFERENCE, SCALE = ".difference", ".scale"  # suffixes of a tensor's name
LEVELS = 127  # of an int8, on each side of zero


class Storage(str, Enum):
    """The number format in a checkpoint's file; computation is in float32."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"  # matrices as differences from the backbone, with a scale per row; the rest as float16


def pack(
    learned: Mapping[str, torch.Tensor], start: Mapping[str, torch.Tensor], storage: Storage
) -> dict[str, torch.Tensor]:
    """Return the tensors to store for `learned`; `start` holds the backbone's by the same names, used only for int8.

    A matrix (n, m) of the backbone becomes its difference (n, m) int8 and scales (n, 1) float32, the largest
    difference of each row over 127. Tensors that the backbone lacks, such as a prefix or a head, are stored directly.
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
    """Return the learned tensors from those of `pack`, in any storage; `start` holds the backbone's by name.

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
