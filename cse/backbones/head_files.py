"""Heads as arrays: those in the weight files of published checkpoints, and pretrained poolers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cse.errors import ArtefactError
from cse.methods.method import Head

STORED = {  # name in the released checkpoints -> name here
    Head.TANH: {"dense.weight": "0.weight", "dense.bias": "0.bias"},
    Head.TRANSFORM: {
        "dense.weight": "dense.weight", "dense.bias": "dense.bias",
        "LayerNorm.weight": "norm.weight", "LayerNorm.bias": "norm.bias",
    },
}  # fmt: skip


def head_width(arrays: Mapping[str, np.ndarray]) -> int:
    """Return the width of a head's output."""
    return len(next(array for name, array in arrays.items() if name.endswith(".bias")))


def stored_head(
    name: str, kind: Head, width: int, weights: Mapping[str, np.ndarray], places: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the head in the `weights` of `name`, under the first of `places` (key prefixes) that they have.

    Its keys are those of the module. Raises ArtefactError for a head that is missing, of another kind or of another
    width than the backbone.
    """
    place = next((place for place in places if any(key.startswith(place) for key in weights)), places[0])
    found = {key.removeprefix(place): array for key, array in weights.items() if key.startswith(place)}
    if odd := sorted(found.keys() ^ STORED[kind].keys()):
        key = f"{place}{odd[0]}"
        raise ArtefactError(
            f"{name}: unknown weight {key} in its head" if odd[0] in found else f"{name}: its head lacks {key}"
        )
    for key, array in found.items():
        wanted = (width, width) if key == "dense.weight" else (width,)
        if array.shape != wanted:
            raise ArtefactError(f"{name}: {place}{key} is {array.shape}, not {wanted}")
    return {STORED[kind][key]: np.ascontiguousarray(array, np.float32) for key, array in found.items()}
