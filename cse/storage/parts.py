"""Weights in files below a size, for hosts that take no larger ones: a tensor beyond it is cut into runs of its rows.

`transformers` cannot put such tensors together again, so the files have a name of their own and it refuses the folder
instead of opening it with random rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cse.errors import ArtefactError

if TYPE_CHECKING:
    import torch

PATTERN = "parts{suffix}.safetensors"
INDEX = "parts.safetensors.index.json"
PART = re.compile(r"(.+)\.rows([0-9]+)")  # the tensor and the first of the part's rows


def save_parts(tensors: Mapping[str, torch.Tensor], folder: Path, limit: int) -> None:
    """Write tensors to files of at most `limit` bytes each, headers aside. Raises ValueError where a row is longer."""
    from huggingface_hub import save_torch_state_dict

    save_torch_state_dict(split(tensors, limit), folder, filename_pattern=PATTERN, max_shard_size=limit)


def split(tensors: Mapping[str, torch.Tensor], limit: int) -> dict[str, torch.Tensor]:
    """The tensors, those of more than `limit` bytes as parts of as many whole rows as fit."""
    parts: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.nbytes <= limit:
            parts[name] = tensor
            continue
        rows = limit // (tensor.nbytes // len(tensor))
        if rows == 0:
            raise ValueError(f"a row of {name} has more than {limit} bytes; give a larger `file_size`")
        for first in range(0, len(tensor), rows):
            parts[f"{name}.rows{first}"] = tensor[first : first + rows].clone()
    return parts


def join(parts: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of `split`'s parts. Raises ArtefactError where a part is missing before another."""
    import torch

    tensors: dict[str, torch.Tensor] = {}
    runs: dict[str, dict[int, torch.Tensor]] = {}
    for name, tensor in parts.items():
        if match := PART.fullmatch(name):
            runs.setdefault(match[1], {})[int(match[2])] = tensor
        else:
            tensors[name] = tensor
    for name, run in runs.items():
        row = 0
        for first, part in sorted(run.items()):
            if first != row:
                raise ArtefactError(f"{name}: rows {row} to {first} are missing; copy or train it again")
            row += len(part)
        tensors[name] = torch.cat([part for _, part in sorted(run.items())])
    return tensors


def whole_name(name: str) -> str:
    """The tensor that a stored name is, or is a part of."""
    match = PART.fullmatch(name)
    return match[1] if match else name
