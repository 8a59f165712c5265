"""Anisotropy, alignment and uniformity against double loops and hand-worked cases."""

from itertools import combinations

import numpy as np
import pytest

from cse.evaluation import isotropy
from cse.evaluation.isotropy import alignment, anisotropy, uniformity


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a / np.linalg.norm(a) - b / np.linalg.norm(b)))


@pytest.fixture
def vectors() -> np.ndarray:
    generator = np.random.default_rng(0)
    scale = generator.uniform(0.1, 9, size=(40, 1))
    return ((generator.normal(size=(40, 5)) + 0.7) * scale).astype(np.float32)


def test_anisotropy_is_the_double_loop_without_self_pairs(vectors: np.ndarray) -> None:
    count = len(vectors)
    loop = [cosine(vectors[i], vectors[j]) for i in range(count) for j in range(count) if i != j]
    assert anisotropy(vectors) == pytest.approx(np.mean(loop), abs=1e-6)


def test_anisotropy_of_opposite_equal_and_zero_rows() -> None:
    assert anisotropy(np.array([[1.0, 0.0], [-3.0, 0.0]])) == pytest.approx(1.0)  # Eq. 1 takes the absolute value
    assert anisotropy(np.array([[1.0, 2.0], [2.0, 4.0]])) == pytest.approx(1.0)
    assert anisotropy(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="1 vectors; give at least 2"):
        anisotropy(np.ones((1, 3)))


def test_alignment_is_the_mean_squared_distance_of_unit_rows(vectors: np.ndarray) -> None:
    first, second = vectors[:20], vectors[20:]
    loop = [distance(a, b) ** 2 for a, b in zip(first, second, strict=True)]
    assert alignment(first, second) == pytest.approx(np.mean(loop), abs=1e-6)
    assert alignment(first, 2 * first) == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(ValueError, match="different shapes"):
        alignment(first, second[:3])
    with pytest.raises(ValueError, match="0 vectors"):
        alignment(first[:0], second[:0])


@pytest.mark.parametrize("block", [3, 512])
def test_uniformity_is_the_log_mean_over_pairs_whatever_the_block(
    vectors: np.ndarray, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isotropy, "BLOCK", block)
    loop = [np.exp(-2 * distance(a, b) ** 2) for a, b in combinations(vectors, 2)]
    assert uniformity(vectors) == pytest.approx(np.log(np.mean(loop)), abs=1e-6)


def test_uniformity_ranges_from_one_point_to_opposite_points() -> None:
    assert uniformity(np.ones((4, 3))) == pytest.approx(0.0, abs=1e-9)
    assert uniformity(np.array([[2.0, 0.0], [-1.0, 0.0]])) == pytest.approx(-8.0)
    assert uniformity(np.array([[2.0, 0.0], [0.0, 0.0]])) == pytest.approx(-4.0)  # as if orthogonal: distance^2 is 2
