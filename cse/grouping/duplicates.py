"""Near-duplicates: texts linked by cosines above a percentile of random pairs, in connected groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cse.analysis.calibration import tail_cosine, unrelated_cosines
from cse.grouping.links import Forest
from cse.vectors import unit_rows

GROUP_COLUMNS = ("group", "row", "kept", "cosine", "reason", "text")
SAMPLE, FEWEST = 2000, 8  # most and fewest texts that the percentile is taken from
EQUAL = 1 - 1e-5  # the threshold for fewer texts
SHARE, PER_TEXT = 1e-5, 0.1  # of random pairs above the default percentile; of texts with one of them, for many texts
LOOSEST, RANDOM_LINKS = 1e-3, 2.0  # of random pairs above the lowest useful percentile; of each text, for many


def default_percentile(count: int) -> float:
    """Return the percentile for `count` distinct texts: 99.999, and more above 10,000 texts.

    At most one text in ten then has a random pair above it.
    """
    return 100 - 100 * min(SHARE, PER_TEXT / max(1, count))


def loosest_percentile(count: int) -> float:
    """Return the lowest percentile that is useful for `count` distinct texts, 99.9 or more.

    Each text then has two random pairs above it at most; with more, nearly all texts are one group.
    """
    return 100 - 100 * min(LOOSEST, RANDOM_LINKS / max(1, count))


def threshold(vectors: np.ndarray, percentile: float, seed: int) -> float:
    """Return the one cosine of `thresholds`."""
    return thresholds(vectors, [percentile], seed)[0]


def thresholds(vectors: np.ndarray, percentiles: Sequence[float], seed: int) -> list[float]:
    """Return the cosine at each percentile of the unrelated random pairs of distinct texts, by their vectors (N, d).

    All pairs of at most `SAMPLE` texts, drawn with the seed, are read. Fewer than `FEWEST` texts cannot be calibrated:
    only equal vectors are then duplicates.
    """
    if len(vectors) < FEWEST:
        return [EQUAL] * len(percentiles)
    drawn = np.sort(np.random.default_rng(seed).choice(len(vectors), min(SAMPLE, len(vectors)), replace=False))
    reference = unrelated_cosines(vectors[drawn])
    return [min(EQUAL, tail_cosine(percentile, reference)) for percentile in percentiles]


def numbered(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Return the distinct texts in their order, and (N,) the number of each text among them."""
    distinct = list(dict.fromkeys(texts))
    place = {text: number for number, text in enumerate(distinct)}
    return distinct, np.array([place[text] for text in texts], dtype=np.int64)


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


def group_rows(
    groups: Sequence[Sequence[Member]], texts: Sequence[str], rows: Sequence[int]
) -> Iterator[tuple[int, int, str, float, str, str]]:
    """Yield the cells of `GROUP_COLUMNS` for each member; groups are counted from 1, `rows` numbers the texts."""
    for number, group in enumerate(groups, start=1):
        for member in group:
            kept = "yes" if member.kept else "no"
            yield number, rows[member.row], kept, member.cosine, member.reason, texts[member.row]


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
    """The links between the texts of a corpus in one model, and the `places` of a range of percentiles, lowest first.

    `advised` is the number of nines of the default percentile for so many texts (5 for 99.999).
    """

    forest: Forest
    places: tuple[Place, ...]
    advised: float

    def at(self, nines: float) -> Place:
        """Return the place whose number of nines is nearest."""
        return min(self.places, key=lambda place: abs(place.nines - nines))
