"""Lengths and angles of vectors: rows of unit length and cosines, of numpy arrays."""

from __future__ import annotations

import numpy as np


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """(N, d) rows of length 1 in the dtype of `rows`, whole numbers as float64; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(N,) cosine of the rows of two (N, d) arrays; 0 where a row is zero."""
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.divide((first * second).sum(1), norms, out=np.zeros(len(first), np.float64), where=norms > 0)
