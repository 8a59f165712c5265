"""Normalisation, cosine similarity, smoothing and quantisation of vectors as rows of numpy arrays."""

from __future__ import annotations

import numpy as np

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
COSINES_AT_ONCE = 1 << 24  # of `nearest_others`: 64 MB of float32
MIXED_AT_ONCE = 1024  # rows of `smoothed`: 16 MB of float32 for 10 neighbours of 384 dimensions
OWN_SHARE = 0.5  # of a row in its smoothed one
ALPHA = 3.0  # power of the cosine that weighs a neighbour (Radenović et al. 2018)


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Return (N, d) rows of length 1 in the dtype of `rows`, integers as float64; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the (N,) cosines of the rows of two (N, d) arrays; 0 if a row is zero, NaN if one has a NaN."""
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.divide((first * second).sum(1), norms, out=np.zeros(len(first), np.float64), where=norms != 0)


def nearest_others(rows: np.ndarray, count: int) -> np.ndarray:
    """Return the (N, k) indices of the other rows (N, d) with the highest cosines to each, best first.

    k is `count`, at most N - 1. Computes all cosines, a block of rows at a time.
    """
    unit, count = unit_rows(rows), max(0, min(count, len(rows) - 1))
    neighbours = np.empty((len(unit), count), dtype=np.int64)
    block = max(1, COSINES_AT_ONCE // max(1, len(unit)))
    for start in range(0, len(unit) if count else 0, block):
        distances = -unit[start : start + block] @ unit.T
        own = np.arange(len(distances))
        distances[own, start + own] = np.inf
        best = np.argpartition(distances, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(distances, best, axis=1), axis=1, kind="stable")
        neighbours[start : start + block] = np.take_along_axis(best, order, axis=1)
    return neighbours


def cosines_to_others(rows: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the (n, N) float32 cosines of the `chosen` (n,) rows with all rows (N, d); NaN with themselves."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))  # without a copy of the rows
    products = lengths[chosen, None] * lengths
    found = np.divide(rows[chosen] @ rows.T, products, out=np.zeros_like(products), where=products > 0)
    found[np.arange(len(chosen)), chosen] = np.nan
    return found


def mixed(rows: np.ndarray, near: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return unit rows (q, d): unit(`OWN_SHARE` * row + the rest * weighted mean of its neighbours).

    `rows` (q, d) have length 1, `near` (q, k, d) are their neighbours, and `scores` (q, k) the cosines, whose power
    `ALPHA` weighs a neighbour; neighbours with a cosine of 0 or less are left out. A row with no others stays as it is.
    """
    weights = np.where(scores > 0, scores, 0) ** ALPHA * (scores > 0)
    totals = weights.sum(axis=1, keepdims=True)
    means = np.einsum("qk,qkd->qd", weights / np.where(totals > 0, totals, 1), near)
    return unit_rows(OWN_SHARE * rows + (1 - OWN_SHARE) * means)


def smoothed(rows: np.ndarray, count: int) -> np.ndarray:
    """Return (N, d) unit rows, each mixed with its `count` nearest others by cosine (`mixed`); 0 only normalises.

    Database-side augmentation of image retrieval (Arandjelović and Zisserman 2012), weighed as in alpha query expansion
    (Radenović et al. 2018). Compares all pairs, a block of rows at a time. Raises ValueError for a `count` below 0.
    """
    if count < 0:
        raise ValueError(f"`count` is {count}; give 0 or more neighbours")
    unit = unit_rows(rows)
    nearest, out = nearest_others(unit, count), np.empty_like(unit)
    for start in range(0, len(unit), MIXED_AT_ONCE):
        block = unit[start : start + MIXED_AT_ONCE]
        near = unit[nearest[start : start + MIXED_AT_ONCE]]  # (block, k, d)
        out[start : start + len(block)] = mixed(block, near, np.einsum("qd,qkd->qk", block, near))
    return out


def quantised(rows: np.ndarray, precision: str) -> np.ndarray:
    """Quantise (N, d) float32 rows to one of `PRECISIONS`, exactly as sentence-transformers' `quantize_embeddings`.

    uint8 divides the range of each dimension over these rows into 255 steps, int8 is the same minus 128; both raise
    ValueError for a single row. ubinary is (N, ceil(d / 8)) bytes with a bit set for each number above 0, binary the
    same minus 128 as int8. An empty array is returned unchanged.
    """
    if precision == "float32" or not len(rows):
        return rows
    if precision.endswith("binary"):
        bits = np.packbits(rows > 0, axis=1)
        return bits if precision == "ubinary" else (bits ^ 128).view(np.int8)  # minus 128 flips the highest bit
    if len(rows) == 1:
        raise ValueError(f"`precision` {precision} needs the range of several vectors; give more than one sentence")
    lowest = rows.min(0)
    steps = (rows.max(0) - lowest) / 255
    levels = np.floor((rows - lowest) / np.where(steps == 0, 1, steps)).clip(0, 255)
    return levels.astype(np.uint8) if precision == "uint8" else (levels - 128).astype(np.int8)
