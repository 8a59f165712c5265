"""Correlations x 100 of cosines with human grades, differences with their intervals, and isotropy of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cse.corpus.supervised import Pair
from cse.vectors import cosines, unit_rows

if TYPE_CHECKING:
    from cse.evaluation import Encode

Grades = Sequence[float] | np.ndarray  # (N,)
SAME_COSINE = 1e-6  # cosines that differ by less count as equal: float32 is not more precise
DIGITS = 4  # of every number of cosines in the results
BOOTSTRAP_SAMPLES, BOOTSTRAP_SEED = 1000, 123


def spearman(encode: Encode, pairs: Sequence[Pair], name: str = "") -> float:
    """Spearman x 100 of the pairs' cosines with their grades (`correlation`); a distinct sentence is encoded once."""
    return correlation(pair_cosines(encode, pairs), [grade for grade, _, _ in pairs], name)


def correlation(cosines: np.ndarray, grades: Grades, name: str = "", *, ranked: bool = True) -> float:
    """Spearman x 100 of cosines (N,) with grades (N,), or Pearson x 100 unless `ranked`.

    Raises ValueError, beginning with the `name` of the pairs, if it is undefined.
    """
    where = f"{name}: " if name else ""
    if len(cosines) < 2:
        raise ValueError(f"{where}a correlation needs at least two pairs, got {len(cosines)}")
    if not np.isfinite(cosines).all():
        raise ValueError(f"{where}some cosines are not finite, so there is no correlation")
    for what, values, least in (("grade", grades, 0.0), ("cosine", cosines, SAME_COSINE)):
        if np.ptp(values) <= least:
            raise ValueError(f"{where}all {len(cosines)} pairs have the same {what}, so there is no correlation")
    return 100 * float(np.corrcoef(*((ranks(cosines), ranks(grades)) if ranked else (cosines, grades)))[0, 1])


def correlation_or_none(cosines: np.ndarray, grades: Grades) -> float | None:
    """Spearman x 100 of cosines (N,) with grades (N,), two decimals; None if it is undefined."""
    try:
        return round(correlation(cosines, grades), 2)
    except ValueError:
        return None


def ranks(values: Grades) -> np.ndarray:
    """The ranks (N,) from 1 of values (N,); equal ones share their mean."""
    return _ranks_of_codes(np.unique(values, return_inverse=True)[1])


def _ranks_of_codes(codes: np.ndarray) -> np.ndarray:
    """The ranks (N,) from 1 of small whole numbers (N,), counted without sorting; equal ones share their mean."""
    counts = np.bincount(codes)
    return (np.cumsum(counts) - (counts - 1) / 2)[codes]


def mean_or_none(scores: Sequence[float | None]) -> float | None:
    """The mean of scores, two decimals; None if one of them is None."""
    known = [score for score in scores if score is not None]
    return round(sum(known) / len(known), 2) if len(known) == len(scores) else None


def check_grades(pairs: Sequence[Pair], name: object) -> None:
    """Raise ValueError, beginning with the `name` of the pairs, if all grades are equal or there is only one pair."""
    correlation(np.arange(len(pairs)), [grade for grade, _, _ in pairs], str(name))


def pair_cosines(encode: Encode, pairs: Sequence[Pair]) -> np.ndarray:
    """(N,) cosine of each pair; each distinct sentence is encoded once."""
    _, first, second = pair_vectors(encode, pairs)
    return cosines(first.astype(np.float64), second.astype(np.float64))


def pair_vectors(encode: Encode, pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of the M distinct sentences (M, d), each encoded once, and of the pairs' first and second ones (N, d)."""
    texts, numbers = numbered([text for _, *both in pairs for text in both])
    vectors = encode(texts)
    return vectors, vectors[numbers[::2]], vectors[numbers[1::2]]


def distinct_texts(pairs: Iterable[Pair]) -> list[str]:
    """The distinct sentences of the pairs, in order of first occurrence."""
    return list(dict.fromkeys(text for _, *both in pairs for text in both))


def numbered(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The distinct texts in order of first occurrence, and (N,) the number of each text among them."""
    number_of = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return [*number_of], np.array([number_of[text] for text in texts], np.int64)


@dataclass(frozen=True)
class Difference:
    """First minus second in points, with the bounds of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def noise(self) -> bool:
        """True if the 95 % interval includes zero."""
        return self.low <= 0 <= self.high

    def __str__(self) -> str:
        verdict = "inside the noise" if self.noise else "a difference"
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}] {verdict}"

    @classmethod
    def of(cls, value: float, bounds: Iterable[float]) -> Difference:
        """A difference with two decimals."""
        return cls(*(round(float(number), 2) for number in (value, *bounds)))


def paired_bootstrap(
    tasks: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]],
    samples: int = BOOTSTRAP_SAMPLES,
    seed: int = BOOTSTRAP_SEED,
) -> Difference:
    """The difference of two models' Spearman x 100, averaged over tasks, with its 95 % percentile interval.

    A task is (first model's cosines, second's, grades), each (N,), of the same pairs in the same order. Every sample
    draws each task's pairs with replacement, the same ones for both models (Efron and Tibshirani 1993; Koehn 2004).
    Raises ValueError for a task in which a model has no correlation.
    """
    rng = np.random.default_rng(seed)
    for name, (*both, grades) in tasks.items():
        for of_model in both:
            correlation(of_model, grades, name)
    coded = [tuple(np.unique(column, return_inverse=True)[1] for column in columns) for columns in tasks.values()]
    gains = np.zeros(samples)
    for columns in coded:
        for number in range(samples):
            sample: list[np.ndarray] = [np.zeros(1)]
            while not all(np.ptp(column) > 0 for column in sample):  # a constant column, so no correlation, is redrawn
                rows = rng.integers(len(columns[0]), size=len(columns[0]))
                sample = [column[rows] for column in columns]
            gains[number] += _gain(*sample) / len(tasks)
    return Difference.of(float(np.mean([_gain(*columns) for columns in coded])), np.percentile(gains, [2.5, 97.5]))


def _gain(first: np.ndarray, second: np.ndarray, grades: np.ndarray) -> float:
    """The difference of Spearman x 100 with the grades; each value is given by its number among the distinct ones."""
    deviations = [ranks - ranks.mean() for ranks in map(_ranks_of_codes, (first, second, grades))]
    norms = [np.sqrt((column**2).sum()) for column in deviations]
    spearmans = [deviations[i] @ deviations[2] / (norms[i] * norms[2]) for i in (0, 1)]
    return float(100 * (spearmans[0] - spearmans[1]))


def mean_difference(first: np.ndarray, second: np.ndarray) -> Difference:
    """The mean of first minus second x 100 over N texts, values (N,) in [0, 1], with its 95 % percentile interval.

    Every sample draws texts with replacement, the same ones for both (as in `paired_bootstrap`).
    """
    gains = 100 * (np.asarray(first, np.float64) - second)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    means = [gains[rng.integers(len(gains), size=len(gains))].mean() for _ in range(BOOTSTRAP_SAMPLES)]
    return Difference.of(gains.mean(), np.percentile(means, [2.5, 97.5]))


@dataclass(frozen=True)
class Figure:
    """A score, the mean of `count` runs, and their sample `deviation`, None for a single run."""

    value: float
    deviation: float | None = None
    count: int = 1


def over_seeds(runs: Sequence[float]) -> Figure:
    """The figure of one score over seeds."""
    return Figure(float(np.mean(runs)), float(np.std(runs, ddof=1)) if len(runs) > 1 else None, len(runs))


def margin(first: Figure, second: Figure) -> float | None:
    """Half the 95 % interval of the difference of two means: Welch's if both have a deviation.

    A side without a deviation counts as a single run with the other side's deviation, and one of `deviation` 0 and
    `count` 1 as a number that no seed moves. None if neither has one.
    """
    from scipy.special import stdtrit  # not scipy.stats, whose import takes longer than all else here

    known = [(side.deviation, side.count) for side in (first, second) if side.deviation is not None and side.count > 1]
    if not known:
        return None
    if len(known) == 1:
        ((deviation, count),) = known
        fixed = any(side.deviation == 0 and side.count == 1 for side in (first, second))
        return float(stdtrit(count - 1, 0.975) * deviation * np.sqrt(1 / count + (not fixed)))
    parts = [deviation**2 / count for deviation, count in known]
    if not sum(parts):
        return 0.0
    freedom = sum(parts) ** 2 / sum(part**2 / (count - 1) for part, (_, count) in zip(parts, known, strict=True))
    return float(stdtrit(freedom, 0.975) * np.sqrt(sum(parts)))


def seeds_differ(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """First minus second mean over seeds with Welch's 95 % interval; None if either has a single run."""
    one, other = over_seeds(first), over_seeds(second)
    if one.deviation is None or other.deviation is None:
        return None
    value, half = one.value - other.value, margin(one, other) or 0.0
    return Difference.of(value, (value - half, value + half))


SHARPNESS = 2.0  # Wang & Isola's t
BLOCK = 512


def anisotropy(vectors: np.ndarray) -> float:
    """Absolute mean cosine, 0 to 1, over the pairs i != j of (N, d) rows (PromptBERT Eq. 1; of tokens: its Table 2).

    The sum of all N^2 cosines is the squared length of the summed unit rows; the self pairs are subtracted.
    A zero row has cosine 0 with all. Raises ValueError for fewer than two rows.
    """
    count, rows = len(vectors), unit_rows(vectors)
    if count < 2:
        raise ValueError(f"{count} vectors; give at least 2")
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

    A zero row counts as orthogonal.
    """
    return float(np.mean(2 - 2 * cosines(first, second)))


def uniformity(vectors: np.ndarray) -> float:
    """Log of the mean of exp(-2 distance^2), -8 to 0, over the pairs i < j of (N, d) unit rows (Wang & Isola 2020).

    Lower is more uniform. 512 rows at a time. A zero row counts as orthogonal. Raises ValueError for fewer than two.
    """
    if len(vectors) < 2:
        raise ValueError(f"{len(vectors)} vectors; give at least 2")
    rows, total = unit_rows(vectors).astype(np.float64), 0.0
    for start in range(0, len(rows), BLOCK):
        squared = 2 - 2 * rows[start : start + BLOCK] @ rows[start:].T  # entry (i, j): rows start + i and start + j
        total += float(np.triu(np.exp(-SHARPNESS * squared), 1).sum())
    return float(np.log(total / (len(rows) * (len(rows) - 1) / 2)))
