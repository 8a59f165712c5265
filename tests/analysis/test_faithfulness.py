"""How faithful a map is: each measure against its definition, written out as a loop."""

import numpy as np
import pytest

from cse.analysis.maps import continuity, lost, trustworthiness
from cse.vectors import nearest_others


def noise(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors, and a map that has nothing to do with them."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, 6)), rng.normal(size=(count, 2))


def orders(rows: np.ndarray) -> list[list[int]]:
    """For each row the others, nearest first."""
    nearest_first = []
    for row in rows:
        away = np.linalg.norm(rows - row, axis=1)
        nearest_first.append([int(other) for other in np.argsort(away, kind="stable")][1:])
    return nearest_first


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def penalty(judged: list[list[int]], by: list[list[int]], k: int) -> int:
    """How far the first k of each `judged` order are beyond the k-th place in the order `by`."""
    return sum(max(0, order.index(j) + 1 - k) for near, order in zip(judged, by, strict=True) for j in near[:k])


def test_trustworthiness_and_continuity_equal_their_definitions():
    vectors, xy = noise(count := 14)
    among, shown, k = orders(unit(vectors)), orders(xy), 5
    scale = 2 / (count * k * (2 * count - 3 * k - 1))
    assert trustworthiness(vectors, xy) == pytest.approx(1 - scale * penalty(shown, among, k))
    assert continuity(vectors, xy) == pytest.approx(1 - scale * penalty(among, shown, k))
    assert trustworthiness(vectors, xy) != pytest.approx(continuity(vectors, xy))


@pytest.mark.parametrize(("count", "k"), [(30, 10), (21, 10), (20, 9), (4, 1)])
def test_a_point_loses_the_nearest_vectors_that_are_not_its_nearest_points(count, k):
    vectors, xy = noise(count)
    among, shown = orders(unit(vectors)), orders(xy)
    expected = [len(set(near[:k]) - set(there[:k])) / k for near, there in zip(among, shown, strict=True)]
    np.testing.assert_allclose(lost(nearest_others(vectors, k), xy), expected)
