"""Near-duplicates: texts linked by cosines above a percentile of random pairs, in connected groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cse.analysis.calibration import tail_cosine, unrelated_cosines
from cse.vectors import unit_rows

Search = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]  # unit rows (q, d), k -> cosines, rows (q, k)

SAMPLE, FEWEST = 2000, 8  # most and fewest texts that the percentile is taken from
EQUAL = 1 - 1e-5  # the threshold for fewer texts
SHARE, PER_TEXT = 1e-5, 0.1  # of random pairs above the default percentile; of texts with one of them, for many texts
BLOCK, NEAREST, GROWTH = 1024, 16, 8  # queries at a time; answers to each, and their growth until all links are found
ANSWERS = 1 << 22  # at a time


def default_percentile(count: int) -> float:
    """Return the percentile for `count` distinct texts: 99.999, and more above 10,000 texts.

    At most one text in ten then has a random pair above it.
    """
    return 100 - 100 * min(SHARE, PER_TEXT / max(1, count))


def threshold(vectors: np.ndarray, percentile: float, seed: int) -> float:
    """Return the cosine at a percentile of the unrelated random pairs of distinct texts, by their vectors (N, d).

    All pairs of at most `SAMPLE` texts, drawn with the seed, are read. Fewer than `FEWEST` texts cannot be calibrated:
    only equal vectors are then duplicates.
    """
    if len(vectors) < FEWEST:
        return EQUAL
    drawn = np.sort(np.random.default_rng(seed).choice(len(vectors), min(SAMPLE, len(vectors)), replace=False))
    return min(EQUAL, tail_cosine(percentile, unrelated_cosines(vectors[drawn])))


def linked_groups(vectors: np.ndarray, search: Search, least: float) -> np.ndarray:
    """Return (N,) groups, numbered in the order of their first rows, of the rows linked by cosines of `least` or more.

    `search` finds the nearest of the same N rows for unit rows of `vectors` (N, d), which may be memory-mapped; those
    whose last answer is still a link are asked for more, so an exact search gives exactly the connected groups. Memory
    holds a block of answers and a number for each row.
    """
    groups = np.arange(len(vectors))
    for start in range(0, len(vectors), BLOCK):
        block = unit_rows(np.asarray(vectors[start : start + BLOCK]))
        for rows, found in _links(block, search, least, len(vectors)):
            groups = _merged(groups, groups[start + rows], groups[found])
    _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbers]


def _links(block: np.ndarray, search: Search, least: float, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield all links of the unit rows `block` (q, d): their positions in it, and the rows they are linked to."""
    asked, k = np.arange(len(block)), min(NEAREST, count)
    while len(asked):
        unfinished = []
        step = max(1, ANSWERS // k)
        for start in range(0, len(asked), step):
            part = asked[start : start + step]
            cosines, rows = search(block[part], k)
            near = cosines >= least
            yield np.repeat(part, near.sum(axis=1)), rows[near]
            unfinished.append(part[near[:, -1]])
        asked = np.concatenate(unfinished) if k < count else asked[:0]
        k = min(k * GROWTH, count)


def _merged(groups: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """`groups` (N,) with those of `first` and `second` (L,) joined pair by pair."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    count = len(groups)
    graph = coo_matrix((np.ones(len(first), dtype=bool), (first, second)), shape=(count, count))
    return connected_components(graph, directed=False)[1][groups]


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
    cosines = unit @ unit[chosen]
    return [
        Member(
            int(row),
            place == chosen,
            round(float(cosines[place]), 4),
            why if place == chosen else _link(cosines[place], least),
        )
        for place, row in enumerate(rows)
    ]


def _link(cosine: float, least: float) -> str:
    if cosine > EQUAL:
        return "equal to the kept row"
    return "near the kept row" if cosine >= least else "linked to the kept row through others"
