"""Cosines and Spearman by their definitions."""

import re
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from plain_vectors import cosine, encode
from scipy.stats import spearmanr, ttest_1samp, ttest_ind

from cse.evaluation import metrics
from cse.evaluation.metrics import (
    Difference,
    Figure,
    alignment,
    anisotropy,
    correlation,
    correlation_or_none,
    margin,
    paired_bootstrap,
    seeds_differ,
    spearman,
    uniformity,
)


def test_spearman_is_the_correlation_of_ranks_and_each_text_is_encoded_once():
    pairs = [(5.0, "a", "b"), (2.0, "a", "c"), (3.0, "b", "c"), (0.0, "a", "d")]
    seen: list[str] = []

    def counting(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return encode(texts)

    # cosines 0.8, 0.0, 0.6, -0.995: ranks 4 2 3 1; grades rank 4 2 3 1
    assert spearman(counting, pairs) == pytest.approx(100.0)
    assert sorted(seen) == ["a", "b", "c", "d"]
    # swapped grades of the middle pairs: 1 - 6 * (1 + 1) / (4 * 15) = 0.8
    assert spearman(encode, [(5.0, "a", "b"), (3.0, "a", "c"), (2.0, "b", "c"), (0.0, "a", "d")]) == pytest.approx(80.0)


@pytest.mark.parametrize(
    ("cosines", "grades", "message"),
    [
        ([0.1, 0.2], [3.0, 3.0], "x.tsv: all 2 pairs have the same grade, so there is no correlation"),
        ([0.1, 0.1], [3.0, 1.0], "x.tsv: all 2 pairs have the same cosine, so there is no correlation"),
        ([0.1, np.nan], [3.0, 1.0], "some cosines are not finite"),
    ],
)
def test_an_undefined_correlation_is_refused_and_never_a_number(cosines, grades, message):
    for measure in (correlation, partial(correlation, ranked=False)):
        with pytest.raises(ValueError, match=f"^(x.tsv: )?{re.escape(message.removeprefix('x.tsv: '))}"):
            measure(np.array(cosines), np.array(grades), name="x.tsv")
    assert correlation_or_none(np.array(cosines), np.array(grades)) is None


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


def test_the_interval_is_that_of_a_loop_over_resampled_pairs():
    tasks = {"a": task(1.5, 0), "b": task(2.0, 1, 40)}
    difference = paired_bootstrap(tasks, samples=40, seed=7)
    expected = slow_bootstrap(tasks, 40, 7)
    whole = [
        100 * (spearmanr(first, grades).statistic - spearmanr(second, grades).statistic)
        for first, second, grades in tasks.values()
    ]
    assert difference.value == round(float(np.mean(whole)), 2)
    assert (difference.low, difference.high) == tuple(round(float(x), 2) for x in np.percentile(expected, [2.5, 97.5]))


def test_a_better_model_differs_and_a_twin_is_inside_the_noise():
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


def test_seeds_are_compared_by_welch():
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
    # a number that no seed moves against three: Student's interval of their mean
    half = ttest_1samp(first, 0.0).confidence_interval().high - np.mean(first)
    assert margin(Figure(73.2, 0.0), Figure(np.mean(first), np.std(first, ddof=1), 3)) == pytest.approx(half)
    assert seeds_differ([2.0, 2.0], [1.0, 1.0]) == Difference(1.0, 1.0, 1.0)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a / np.linalg.norm(a) - b / np.linalg.norm(b)))


@pytest.fixture
def vectors() -> np.ndarray:
    generator = np.random.default_rng(0)
    scale = generator.uniform(0.1, 9, size=(40, 1))
    return ((generator.normal(size=(40, 5)) + 0.7) * scale).astype(np.float32)


def test_anisotropy_is_the_double_loop_without_self_pairs(vectors):
    count = len(vectors)
    loop = [cosine(vectors[i], vectors[j]) for i in range(count) for j in range(count) if i != j]
    assert anisotropy(vectors) == pytest.approx(np.mean(loop), abs=1e-6)


def test_alignment_is_the_mean_squared_distance_of_unit_rows(vectors):
    first, second = vectors[:20], vectors[20:]
    loop = [distance(a, b) ** 2 for a, b in zip(first, second, strict=True)]
    assert alignment(first, second) == pytest.approx(np.mean(loop), abs=1e-6)
    assert alignment(first, 2 * first) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("block", [3, 512])
def test_uniformity_is_the_log_mean_over_pairs_whatever_the_block(vectors, block, monkeypatch):
    monkeypatch.setattr(metrics, "BLOCK", block)
    loop = [np.exp(-2 * distance(a, b) ** 2) for a, b in combinations(vectors, 2)]
    assert uniformity(vectors) == pytest.approx(np.log(np.mean(loop)), abs=1e-6)
