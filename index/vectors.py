"""Checked unit vectors: every vector that enters an index, and every query, is validated and normalised here."""

from __future__ import annotations

import math

import numpy as np


def unit_rows(vectors: np.ndarray, *, dimension: int | None = None, first_row: int = 0) -> np.ndarray:
    """`vectors` (n, d) as contiguous float32 rows of length 1; a zero row stays zero.

    Raises ValueError for another number of axes, for d other than `dimension`, and for a value that is not a finite
    float32, naming its row counted from `first_row`.
    """
    block = np.ascontiguousarray(vectors)
    if block.dtype != np.float32:
        with np.errstate(over="ignore"):  # float64 beyond float32's range becomes inf and raises below
            block = block.astype(np.float32)
    if block.ndim != 2 or block.shape[1] == 0:
        raise ValueError(f"vectors have shape {block.shape}, not (n, d)")
    if dimension is not None and block.shape[1] != dimension:
        raise ValueError(
            f"vectors have {block.shape[1]} dimensions, not {dimension}: use the model the index was built with"
        )
    lengths = np.sqrt(np.vecdot(block, block, dtype=np.float64))  # float64: squares of float32 overflow
    if not math.isfinite(lengths.sum()):
        raise ValueError(f"row {first_row + int(np.argmin(np.isfinite(lengths)))} holds a value that is not finite")
    if not lengths.all():
        lengths[lengths == 0] = 1
    return (block / lengths[:, None]).astype(np.float32)
