"""The one place where vectors are checked and brought to unit length."""

from __future__ import annotations

import numpy as np


def unit_rows(vectors: np.ndarray, *, dimension: int | None = None, first_row: int = 0) -> np.ndarray:
    """`vectors` (n, d) as contiguous float32 rows of length 1; a zero row stays zero.

    Raises ValueError for another number of axes, for d other than `dimension`, and for a value that is not a finite
    float32, naming its row counted from `first_row`.
    """
    with np.errstate(over="ignore"):  # a float64 beyond float32 becomes inf and is named below
        block = np.ascontiguousarray(vectors, dtype=np.float32)
    if block.ndim != 2 or block.shape[1] == 0:
        raise ValueError(f"vectors have shape {block.shape}, not (n, d)")
    if dimension is not None and block.shape[1] != dimension:
        raise ValueError(
            f"vectors have {block.shape[1]} dimensions, not {dimension}: use the model the index was built with"
        )
    finite = np.isfinite(block).all(axis=1)
    if not finite.all():
        raise ValueError(f"row {first_row + int(np.argmin(finite))} holds a value that is not finite")
    lengths = np.sqrt(np.einsum("nd,nd->n", block, block, dtype=np.float64))  # float64: squares of float32 overflow
    return (block / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
