"""Maps: what is apart stays apart, aligned maps, and shared limits."""

from collections.abc import Mapping

import numpy as np
import pytest
from scipy.spatial import procrustes

from cse.analysis.maps import align, centred, trustworthiness
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


def test_align_is_as_close_as_scipys_procrustes():
    rng = np.random.default_rng(1)
    points, reference = (centred(rng.normal(size=(30, 2))) for _ in range(2))
    first, second, disparity = procrustes(reference, points)  # scales too, so compare after scaling both to norm 1
    ours = align(points / np.linalg.norm(points), reference / np.linalg.norm(reference))
    scale = (first * ours).sum()  # least-squares factor for unit norms
    assert ((first - scale * ours) ** 2).sum() == pytest.approx(disparity)
    np.testing.assert_allclose(scale * ours, second, atol=1e-12)


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
