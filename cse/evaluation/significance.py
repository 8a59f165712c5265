"""Significance of differences: paired bootstrap over the same pairs, and mean and deviation over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cse.evaluation.metrics import check_defined, ranks_of_codes

if TYPE_CHECKING:
    from cse.evaluation import Scores

SAMPLES = 1000
SEED = 123


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
    tasks: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]], samples: int = SAMPLES, seed: int = SEED
) -> Difference:
    """The difference of two models' Spearman x 100, averaged over tasks, with its 95 % percentile interval.

    A task is (first model's cosines, second's, grades), each (N,), of the same pairs in the same order. Every sample
    draws each task's pairs with replacement, the same ones for both models (Efron and Tibshirani 1993; Koehn 2004).
    Raises ValueError for a task in which a model has no correlation.
    """
    rng = np.random.default_rng(seed)
    for name, (*both, grades) in tasks.items():
        for found in both:
            check_defined(found, grades, name)
    coded = [tuple(np.unique(column, return_inverse=True)[1] for column in columns) for columns in tasks.values()]
    whole = np.mean([_gain(*columns) for columns in coded])
    drawn = np.zeros(samples)
    for columns in coded:
        for number in range(samples):
            drawn[number] += _drawn_gain(rng, columns) / len(tasks)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Difference(round(float(whole), 2), round(float(low), 2), round(float(high), 2))


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
        pairs = {name: _paired(ours[name], theirs[name]) for name in ours if name in theirs}
        if not pairs:
            raise ValueError(f"{first} and {other} have no task in common")
        difference = paired_bootstrap(pairs)
        lines.append(f"{first} minus {other}, {len(pairs)} tasks, {SAMPLES} bootstrap samples: {difference}")
    return lines


def _paired(ours: Scores, theirs: Scores) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array(ours["cosines"]), np.array(theirs["cosines"]), np.array(ours["grades"])
