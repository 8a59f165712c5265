"""How far a map can be believed: what of the neighbourhoods among the vectors is left on it, in all and by point."""

from __future__ import annotations

import numpy as np

from cse.vectors import unit_rows

LEAST = 10  # points that a score is worth giving for: a map of fewer is nearly always right
NEIGHBOURS = 5  # of the scores
WIDER = 10  # neighbours of which a point may lose some on the map
SAME = 1e-6  # float32 vectors of one sentence differ by less


def trustworthiness(vectors: np.ndarray, xy: np.ndarray) -> float:
    """How far the map's neighbours (N, 2) are neighbours among the vectors (N, d), by cosine, too: 1 is perfect.

    Venna and Kaski 2001, with 5 neighbours, fewer where N < 11; 1 where nothing can be wrong.
    """
    return preserved(directions(vectors), np.asarray(xy, np.float64))


def continuity(vectors: np.ndarray, xy: np.ndarray) -> float:
    """How far the vectors' neighbours (N, d) are neighbours on the map (N, 2) too: the other half of that measure."""
    return preserved(np.asarray(xy, np.float64), directions(vectors))


def preserved(rows: np.ndarray, others: np.ndarray) -> float:
    """1 minus the ranks, among `rows` (N, d), by which the neighbours among `others` (N, e) are too far away."""
    neighbours = min(NEIGHBOURS, (len(rows) - 1) // 2)
    if neighbours < 1 or collapsed(rows) or collapsed(others):
        return 1.0
    from sklearn.manifold import trustworthiness as measure

    return float(measure(rows, others, n_neighbors=neighbours))


def lost(vectors: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """(N,) share of each point's 10 nearest vectors (N, d) that are not among its 10 nearest points (N, 2).

    Fewer than 10 where N < 21; all 0 where nothing can be lost.
    """
    rows, count = directions(vectors), min(WIDER, (len(xy) - 1) // 2)
    if count < 1 or collapsed(rows):
        return np.zeros(len(xy))
    near, shown = nearest(rows, count), nearest(np.asarray(xy, np.float64), count)
    return 1 - (near[:, :, None] == shown[:, None, :]).any(axis=2).mean(axis=1)


def nearest(rows: np.ndarray, count: int) -> np.ndarray:
    """(N, k) numbers of the other rows (N, d) nearest to each, nearest first; k is `count`, or N - 1 where less."""
    squares = (rows * rows).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    np.fill_diagonal(distances, np.inf)
    ranked = distances.argsort(axis=1, kind="stable")
    return ranked[:, : min(count, max(len(rows) - 1, 0))].copy()  # a view would keep all N x N alive


def directions(vectors: np.ndarray) -> np.ndarray:
    """(N, d) float64 rows of length 1, whose distances rank as cosines do."""
    return unit_rows(np.asarray(vectors, np.float64))


def collapsed(rows: np.ndarray) -> bool:
    """Whether all rows are the same."""
    return bool(np.all(np.abs(rows - rows[:1]) < SAME))
