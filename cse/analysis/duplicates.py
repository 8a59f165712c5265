"""Near-duplicates: texts linked by cosines above a percentile of random pairs, in connected groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cse.analysis.calibration import random_cosines, tail_cosine, unrelated_cosines
from cse.vectors import unit_rows

Search = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]  # unit rows (q, d), k -> cosines, rows (q, k)
RowsDone = Callable[[int, int], None]  # rows done, rows in all

QUERY_BLOCK = 1024  # queries at a time
FIRST_NEIGHBOURS, NEIGHBOUR_GROWTH = 16, 8  # answers to each, and their growth until the search has all links
MAX_ANSWERS = 1 << 22  # at a time, and links that wait to be reduced


@dataclass(frozen=True)
class Forest:
    """The strongest links that join N rows, a maximum spanning forest: `pairs` (L, 2) with `cosines` (L,), L < N.

    From the cosine `least` on it has the same connected groups as all links (single linkage).
    """

    count: int
    pairs: np.ndarray
    cosines: np.ndarray
    least: float

    def groups(self, least: float) -> np.ndarray:
        """Return (N,) groups, numbered in the order of their first rows, of rows linked by `least` or more.

        Raises ValueError for a cosine below the forest's own.
        """
        if least < self.least:
            raise ValueError(f"links were searched from a cosine of {self.least:.4f}, not {least:.4f}")
        from scipy.sparse.csgraph import connected_components

        near = self.cosines >= least
        numbers = connected_components(_graph(self.count, self.pairs[near], self.cosines[near]), directed=False)[1]
        _, first, numbers = np.unique(numbers, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[numbers]

    def level(self, least: float) -> tuple[int, int, int]:
        """Return the numbers of groups of one row or more, and of two or more, and the rows of the largest."""
        sizes = np.bincount(self.groups(least))
        return len(sizes), int((sizes > 1).sum()), int(sizes.max(initial=0))

    def copied(self, rows: np.ndarray) -> Forest:
        """Return the forest of M rows that are copies of these N: `rows` (M,) has each number of them."""
        _, first = np.unique(rows, return_index=True)
        copies = np.flatnonzero(first[rows] != np.arange(len(rows)))
        pairs = np.concatenate([np.stack([first[rows[copies]], copies], axis=1), first[self.pairs]])
        return Forest(len(rows), pairs, np.concatenate([np.ones(len(copies)), self.cosines]), self.least)


def strongest_links(
    vectors: np.ndarray, search: Search, least: float, report: RowsDone = lambda done, total: None
) -> Forest:
    """Return the forest of the links with cosines of `least` or more among the rows of `vectors` (N, d).

    `search` finds the nearest of the same N rows for unit rows; `vectors` may be memory-mapped. Rows whose last answer
    is still a link are searched further, so the forest of an exact search is exact. Memory holds two blocks of answers
    and three numbers for each row.
    """
    links = [(np.empty((0, 2), np.int64), np.empty(0))]
    for start in range(0, len(vectors), QUERY_BLOCK):
        report(start, len(vectors))
        block = unit_rows(np.asarray(vectors[start : start + QUERY_BLOCK]))
        for rows, others, cosines in _links(block, search, least, len(vectors)):
            links.append((np.stack([start + rows, others], axis=1), cosines))
            if sum(len(cosines_of_block) for _, cosines_of_block in links[1:]) > max(MAX_ANSWERS, len(vectors)):
                links = [_strongest(len(vectors), links)]
    return Forest(len(vectors), *_strongest(len(vectors), links), least)


def _links(block: np.ndarray, search: Search, least: float, count: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield all links of the unit rows `block` (q, d): their positions in it, the rows they are linked to, cosines."""
    searched, k = np.arange(len(block)), min(FIRST_NEIGHBOURS, count)
    while len(searched):
        unfinished = []
        step = max(1, MAX_ANSWERS // k)
        for start in range(0, len(searched), step):
            part = searched[start : start + step]
            cosines, rows = search(block[part], k)
            near = cosines >= least
            yield np.repeat(part, near.sum(axis=1)), rows[near], cosines[near]
            unfinished.append(part[near[:, -1]])
        searched = np.concatenate(unfinished) if k < count else searched[:0]
        k = min(k * NEIGHBOUR_GROWTH, count)


def _strongest(count: int, links: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The pairs (L, 2) and cosines (L,) of the maximum spanning forest of links, some of which may stand twice."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    pairs, cosines = (np.concatenate(column) for column in zip(*links, strict=True))
    order = np.argsort(-cosines, kind="stable")
    order = order[pairs[order, 0] != pairs[order, 1]]
    low, high = pairs[order].min(axis=1), pairs[order].max(axis=1)
    _, first = np.unique(low * count + high, return_index=True)  # the higher of the two cosines of a pair
    distances = 2.0 - cosines[order][first]  # above 0, which would be no link
    tree = minimum_spanning_tree(_graph(count, np.stack([low, high], axis=1)[first], distances)).tocoo()
    return np.stack([tree.row, tree.col], axis=1).astype(np.int64), 2.0 - tree.data


def _graph(count: int, pairs: np.ndarray, weights: np.ndarray) -> object:
    from scipy.sparse import csr_matrix

    return csr_matrix((weights, (pairs[:, 0], pairs[:, 1])), shape=(count, count))


GROUP_COLUMNS = ("group", "row", "kept", "cosine", "reason", "text")
SAMPLED_TEXTS, MIN_TEXTS = 2000, 8  # most and fewest texts that the percentile is taken from
FEW_TEXTS = 400  # fewer have so few pairs that those of nearest texts are most of the highest
COPY_COSINE = 1 - 1e-5  # the threshold for fewer texts
LOOSEST_SHARE, RANDOM_LINKS = 1e-3, 2.0  # of random pairs above the lowest useful percentile; of each text, for many
STRICTEST, STEP = 8.0, 0.1  # places of the percentiles that are tried, by their digits: 8 is 99.999999
WRONG_SHARE = 0.01  # of the merges that are taken by default, the most that are expected to be wrong by chance


def percentile_of(digits: float) -> float:
    """Return the percentile with so many digits: 99.999 for 5."""
    return 100 - 10 ** (2 - digits)


def thresholds(vectors: np.ndarray, percentiles: Sequence[float], seed: int) -> list[float]:
    """Return the cosine at each percentile of the unrelated random pairs of distinct texts, by their vectors (N, d).

    All pairs of at most `SAMPLED_TEXTS` texts, drawn with the seed, are read; of fewer than `FEW_TEXTS` those of
    nearest texts, too: without them unrelated texts would be joined. Fewer than `MIN_TEXTS` texts cannot be calibrated:
    only equal vectors are then duplicates.
    """
    if len(vectors) < MIN_TEXTS:
        return [COPY_COSINE] * len(percentiles)
    drawn = np.sort(np.random.default_rng(seed).choice(len(vectors), min(SAMPLED_TEXTS, len(vectors)), replace=False))
    reference = (random_cosines if len(drawn) < FEW_TEXTS else unrelated_cosines)(vectors[drawn])
    return [min(COPY_COSINE, tail_cosine(percentile, reference)) for percentile in percentiles]


def groups_of(numbers: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each group of two or more, given the rows' groups (N,), in the order of their first rows."""
    order = np.argsort(numbers, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
    return sorted((group for group in groups if len(group) > 1), key=lambda group: int(group[0]))


@dataclass(frozen=True)
class Member:
    """A row of a group: whether it is kept, its cosine with the kept row, and why."""

    row: int
    kept: bool
    cosine: float
    reason: str


def members(rows: np.ndarray, vectors: np.ndarray, lengths: np.ndarray, least: float, keep: str) -> list[Member]:
    """Return the members of a group of `rows` (m,) >= 2, ascending, by their vectors and text lengths (m,).

    The kept row is the `first`, the `longest` text, or the most `central`: that of the highest mean cosine with the
    others. Of equals it is the first.
    """
    unit = unit_rows(np.asarray(vectors, np.float64))
    if keep == "longest":
        chosen, why = int(np.argmax(lengths)), "the longest text"
    elif keep == "central":
        means = (unit @ unit.sum(axis=0) - 1) / (len(unit) - 1)
        chosen = int(np.argmax(means.round(6)))
        why = f"the nearest to the others (mean cosine {means[chosen]:.3f})"
    else:
        chosen, why = 0, "the first"
    listed = []
    for number, (row, cosine) in enumerate(zip(rows, unit @ unit[chosen], strict=True)):
        link = "near the kept row" if cosine >= least else "linked to the kept row through others"
        reason = why if number == chosen else "equal to the kept row" if cosine > COPY_COSINE else link
        listed.append(Member(int(row), number == chosen, round(float(cosine), 4), reason))
    return listed


class Place(NamedTuple):
    """A percentile, its number of nines and its cosine, with the numbers of texts kept and of groups there."""

    nines: float
    percentile: float
    cosine: float
    kept: int
    groups: int
    largest: int


@dataclass(frozen=True)
class NearDuplicates:
    """The links between N texts, `distinct` ones, in one model, and the `places` of percentiles, lowest first."""

    forest: Forest
    places: tuple[Place, ...]
    distinct: int

    @property
    def pairs(self) -> float:
        """The number of pairs of distinct texts."""
        return self.distinct * (self.distinct - 1) / 2

    @property
    def advised(self) -> Place:
        """The lowest place where at most one merge of distinct texts in a hundred is wrong by chance, or the highest.

        A text that is joined to another by the cosine of a random pair is a wrong merge.
        """
        copies = self.forest.count - self.distinct
        for place in self.places:
            merges = self.forest.count - copies - place.kept
            if self.by_chance(place.percentile) <= WRONG_SHARE * merges:
                return place
        return self.places[-1]

    def by_chance(self, percentile: float) -> float:
        """Return how many pairs of unrelated texts are expected to reach a percentile."""
        return self.pairs * (1 - percentile / 100)

    def at(self, nines: float) -> Place:
        """Return the place whose number of nines is nearest."""
        return min(self.places, key=lambda option: abs(option.nines - nines))


def near_duplicates(
    vectors: np.ndarray, search: Search, rows: np.ndarray, seed: int, report: RowsDone = lambda done, total: None
) -> NearDuplicates:
    """Return the near-duplicates among texts by the vectors (N, d) of distinct ones, and (M,) the `rows` of these.

    `search` and `report` are those of `strongest_links`; the percentiles are of random pairs drawn with the seed. Above
    the lowest each text has two random pairs at most; with more, nearly all texts are one group.
    """
    share = min(LOOSEST_SHARE, RANDOM_LINKS / max(1, len(vectors)))  # of the random pairs, above the lowest
    loosest = round(np.ceil(-np.log10(share) / STEP - 1e-6) * STEP, 1)
    digits = [float(value) for value in np.arange(loosest, STRICTEST + STEP / 2, STEP).round(1)]
    cosines = thresholds(vectors, [percentile_of(value) for value in digits], seed)
    forest = strongest_links(vectors, search, min(cosines), report).copied(rows)
    places = (
        Place(value, percentile_of(value), least, *forest.level(least))
        for value, least in zip(digits, cosines, strict=True)
    )
    return NearDuplicates(forest, tuple(places), len(vectors))
