"""Spearman and Pearson correlations x 100 of the cosines of sentence pairs with human grades."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cse.text.sentences import Pair
from cse.vectors import cosines

if TYPE_CHECKING:
    from cse.evaluation import Encode


SAME = 1e-6  # cosines that differ by less count as equal: float32 is not more precise


def spearman(encode: Encode, pairs: Sequence[Pair], name: str = "") -> float:
    """Spearman x 100 of the pairs' cosines with their grades; each distinct sentence is encoded once.

    Raises ValueError as `correlation` does.
    """
    return correlation(pair_cosines(encode, pairs), [grade for grade, _, _ in pairs], name)


def correlation(found: np.ndarray, grades: Sequence[float] | np.ndarray, name: str = "") -> float:
    """Spearman x 100 of cosines (N,) with grades (N,).

    Raises ValueError, beginning with the `name` of the pairs, if it is undefined.
    """
    check_defined(found, grades, name)
    return 100 * float(np.corrcoef(ranks(found), ranks(grades))[0, 1])


def ranks(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """The ranks (N,) from 1 of values (N,); equal ones share their mean."""
    return ranks_of_codes(np.unique(values, return_inverse=True)[1])


def ranks_of_codes(codes: np.ndarray) -> np.ndarray:
    """The ranks (N,) from 1 of small whole numbers (N,), counted without sorting; equal ones share their mean."""
    counts = np.bincount(codes)
    return (np.cumsum(counts) - (counts - 1) / 2)[codes]


def correlation_or_none(found: np.ndarray, grades: Sequence[float] | np.ndarray) -> float | None:
    """Spearman x 100 of cosines (N,) with grades (N,), two decimals; None if it is undefined."""
    return None if _why_undefined(found, grades) else round(correlation(found, grades), 2)


def mean_or_none(scores: Sequence[float | None]) -> float | None:
    """The mean of scores, two decimals; None if one of them is None."""
    known = [score for score in scores if score is not None]
    return round(sum(known) / len(known), 2) if len(known) == len(scores) else None


def pearson(found: np.ndarray, grades: Sequence[float] | np.ndarray, name: str = "") -> float:
    """Pearson x 100 of cosines (N,) with grades (N,). Raises ValueError as `correlation` does."""
    check_defined(found, grades, name)
    return 100 * float(np.corrcoef(found, grades)[0, 1])


def check_grades(pairs: Sequence[Pair], name: object) -> None:
    """Raise ValueError, beginning with the `name` of the pairs, if all grades are equal or there is only one pair."""
    grades = [grade for grade, _, _ in pairs]
    check_defined(np.arange(len(grades)), grades, str(name))


def check_defined(found: np.ndarray, grades: Sequence[float] | np.ndarray, name: str = "") -> None:
    """Raise ValueError if the correlation of cosines (N,) and grades (N,) is undefined or only rounding noise."""
    if reason := _why_undefined(found, grades):
        raise ValueError(f"{name}: {reason}" if name else reason)


def _why_undefined(found: np.ndarray, grades: Sequence[float] | np.ndarray) -> str | None:
    if len(found) < 2:
        return f"a correlation needs at least two pairs, got {len(found)}"
    if not np.isfinite(found).all():
        return "some cosines are not finite, so there is no correlation"
    for what, values, least in (("grade", grades, 0.0), ("cosine", found, SAME)):
        if np.ptp(values) <= least:
            return f"all {len(found)} pairs have the same {what}, so there is no correlation"
    return None


def pair_cosines(encode: Encode, pairs: Sequence[Pair]) -> np.ndarray:
    """(N,) cosine of each pair; each distinct sentence is encoded once."""
    _, first, second = pair_vectors(encode, pairs)
    return cosines(first.astype(np.float64), second.astype(np.float64))


def pair_vectors(encode: Encode, pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of the M distinct sentences (M, d), each encoded once, and of the pairs' first and second ones (N, d)."""
    texts = distinct_texts(pairs)
    row = {text: number for number, text in enumerate(texts)}
    vectors = encode(texts)
    return vectors, vectors[[row[first] for _, first, _ in pairs]], vectors[[row[second] for _, _, second in pairs]]


def distinct_texts(pairs: Iterable[Pair]) -> list[str]:
    """The distinct sentences of the pairs, in order of first occurrence."""
    return list(dict.fromkeys(text for _, first, second in pairs for text in (first, second)))
