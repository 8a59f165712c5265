"""Near-duplicates: groups equal those of brute force; the threshold follows the percentile, not the duplicates."""

import numpy as np
import pytest

import cse.analysis.duplicates as linking
from cse.analysis.calibration import random_cosines
from cse.analysis.duplicates import (
    Search,
    members,
    near_duplicates,
    strongest_links,
    thresholds,
)


def exact(vectors: np.ndarray) -> Search:
    """An exact search, best first."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def search(queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        cosines = queries @ unit.T
        rows = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(cosines, rows, axis=1), rows

    return search


def brute_force(vectors: np.ndarray, least: float) -> list[int]:
    """Each row's group by spreading the lowest number along all links until nothing changes."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    linked = unit @ unit.T >= least
    np.fill_diagonal(linked, True)
    groups = np.arange(len(vectors))
    while True:
        spread = np.array([groups[row].min() for row in linked])
        if (spread == groups).all():
            break
        groups = spread
    order = list(dict.fromkeys(groups.tolist()))
    return [order.index(group) for group in groups.tolist()]


def clouds(seed: int, sizes: list[int], spread: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.repeat(rng.normal(size=(len(sizes), 6)), sizes, axis=0)
    vectors = centres + rng.normal(scale=spread, size=centres.shape)
    return vectors[rng.permutation(len(vectors))]


@pytest.mark.parametrize(("block", "nearest", "answers"), [(1024, 16, 1 << 22), (7, 2, 20)])
def test_links_that_are_searched_once_give_the_groups_of_brute_force_at_every_cosine(
    block, nearest, answers, monkeypatch
):
    """Groups larger than the first answers, chains, single rows, copies; in blocks and parts of any size."""
    for name, value in (("QUERY_BLOCK", block), ("FIRST_NEIGHBOURS", nearest), ("MAX_ANSWERS", answers)):
        monkeypatch.setattr(linking, name, value)
    vectors = clouds(0, [40, 1, 1, 5, 2, 30, 1], 0.2)
    rows = np.random.default_rng(1).permutation([*range(80), *range(20)])
    forest = strongest_links(vectors, exact(vectors), 0.5)
    assert len(forest.pairs) < 80
    for least in (0.5, 0.9, 0.95, 0.999, 1.1):
        expected = brute_force(vectors, least)
        assert forest.groups(least).tolist() == expected
        sizes = np.bincount(expected)
        assert forest.level(least) == (len(sizes), sum(sizes > 1), max(sizes))
    for least in (0.5, 0.95):
        assert forest.copied(rows).groups(least).tolist() == brute_force(vectors[rows], least)


def test_a_chain_is_one_group_and_its_ends_are_linked_through_others():
    angles = np.arange(6) * 0.1
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    groups = strongest_links(vectors, exact(vectors), np.cos(0.11)).groups(np.cos(0.11))
    assert groups.tolist() == [0] * 6
    group = members(np.arange(6), vectors, np.arange(6), np.cos(0.11), "first")
    assert [member.kept for member in group] == [True] + [False] * 5
    assert [member.cosine for member in group] == pytest.approx(np.cos(angles), abs=1e-4)
    assert [member.reason for member in group] == [
        "the first", "near the kept row", *["linked to the kept row through others"] * 4,
    ]  # fmt: skip


@pytest.mark.parametrize(("keep", "row"), [("first", 3), ("longest", 8), ("central", 5)])
def test_the_kept_row_is_the_first_the_longest_or_the_most_central(keep, row):
    angles = np.array([0.0, 0.2, 0.5])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    group = members(np.array([3, 5, 8]), vectors, np.array([4, 4, 9]), 0.5, keep)
    assert [member.row for member in group if member.kept] == [row]
    equal = members(np.array([3, 5]), np.ones((2, 2)), np.array([4, 4]), 0.5, keep)
    assert [(member.row, member.kept) for member in equal] == [(3, True), (5, False)]
    assert equal[1].reason == "equal to the kept row"


@pytest.mark.parametrize(("copies", "moved"), [(0, 0.02), (400, 0.04)])
def test_the_threshold_does_not_depend_on_how_many_texts_are_copies(copies, moved):
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(400, 64)) + 0.5
    near = vectors[:copies] + rng.normal(scale=0.1, size=(copies, 64))
    (alone,), (both,) = (thresholds(rows, [99.999], seed=0) for rows in (vectors, np.concatenate([vectors, near])))
    assert both == pytest.approx(alone, abs=moved)
    cosines = random_cosines(vectors)
    assert cosines[-1] < both < 0.95  # above all random pairs, below every copy's cosine
    every = np.concatenate([vectors, near])
    assert strongest_links(every, exact(every), both).level(both)[0] == 400


@pytest.mark.parametrize("count", [8, 12, 30, 90])
def test_few_unrelated_texts_are_not_joined(count):
    vectors = np.random.default_rng(1).normal(size=(count, 48))
    assert near_duplicates(vectors, exact(vectors), np.arange(count), seed=0).advised.kept == count
    vectors[-1] = vectors[0] + np.random.default_rng(2).normal(scale=0.05, size=48)
    assert near_duplicates(vectors, exact(vectors), np.arange(count), seed=0).advised.kept == count - 1


@pytest.mark.parametrize("copies", [0, 30])
def test_by_default_one_merge_in_a_hundred_is_of_a_random_pair(copies):
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(600, 48))
    vectors = np.concatenate([vectors, vectors[:copies] + rng.normal(scale=0.05, size=(copies, 48))])
    rows = np.concatenate([np.arange(len(vectors)), [0, 1, 2]])  # three exact copies are no merges
    near = near_duplicates(vectors, exact(vectors), rows, seed=0)
    joined = near.forest.count - near.advised.kept - 3
    assert joined == copies
    if copies:
        shares = [near.pairs * 10**-place.nines / (600 + copies + 3 - 3 - place.kept) for place in near.places[:-1]]
        first = next(place for place, share in zip(near.places, shares, strict=False) if share <= 0.01)
        assert near.advised == first
    else:
        assert near.advised == near.places[-1]
