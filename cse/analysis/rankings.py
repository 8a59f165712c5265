"""Ranked lists compared: overlap, rank-biased overlap, and the pairs that models rank most differently."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cse.evaluation.metrics import ranks

Measure = Callable[[Sequence[Hashable], Sequence[Hashable]], float]

PERSISTENCE = 0.9  # p of rank-biased overlap, an expected depth of ten ranks


def overlap(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The number of items that two lists share."""
    return len(set(first) & set(second))


def shared(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """The share of the longer list's items that the other contains; overlap@k for two lists of k."""
    longest = max(len(first), len(second))
    return overlap(first, second) / longest if longest else 1.0


def agreements(lists: Sequence[Sequence[Hashable]], measure: Measure) -> list[list[float]]:
    """(M, M) values of the measure for all pairs of M ranked lists."""
    return [[measure(first, second) for second in lists] for first in lists]


def rank_biased_overlap(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Extrapolated rank-biased overlap of two lists without repetitions: 1 if equal, 0 if disjoint.

    Webber, Moffat and Zobel 2010, equation 32 for lists of one length; a longer list is truncated.
    """
    depth = min(len(first), len(second))
    if not depth:
        return 1.0 if len(first) == len(second) else 0.0
    agreements = [overlap(first[:place], second[:place]) / place for place in range(1, depth + 1)]
    weighted = sum(agreement * PERSISTENCE**place for place, agreement in enumerate(agreements, start=1))
    return agreements[-1] * PERSISTENCE**depth + (1 - PERSISTENCE) / PERSISTENCE * weighted


class Disagreement(NamedTuple):
    """Pair number `pair` and its normalised rank by model in `places`, 0 for the least similar pair to 1 for the most.

    `spread` is the largest rank minus the smallest, 0 to 1.
    """

    pair: int
    places: dict[str, float]
    spread: float


def disagreements(cosines: Mapping[str, np.ndarray]) -> list[Disagreement]:
    """Rank N pairs, given their (N,) cosines by two or more models, by the spread of their ranks, largest first.

    Pairs of equal cosine share their mean rank; pairs of equal spread keep their order. Raises ValueError for
    different N.
    """
    counts = {name: len(values) for name, values in cosines.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"the models have different numbers of pairs: {counts}")
    places = {name: normalised_ranks(values) for name, values in cosines.items()}
    rows = []
    for pair in range(next(iter(counts.values()), 0)):
        of_pair = {name: float(found[pair]) for name, found in places.items()}
        rows.append(Disagreement(pair, of_pair, max(of_pair.values()) - min(of_pair.values())))
    return sorted(rows, key=lambda row: -row.spread)


def normalised_ranks(values: np.ndarray) -> np.ndarray:
    """(N,) mean ranks of values (N,), scaled to 0 to 1; 0.5 for a single value."""
    return (ranks(values) - 1) / (len(values) - 1) if len(values) > 1 else np.full(len(values), 0.5)
