"""Links between near rows, reduced to those that decide the connected groups at every cosine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cse.vectors import unit_rows

Search = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]  # unit rows (q, d), k -> cosines, rows (q, k)
RowsDone = Callable[[int, int], None]  # rows done, rows in all

BLOCK, NEAREST, GROWTH = 1024, 16, 8  # queries at a time; answers to each, and their growth until all links are found
ANSWERS = 1 << 22  # at a time, and links that wait to be reduced


class Level(NamedTuple):
    """Numbers at a cosine: `kept`, the groups of one row or more; `groups`, those of two or more; the `largest`."""

    kept: int
    groups: int
    largest: int


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

    def level(self, least: float) -> Level:
        """Return the numbers of groups at a cosine."""
        sizes = np.bincount(self.groups(least))
        return Level(len(sizes), int((sizes > 1).sum()), int(sizes.max(initial=0)))

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
    found = [(np.empty((0, 2), np.int64), np.empty(0))]
    for start in range(0, len(vectors), BLOCK):
        report(start, len(vectors))
        block = unit_rows(np.asarray(vectors[start : start + BLOCK]))
        for rows, others, cosines in _links(block, search, least, len(vectors)):
            found.append((np.stack([start + rows, others], axis=1), cosines))
            if sum(len(each) for _, each in found[1:]) > max(ANSWERS, len(vectors)):
                found = [_strongest(len(vectors), found)]
    return Forest(len(vectors), *_strongest(len(vectors), found), least)


def _links(block: np.ndarray, search: Search, least: float, count: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield all links of the unit rows `block` (q, d): their positions in it, the rows they are linked to, cosines."""
    searched, k = np.arange(len(block)), min(NEAREST, count)
    while len(searched):
        unfinished = []
        step = max(1, ANSWERS // k)
        for start in range(0, len(searched), step):
            part = searched[start : start + step]
            cosines, rows = search(block[part], k)
            near = cosines >= least
            yield np.repeat(part, near.sum(axis=1)), rows[near], cosines[near]
            unfinished.append(part[near[:, -1]])
        searched = np.concatenate(unfinished) if k < count else searched[:0]
        k = min(k * GROWTH, count)


def _strongest(count: int, found: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The pairs (L, 2) and cosines (L,) of the maximum spanning forest of links, some of which may stand twice."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    pairs, cosines = (np.concatenate(each) for each in zip(*found, strict=True))
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
