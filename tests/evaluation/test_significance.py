"""The bootstrap against a slow one with SciPy, seeds against SciPy's Welch test, verdicts that can go either way."""

import numpy as np
import pytest
from scipy.stats import spearmanr, ttest_ind

from cse.evaluation.metrics import Difference, Figure, margin, paired_bootstrap, seeds_differ


def task(quality: float, seed: int, count: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 6, count).astype(float)
    return grades + rng.normal(size=count), grades + quality * rng.normal(size=count), grades


def slow_bootstrap(tasks: dict, samples: int, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    drawn = [0.0] * samples
    for first, second, grades in tasks.values():
        for number in range(samples):
            rows = [int(row) for row in rng.integers(len(grades), size=len(grades))]
            pick = [[values[row] for row in rows] for values in (first, second, grades)]
            gain = spearmanr(pick[0], pick[2]).statistic - spearmanr(pick[1], pick[2]).statistic
            drawn[number] += 100 * gain / len(tasks)
    return drawn


def test_the_interval_is_that_of_a_loop_over_resampled_pairs() -> None:
    tasks = {"a": task(1.5, 0), "b": task(2.0, 1, 40)}
    difference = paired_bootstrap(tasks, samples=40, seed=7)
    expected = slow_bootstrap(tasks, 40, 7)
    whole = [
        100 * (spearmanr(first, grades).statistic - spearmanr(second, grades).statistic)
        for first, second, grades in tasks.values()
    ]
    assert difference.value == round(float(np.mean(whole)), 2)
    assert (difference.low, difference.high) == tuple(round(float(x), 2) for x in np.percentile(expected, [2.5, 97.5]))


def test_a_better_model_differs_and_a_twin_is_inside_the_noise() -> None:
    first, _, grades = task(1.0, 3, 400)
    rng = np.random.default_rng(5)
    worse, twin = grades + 4 * rng.normal(size=400), grades + rng.normal(size=400)
    better = paired_bootstrap({"a": (first, worse, grades)}, samples=200)
    assert not better.noise
    assert better.low > 0
    assert str(better).endswith("a difference")
    same = paired_bootstrap({"a": (first, twin, grades)}, samples=200)
    assert same.noise
    assert str(same).endswith("inside the noise")
    assert paired_bootstrap({"a": (first, first, grades)}, samples=20) == Difference(0.0, 0.0, 0.0)


def test_what_has_no_correlation_is_not_compared_and_is_left_out_of_the_samples() -> None:
    grades = np.arange(5.0)
    for columns in ((np.ones(5), grades, grades), (grades, np.ones(5), grades), (grades, grades, np.ones(5))):
        with pytest.raises(ValueError, match=r"a: all 5 pairs have the same (cosine|grade)"):
            paired_bootstrap({"a": columns}, samples=1)
    # two pairs: a sample of one of them twice has no correlation, any other one the whole difference
    two = paired_bootstrap({"a": (np.array([0.1, 0.2]), np.array([0.2, 0.1]), np.array([1.0, 2.0]))}, samples=20)
    assert two == Difference(200.0, 200.0, 200.0)


def test_seeds_are_compared_by_welch() -> None:
    first, second = [60.0, 61.0, 63.0], [58.0, 58.5, 60.5, 59.0]
    difference = seeds_differ(first, second)
    expected = ttest_ind(first, second, equal_var=False).confidence_interval()
    assert difference is not None
    assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high), abs=0.006)
    assert difference.noise == (expected.low <= 0 <= expected.high)
    assert seeds_differ([1.0], second) is None
    assert margin(Figure(1.0), Figure(2.0)) is None
    # one run against ten of deviation 0.86: within t(9) x 0.86 x sqrt(1.1) of their mean is where the next may fall
    assert margin(Figure(74.6), Figure(75.42, 0.86, 10)) == pytest.approx(2.2622 * 0.86 * np.sqrt(1.1), abs=1e-3)
    assert seeds_differ([2.0, 2.0], [1.0, 1.0]) == Difference(1.0, 1.0, 1.0)
