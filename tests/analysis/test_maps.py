"""Maps: what is apart stays apart, aligned maps, and shared limits."""

from collections.abc import Mapping

import numpy as np
import pytest

from cse.analysis.maps import continuity, trustworthiness
from cse.analysis.maps import project as projected


def project(vectors: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """All maps, once the last one is done."""
    *_, maps = projected(vectors, seed)
    return maps


def blobs(seed: int = 0, count: int = 15, width: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """(3 * count, width) vectors around three far directions, and their labels."""
    rng = np.random.default_rng(seed)
    centres = np.eye(3, width) * 10
    labels = np.repeat(np.arange(3), count)
    return (centres[labels] + rng.normal(size=(len(labels), width))).astype(np.float32), labels


def test_separated_blobs_stay_separated():
    vectors, labels = blobs()
    xy = project({"a": vectors}, seed=0)["a"]
    distances = np.linalg.norm(xy[:, None] - xy[None], axis=-1)
    same = labels[:, None] == labels[None]
    assert distances[same].max() < distances[~same].min()


def test_a_seed_gives_the_same_maps_again_and_another_seed_others():
    vectors = {"a": blobs()[0], "b": blobs(seed=1)[0]}
    first, again = project(vectors, seed=5), project(vectors, seed=5)
    for name in vectors:
        np.testing.assert_array_equal(first[name], again[name])
    other = project(vectors, seed=6)
    assert not any(np.array_equal(first[name], other[name]) for name in vectors)


def test_the_same_groups_lie_at_the_same_places_in_all_maps():
    vectors, labels = blobs()
    maps = project({"a": vectors, "mirrored": vectors[:, ::-1]}, seed=0)  # the same distances in other coordinates
    for label in range(3):
        places = [xy[labels == label].mean(axis=0) for xy in maps.values()]
        np.testing.assert_allclose(places[0], places[1], atol=0.05)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_sentences_are_placed(count):
    rng = np.random.default_rng(count)
    vectors = {"a": rng.normal(size=(count, 8)), "b": rng.normal(size=(count, 8))}
    maps = project(vectors, seed=0)
    for name, xy in maps.items():
        assert xy.shape == (count, 2)
        assert np.isfinite(xy).all()
        assert ((xy >= 0) & (xy <= 1)).all()
        assert len(np.unique(xy.round(4), axis=0)) == count  # no two at one place
        assert 0 <= trustworthiness(vectors[name], xy) <= 1


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
