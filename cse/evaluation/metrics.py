"""Spearman and Pearson correlations x 100 of the cosines of sentence pairs with human grades."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cse.corpus.supervised import Pair
from cse.vectors import cosines

if TYPE_CHECKING:
    from cse.evaluation import Encode, Scores

SAME_COSINE = 1e-6  # cosines that differ by less count as equal: float32 is not more precise


def spearman(encode: Encode, pairs: Sequence[Pair], name: str = "") -> float:
    """Spearman x 100 of the pairs' cosines with their grades; each distinct sentence is encoded once.

    Raises ValueError as `correlation` does.
    """
    return correlation(pair_cosines(encode, pairs), [grade for grade, _, _ in pairs], name)


def correlation(cosines: np.ndarray, grades: Sequence[float] | np.ndarray, name: str = "") -> float:
    """Spearman x 100 of cosines (N,) with grades (N,).

    Raises ValueError, beginning with the `name` of the pairs, if it is undefined.
    """
    check_defined(cosines, grades, name)
    return 100 * float(np.corrcoef(ranks(cosines), ranks(grades))[0, 1])


def ranks(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """The ranks (N,) from 1 of values (N,); equal ones share their mean."""
    return ranks_of_codes(np.unique(values, return_inverse=True)[1])


def ranks_of_codes(codes: np.ndarray) -> np.ndarray:
    """The ranks (N,) from 1 of small whole numbers (N,), counted without sorting; equal ones share their mean."""
    counts = np.bincount(codes)
    return (np.cumsum(counts) - (counts - 1) / 2)[codes]


def correlation_or_none(cosines: np.ndarray, grades: Sequence[float] | np.ndarray) -> float | None:
    """Spearman x 100 of cosines (N,) with grades (N,), two decimals; None if it is undefined."""
    return None if _why_undefined(cosines, grades) else round(correlation(cosines, grades), 2)


def mean_or_none(scores: Sequence[float | None]) -> float | None:
    """The mean of scores, two decimals; None if one of them is None."""
    known = [score for score in scores if score is not None]
    return round(sum(known) / len(known), 2) if len(known) == len(scores) else None


def pearson(cosines: np.ndarray, grades: Sequence[float] | np.ndarray, name: str = "") -> float:
    """Pearson x 100 of cosines (N,) with grades (N,). Raises ValueError as `correlation` does."""
    check_defined(cosines, grades, name)
    return 100 * float(np.corrcoef(cosines, grades)[0, 1])


def check_grades(pairs: Sequence[Pair], name: object) -> None:
    """Raise ValueError, beginning with the `name` of the pairs, if all grades are equal or there is only one pair."""
    grades = [grade for grade, _, _ in pairs]
    check_defined(np.arange(len(grades)), grades, str(name))


def check_defined(cosines: np.ndarray, grades: Sequence[float] | np.ndarray, name: str = "") -> None:
    """Raise ValueError if the correlation of cosines (N,) and grades (N,) is undefined or only rounding noise."""
    if reason := _why_undefined(cosines, grades):
        raise ValueError(f"{name}: {reason}" if name else reason)


def _why_undefined(cosines: np.ndarray, grades: Sequence[float] | np.ndarray) -> str | None:
    if len(cosines) < 2:
        return f"a correlation needs at least two pairs, got {len(cosines)}"
    if not np.isfinite(cosines).all():
        return "some cosines are not finite, so there is no correlation"
    for what, values, least in (("grade", grades, 0.0), ("cosine", cosines, SAME_COSINE)):
        if np.ptp(values) <= least:
            return f"all {len(cosines)} pairs have the same {what}, so there is no correlation"
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


BOOTSTRAP_SAMPLES = 1000
BOOTSTRAP_SEED = 123


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
            check_defined(of_model, grades, name)
    coded = [tuple(np.unique(column, return_inverse=True)[1] for column in columns) for columns in tasks.values()]
    whole = np.mean([_gain(*columns) for columns in coded])
    drawn = np.zeros(samples)
    for columns in coded:
        for number in range(samples):
            drawn[number] += _drawn_gain(rng, columns) / len(tasks)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Difference(round(float(whole), 2), round(float(low), 2), round(float(high), 2))


def mean_difference(first: np.ndarray, second: np.ndarray, samples: int = BOOTSTRAP_SAMPLES) -> Difference:
    """The mean of first minus second x 100 over N texts, values (N,) in [0, 1], with its 95 % percentile interval.

    Every sample draws texts with replacement, the same ones for both (as in `paired_bootstrap`).
    """
    gains = 100 * (np.asarray(first, np.float64) - second)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = [gains[rng.integers(len(gains), size=len(gains))].mean() for _ in range(samples)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Difference(round(float(gains.mean()), 2), round(float(low), 2), round(float(high), 2))


def _drawn_gain(rng: np.random.Generator, columns: tuple[np.ndarray, ...]) -> float:
    """The gain on pairs drawn with replacement; a sample with a constant column, so no correlation, is redrawn."""
    count = len(columns[0])
    while True:
        rows = rng.integers(count, size=count)
        sample = [column[rows] for column in columns]
        if all(np.ptp(column) > 0 for column in sample):
            return _gain(*sample)


def _gain(first: np.ndarray, second: np.ndarray, grades: np.ndarray) -> float:
    """The difference of Spearman x 100 with the grades; each value is given by its place among the distinct ones."""
    deviations = [ranks - ranks.mean() for ranks in map(ranks_of_codes, (first, second, grades))]
    norms = [np.sqrt((column**2).sum()) for column in deviations]
    spearmans = [deviations[i] @ deviations[2] / (norms[i] * norms[2]) for i in (0, 1)]
    return float(100 * (spearmans[0] - spearmans[1]))


def over_seeds(runs: Sequence[float]) -> tuple[float, float | None]:
    """(mean, sample deviation) of one score over seeds; a single run has no deviation."""
    return float(np.mean(runs)), float(np.std(runs, ddof=1)) if len(runs) > 1 else None


@dataclass(frozen=True)
class Sample:
    """The sample deviation of one side's `count` runs, None for a single run."""

    deviation: float | None
    count: int


def margin(first: Sample, second: Sample) -> float | None:
    """Half the 95 % interval of the difference of two means: Welch's if both have a deviation.

    A side without a deviation counts as a single run with the other side's deviation. None if neither has one.
    """
    from scipy.special import stdtrit  # not scipy.stats, whose import takes longer than all else here

    known = [side for side in (first, second) if side.deviation is not None]
    if not known:
        return None
    if len(known) == 1:
        (side,) = known
        return float(stdtrit(side.count - 1, 0.975) * (side.deviation or 0.0) * np.sqrt(1 + 1 / side.count))
    parts = [(side.deviation or 0.0) ** 2 / side.count for side in known]
    if not sum(parts):
        return 0.0
    freedom = sum(parts) ** 2 / sum(part**2 / (side.count - 1) for part, side in zip(parts, known, strict=True))
    return float(stdtrit(freedom, 0.975) * np.sqrt(sum(parts)))


def seeds_differ(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """First minus second mean over seeds with Welch's 95 % interval; None if either has a single run."""
    (mean, deviation), (other_mean, other_deviation) = over_seeds(first), over_seeds(second)
    if deviation is None or other_deviation is None:
        return None
    half = margin(Sample(deviation, len(first)), Sample(other_deviation, len(second))) or 0.0
    value = mean - other_mean
    return Difference(round(value, 2), round(value - half, 2), round(value + half, 2))


def seed_groups(groups: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Names of models by group; a group differs in the seed only, and a model without one is its own."""
    members: dict[str, list[str]] = {}
    for name, group in groups.items():
        members.setdefault(group or name, []).append(name)
    return members


def compare(models: Mapping[str, Mapping[str, Scores]]) -> list[str]:
    """Return a line per model but the first: the first minus it on the STS pairs both have, with the interval.

    `models` gives each model's scores by set. Raises ValueError if two models share no set.
    """
    (first, ours), *others = models.items()
    lines = []
    for other, theirs in others:
        pairs = {
            name: (np.array(own["cosines"]), np.array(theirs[name]["cosines"]), np.array(own["grades"]))
            for name, own in ours.items()
            if name in theirs
        }
        if not pairs:
            raise ValueError(f"{first} and {other} have no task in common")
        difference = paired_bootstrap(pairs)
        lines.append(f"{first} minus {other}, {len(pairs)} tasks, {BOOTSTRAP_SAMPLES} bootstrap samples: {difference}")
    return lines
