"""Storage of learned tensors in a checkpoint: float32, float16, or differences from the backbone.

Training changes a weight by far less than its magnitude, so 8 bits per weight for the difference are more accurate than
16 bits for the weight, in half the space.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

import numpy as np

from cse.errors import ArtefactError

DIFFERENCE, SCALE = ".difference", ".scale"  # suffixes of a tensor's name
LEVELS = 127  # of an int8, on each side of zero


class Storage(str, Enum):
    """The number format in a checkpoint's file; computation is in float32."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    DELTA = "delta"  # float16 differences from the backbone; the rest as float32
    INT8 = "int8"  # matrices as differences from the backbone, with a scale per row; the rest as float16

    @property
    def differs(self) -> bool:
        """True if differences from the backbone are stored."""
        return self in (Storage.DELTA, Storage.INT8)


def pack(learned: Mapping[str, np.ndarray], start: Mapping[str, np.ndarray], storage: Storage) -> dict[str, np.ndarray]:
    """Return the arrays to store for `learned`; `start` holds the backbone's by the same names, for differences.

    With `DELTA` an array of the backbone becomes its difference in float16. With `INT8` a matrix (n, m) of the backbone
    becomes its difference (n, m) int8 and scales (n, 1) float32, the largest difference of each row over 127. Arrays
    that the backbone lacks, such as a prefix or a head, are stored directly.
    """
    stored: dict[str, np.ndarray] = {}
    for name, array in learned.items():
        if storage is Storage.INT8 and name in start and array.ndim == 2:
            difference = array - start[name]
            scale = np.abs(difference).max(1, keepdims=True) / np.float32(LEVELS)
            levels = np.rint(np.divide(difference, scale, out=np.zeros_like(difference), where=scale > 0))
            stored |= {name + DIFFERENCE: levels.astype(np.int8), name + SCALE: scale}
        elif storage is Storage.DELTA and name in start:
            stored[name + DIFFERENCE] = (array - start[name]).astype(np.float16)
        else:
            stored[name] = array.astype(np.float32 if storage in (Storage.FLOAT32, Storage.DELTA) else np.float16)
    return stored


def unpack(
    stored: Mapping[str, np.ndarray], start: Mapping[str, np.ndarray], place: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the learned array of each of `pack`'s, in any storage; `start` holds the backbone's by name.

    Raises ArtefactError, beginning with `place`, for a difference that lacks its scale or fits no array of `start`.
    """
    for key, array in stored.items():
        name = key.removesuffix(DIFFERENCE)
        if name != key:
            origin, scale = start.get(name), stored.get(name + SCALE)
            rounded = array.dtype == np.int8
            fits = scale is not None and scale.shape == (len(array), 1) if rounded else scale is None
            if origin is None or origin.shape != array.shape or not fits:
                raise ArtefactError(f"{place}: {key} does not fit its backbone or its scale; train it again")
            yield name, origin + array.astype(np.float32) * (1 if scale is None else scale)
        elif key.removesuffix(SCALE) + DIFFERENCE not in stored:
            yield key, array


def stored_names(stored: Mapping[str, np.ndarray]) -> set[str]:
    """Return the names of the learned arrays in those of `pack`."""
    scales = {key.removesuffix(DIFFERENCE) + SCALE for key in stored if key.endswith(DIFFERENCE)}
    return {key.removesuffix(DIFFERENCE) for key in stored.keys() - scales}
