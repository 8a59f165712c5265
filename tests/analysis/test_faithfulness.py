"""How faithful a map is: each measure against its definition, written out as a loop."""

import numpy as np
import pytest

from cse.analysis import maps
from cse.analysis.maps import continuity, evenly, lost, nearest, trustworthiness, unshared
from cse.vectors import nearest_others


def circle(count: int) -> np.ndarray:
    angles = np.random.default_rng(7).uniform(0, 2 * np.pi, count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


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


def test_a_perfect_map_has_all_scores_at_one_and_loses_nobody():
    points = circle(40)
    assert trustworthiness(3 * points, points) == continuity(3 * points, points) == 1.0
    assert lost(nearest_others(points, 10), points).max() == 0
    shuffled = np.random.default_rng(0).permutation(points)
    assert trustworthiness(points, shuffled) < 0.7
    assert continuity(points, shuffled) < 0.7
    assert lost(nearest_others(points, 10), shuffled).mean() > 0.5


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


def test_nearest_are_the_nearest_other_points_also_among_many_at_one_place():
    xy = noise(12)[1]
    assert nearest(xy, 5).tolist() == [near[:5] for near in orders(xy)]
    assert (nearest(xy[:3], 5).shape, nearest(xy[:1], 5).shape) == ((3, 2), (1, 0))
    for row, near in enumerate(nearest(np.zeros((9, 2)), 3)):
        assert row not in near


def test_scores_of_many_points_are_those_of_an_even_sample(monkeypatch):
    vectors, xy = noise(40)
    monkeypatch.setattr(maps, "MAX_SCORED_POINTS", 20)
    assert evenly(40, 20).tolist() == list(range(0, 40, 2))
    assert trustworthiness(vectors, xy) == trustworthiness(vectors[::2], xy[::2])
    assert continuity(vectors, xy) == continuity(vectors[::2], xy[::2])


def test_two_lists_of_neighbours_differ_by_what_they_do_not_share():
    near, others = np.array([[1, 2], [0, 2], [0, 1]]), np.array([[2, 1], [2, 3], [4, 3]])
    assert unshared(near, others).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_where_nothing_can_be_wrong_nothing_is(count):
    vectors, xy = noise(count)
    assert trustworthiness(vectors, xy) == continuity(vectors, xy) == 1.0
    np.testing.assert_array_equal(lost(nearest_others(vectors, 0), xy), np.zeros(count))
    np.testing.assert_array_equal(lost(nearest_others(noise(12)[0], 5), np.full((12, 2), 0.5)), np.zeros(12))
