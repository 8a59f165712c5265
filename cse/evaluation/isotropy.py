"""Isotropy of sentence vectors: anisotropy, alignment, uniformity, and a map of graded pairs (ConPVP Figure 6)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.corpus.supervised import Pair, scored_pairs
from cse.vectors import cosines, unit_rows

if TYPE_CHECKING:
    from cse.evaluation import Encode, Scores

SHARPNESS = 2.0  # Wang & Isola's t
BLOCK = 512
DIGITS = 4  # of every number of cosines in the results


def anisotropy(vectors: np.ndarray) -> float:
    """Absolute mean cosine, 0 to 1, over the pairs i != j of (N, d) rows (PromptBERT Eq. 1; of tokens: its Table 2).

    The sum of all N^2 cosines is the squared length of the summed unit rows; the self pairs are subtracted.
    A zero row has cosine 0 with all. Raises ValueError for fewer than two rows.
    """
    count = len(_at_least(vectors, 2))
    rows = unit_rows(vectors)
    total = rows.sum(0, dtype=np.float64)
    return abs(float(total @ total) - int(rows.any(1).sum())) / (count * (count - 1))


def effective_rank(vectors: np.ndarray) -> float:
    """Effective rank of centred unit rows (N, d), from 1 to d: the exponential of the entropy of the variances' shares.

    Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality".
    """
    rows = unit_rows(vectors)
    variances = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    shares = variances[variances > 0] / max(variances.sum(), np.finfo(float).tiny)
    return float(np.exp(-(shares * np.log(shares)).sum()))


def alignment(first: np.ndarray, second: np.ndarray) -> float:
    """Mean squared distance, 0 to 4, of the unit rows of two (N, d) arrays of positives (Wang & Isola 2020, alpha 2).

    A zero row counts as orthogonal. Raises ValueError for empty arrays and for different shapes.
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


GRADES, PAIRS_PER_GRADE = (0.0, 3.0, 5.0), 10  # three groups of ten pairs
PERPLEXITY, SEED = 10.0, 42  # the paper gives neither


def drawn_pairs(pairs: list[Pair]) -> list[Pair]:
    """Draw at most ten pairs with a grade of exactly 0, 3 and 5 each, with a fixed seed, in that order."""
    rng = np.random.default_rng(SEED)
    chosen: list[Pair] = []
    for grade in GRADES:
        of_grade = [pair for pair in pairs if pair[0] == grade]
        numbers = rng.permutation(len(of_grade))[:PAIRS_PER_GRADE]
        chosen += [of_grade[number] for number in sorted(numbers.tolist())]
    return chosen


def pair_map(encode: Encode, path: Path) -> Scores:
    """Mean cosine of the drawn pairs of each grade, and a t-SNE map of their sentences (ConPVP Figure 6).

    `points`: `x` and `y` (2n: the n first sentences, then the n second ones) and the pairs' `grades` (n). Raises
    ValueError if fewer than four pairs have one of the grades.
    """
    from sklearn.manifold import TSNE

    chosen = drawn_pairs(scored_pairs(path))
    if len(chosen) < 4:
        raise ValueError(f"{path}: {len(chosen)} pairs are graded exactly 0, 3 or 5; a map needs at least four")
    vectors = encode([*(first for _, first, _ in chosen), *(second for _, _, second in chosen)]).astype(np.float64)
    pair_cosines = cosines(*np.split(vectors, 2))
    grades = np.array([pair[0] for pair in chosen])
    unit = unit_rows(vectors)
    perplexity = min(PERPLEXITY, (len(unit) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", random_state=SEED).fit_transform(unit).round(DIGITS)
    means = {f"cosine of {grade:g}": float(pair_cosines[grades == grade].mean()) for grade in GRADES if grade in grades}
    return {
        **{name: round(value, DIGITS) for name, value in means.items()},
        "pairs": len(chosen),
        "points": {"x": places[:, 0].tolist(), "y": places[:, 1].tolist(), "grades": grades.tolist()},
    }
