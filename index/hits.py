"""Search results, and row numbers that a caller gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Rows = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Hit:
    """A sentence found: `rank` from 1 for the best, `score` its cosine with the query, `row` its row number."""

    rank: int
    score: float
    row: int
    text: str


class FewHitsWarning(UserWarning):
    """An approximate index found fewer hits than were asked for."""


def ranked(scores: np.ndarray, rows: np.ndarray, texts: Callable[[np.ndarray], list[str]]) -> list[Hit]:
    """The hits of one query's scores and rows (k,), leaving out row -1; `texts` returns sentences by row."""
    if len(rows) and rows.min() < 0:
        scores, rows = scores[rows >= 0], rows[rows >= 0]
    return list(map(Hit, range(1, len(rows) + 1), scores.tolist(), rows.tolist(), texts(rows)))


def row_numbers(rows: Rows, count: int) -> np.ndarray:
    """`rows` as (n,) int64. Raises ValueError for anything but a list of numbers from 0 to `count` - 1."""
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ValueError(f"rows are {numbers.dtype} of shape {numbers.shape}, not one list of row numbers")
    outside = (numbers < 0) | (numbers >= count)
    if outside.any():
        raise ValueError(f"row {numbers[outside][0]} does not exist; rows go from 0 to {count - 1}")
    return numbers.astype(np.int64)


def spread(rows: np.ndarray, most: int) -> np.ndarray:
    """`most` of the `rows` (n,), evenly spread, or all of them if there are fewer."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
