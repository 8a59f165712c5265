"""Spearman and Pearson correlations x 100 of the cosines of sentence pairs with human grades."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cse.data import Pair
from cse.vectors import cosines

if TYPE_CHECKING:
    from cse.evaluation import Encode


def spearman(encode: Encode, pairs: Sequence[Pair]) -> float:
    """Spearman x 100 of the pairs' cosines with their grades; each distinct sentence is encoded once."""
    return correlation(pair_cosines(encode, pairs), [grade for grade, _, _ in pairs])


def correlation(found: np.ndarray, grades: Iterable[float]) -> float:
    """Spearman x 100 of cosines (N,) with grades (N,); 0 where all cosines are equal.

    Raises ValueError where all grades are.
    """
    from scipy.stats import spearmanr

    grades = np.asarray(grades)
    if np.ptp(grades) == 0:
        raise ValueError(f"all {len(grades)} pairs have the same grade; a correlation needs different ones")
    return 100 * float(spearmanr(found, grades).statistic) if np.ptp(found) > 0 else 0.0


def pearson(found: np.ndarray, grades: np.ndarray) -> float:
    """Pearson x 100 of cosines (N,) with grades (N,); 0 where all cosines are equal."""
    return 100 * float(np.corrcoef(found, grades)[0, 1]) if np.ptp(found) > 0 else 0.0


def pair_cosines(encode: Encode, pairs: Sequence[Pair]) -> np.ndarray:
    """(N,) the cosine of each pair; each distinct sentence is encoded once."""
    _, first, second = pair_vectors(encode, pairs)
    return cosines(first.astype(np.float64), second.astype(np.float64))


def pair_vectors(encode: Encode, pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of the distinct sentences (M, d), each encoded once, and of the pairs' first and second ones (N, d)."""
    texts = distinct_texts(pairs)
    row = {text: number for number, text in enumerate(texts)}
    vectors = encode(texts)
    return vectors, vectors[[row[first] for _, first, _ in pairs]], vectors[[row[second] for _, _, second in pairs]]


def distinct_texts(pairs: Iterable[Pair]) -> list[str]:
    """The distinct sentences of the pairs, in the order they first come."""
    return list(dict.fromkeys(text for _, first, second in pairs for text in (first, second)))
