"""Maps: what is apart stays apart, aligned maps, and shared limits."""

from collections.abc import Mapping

import numpy as np
import pytest
from scipy.spatial import procrustes

from cse.analysis.maps import align, centred, squared, trustworthiness
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


def test_maps_are_float32_in_one_square_around_their_centres():
    vectors, _ = blobs()
    maps = project({"a": vectors, "b": blobs(seed=1)[0]}, seed=3)
    assert [xy.dtype for xy in maps.values()] == [np.float32, np.float32]
    reach = max(np.abs(xy - 0.5).max() for xy in maps.values())
    assert reach == pytest.approx(0.5 / 1.05, abs=1e-6)  # the farthest point is 5 % inside the edge
    for xy in maps.values():
        np.testing.assert_allclose(xy.mean(axis=0), 0.5, atol=1e-5)


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


def test_align_undoes_a_rotation_and_a_mirror():
    points = centred(np.random.default_rng(0).normal(size=(20, 2)))
    turn = np.array([[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]])
    for moved in (points @ turn, points @ turn @ np.diag([1, -1])):
        np.testing.assert_allclose(align(moved, points), points, atol=1e-12)


def test_align_is_as_close_as_scipys_procrustes():
    rng = np.random.default_rng(1)
    points, reference = (centred(rng.normal(size=(30, 2))) for _ in range(2))
    first, second, disparity = procrustes(reference, points)  # scales too, so compare after scaling both to norm 1
    ours = align(points / np.linalg.norm(points), reference / np.linalg.norm(reference))
    scale = (first * ours).sum()  # least-squares factor for unit norms
    assert ((first - scale * ours) ** 2).sum() == pytest.approx(disparity)
    np.testing.assert_allclose(scale * ours, second, atol=1e-12)


def test_every_map_gets_the_same_spread():
    points = centred(np.random.default_rng(2).normal(size=(9, 2)))
    maps = squared({"small": points, "large": 100 * points, "nothing": np.zeros((9, 2))})
    np.testing.assert_allclose(maps["small"], maps["large"], atol=1e-6)
    np.testing.assert_array_equal(maps["nothing"], np.full((9, 2), 0.5))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
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


def test_three_sentences_keep_the_ratio_of_their_distances():
    vectors = np.random.default_rng(4).normal(size=(3, 8))
    xy = project({"a": vectors}, seed=0)["a"]
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def sides(points):
        return np.array([np.linalg.norm(points[i] - points[j]) for i, j in ((0, 1), (1, 2), (0, 2))])

    np.testing.assert_allclose(sides(xy) / sides(xy).sum(), sides(rows) / sides(rows).sum(), atol=1e-5)


def test_identical_vectors_share_the_centre_and_spoil_no_other_map():
    same, vectors = np.ones((10, 8), np.float32), np.random.default_rng(0).normal(size=(10, 8))
    nearly = same + np.random.default_rng(1).normal(size=same.shape) * 1e-8
    maps = project({"same": same, "nearly": nearly, "zero": np.zeros((10, 8)), "other": vectors}, seed=0)
    for name in ("same", "nearly", "zero"):
        np.testing.assert_array_equal(maps[name], np.full((10, 2), 0.5))
        assert trustworthiness(same, maps[name]) == 1.0
    assert np.ptp(maps["other"]) > 0.5


def test_different_numbers_of_sentences_are_refused():
    with pytest.raises(ValueError, match="different numbers of sentences"):
        project({"a": np.ones((3, 2)), "b": np.ones((4, 2))}, seed=0)


def test_maps_come_one_after_the_other_within_limits_that_fit_all_so_far():
    first, both = projected({"a": blobs()[0], "b": blobs(seed=1)[0]}, seed=0)
    assert (list(first), list(both)) == (["a"], ["a", "b"])
    assert np.abs(first["a"] - 0.5).max() == pytest.approx(0.5 / 1.05, abs=1e-6)
    turned = procrustes(first["a"], both["a"])[2]
    assert turned == pytest.approx(0, abs=1e-9)  # the same picture, perhaps smaller
