"""Weights in files of limited size, for hosts with such a limit: larger tensors are split by rows.

`transformers` cannot join such tensors, so the files have names of their own: it refuses the folder instead of opening
it with random rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cse.errors import ArtefactError

if TYPE_CHECKING:
    import numpy as np
    import torch

PATTERN = "parts{suffix}.safetensors"
INDEX = "parts.safetensors.index.json"
PART = re.compile(r"(.+)\.rows([0-9]+)")  # the tensor and the part's first row


def save_parts(tensors: Mapping[str, torch.Tensor], folder: Path, limit: int) -> None:
    """Write tensors to files of at most `limit` bytes each, without headers. Raises ValueError if a row is longer."""
    from huggingface_hub import save_torch_state_dict

    save_torch_state_dict(split(tensors, limit), folder, filename_pattern=PATTERN, max_shard_size=limit)


def split(tensors: Mapping[str, torch.Tensor], limit: int) -> dict[str, torch.Tensor]:
    """Split tensors of more than `limit` bytes into parts of as many whole rows as fit; keep the others."""
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


def join(parts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Join the parts of `split` into arrays. Raises ArtefactError if a part before another is missing."""
    import numpy as np

    arrays: dict[str, np.ndarray] = {}
    runs: dict[str, dict[int, np.ndarray]] = {}
    for name, array in parts.items():
        if match := PART.fullmatch(name):
            runs.setdefault(match[1], {})[int(match[2])] = array
        else:
            arrays[name] = array
    for name, run in runs.items():
        row = 0
        for first, part in sorted(run.items()):
            if first != row:
                raise ArtefactError(f"{name}: rows {row} to {first} are missing; copy or train it again")
            row += len(part)
        arrays[name] = np.concatenate([part for _, part in sorted(run.items())])
    return arrays


def whole_name(name: str) -> str:
    """Return the tensor's name for the stored name of a tensor or of a part."""
    match = PART.fullmatch(name)
    return match[1] if match else name
