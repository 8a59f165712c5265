"""How evenly vectors fill the sphere: anisotropy, alignment and uniformity. Arrays in, numbers out."""

from __future__ import annotations

import numpy as np

from cse.vectors import cosines, unit_rows

SHARPNESS = 2.0  # Wang & Isola's t
BLOCK = 512
DIGITS = 4  # of every number of cosines in the results


def anisotropy(vectors: np.ndarray) -> float:
    """Absolute mean cosine, 0 to 1, over the pairs i != j of (N, d) rows (PromptBERT Eq. 1; of tokens: its Table 2).

    All N^2 cosines add up to the squared length of the summed unit rows; the self pairs are taken out of it.
    A zero row has cosine 0 with all. Raises ValueError for fewer than two rows.
    """
    count = len(_at_least(vectors, 2))
    rows = unit_rows(vectors)
    total = rows.sum(0, dtype=np.float64)
    return abs(float(total @ total) - int(rows.any(1).sum())) / (count * (count - 1))


def alignment(first: np.ndarray, second: np.ndarray) -> float:
    """Mean squared distance, 0 to 4, of the unit rows of two (N, d) arrays of positives (Wang & Isola 2020, alpha 2).

    A zero row counts as orthogonal. Raises ValueError for no row and for different shapes.
    """
    if first.shape != second.shape:
        raise ValueError(f"positives come in pairs; {first.shape} and {second.shape} have different shapes")
    return float(np.mean(2 - 2 * cosines(_at_least(first, 1), second)))


def uniformity(vectors: np.ndarray) -> float:
    """Log of the mean of exp(-2 distance^2), -8 to 0, over the pairs i < j of (N, d) unit rows (Wang & Isola 2020).

    Lower is more uniform. 512 rows at a time. A zero row counts as orthogonal. Raises ValueError for fewer than two.
    """
    rows = unit_rows(_at_least(vectors, 2)).astype(np.float64)
    total = 0.0
    for start in range(0, len(rows), BLOCK):
        squared = 2 - 2 * rows[start : start + BLOCK] @ rows[start:].T  # entry (i, j): rows start + i and start + j
        total += float(np.triu(np.exp(-SHARPNESS * squared), 1).sum())
    return float(np.log(total / (len(rows) * (len(rows) - 1) / 2)))


def _at_least(vectors: np.ndarray, count: int) -> np.ndarray:
    if len(vectors) < count:
        raise ValueError(f"{len(vectors)} vectors; give at least {count}")
    return vectors
