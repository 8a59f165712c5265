"""Ranked lists compared: overlap, rank-biased overlap, and the pairs that models rank most differently."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

Measure = Callable[[Sequence[Hashable], Sequence[Hashable]], float]

PERSISTENCE = 0.9  # of a reader who goes on to the next rank: ten ranks are read on average


def overlap(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """How many items two lists share."""
    return len(set(first) & set(second))


def shared(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """The share of the longer list's items that the other has too: overlap@k where each holds k."""
    longest = max(len(first), len(second))
    return overlap(first, second) / longest if longest else 1.0


def agreements(lists: Sequence[Sequence[Hashable]], measure: Measure) -> list[list[float]]:
    """(M, M) the measure of each two of M ranked lists."""
    return [[measure(first, second) for second in lists] for first in lists]


def rank_biased_overlap(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Extrapolated rank-biased overlap of two lists without repetitions: 1 of equal lists, 0 of lists without a share.

    Webber, Moffat and Zobel 2010, equation 32 for lists of one length; of a longer list the end is left out.
    """
    depth = min(len(first), len(second))
    if not depth:
        return 1.0 if len(first) == len(second) else 0.0
    agreements = [overlap(first[:place], second[:place]) / place for place in range(1, depth + 1)]
    weighted = sum(agreement * PERSISTENCE**place for place, agreement in enumerate(agreements, start=1))
    return agreements[-1] * PERSISTENCE**depth + (1 - PERSISTENCE) / PERSISTENCE * weighted


class Disagreement(NamedTuple):
    """Pair number `pair`; `places` are its places by model, 0 for the least alike of all pairs to 1 for the most.

    `spread` is how far the places of the models lie apart, 0 to 1.
    """

    pair: int
    places: dict[str, float]
    spread: float


def disagreements(cosines: Mapping[str, np.ndarray]) -> list[Disagreement]:
    """The N pairs whose (N,) cosines by two or more models are given, the largest spread first.

    Pairs that one model finds equally alike share their mean place, and pairs of one spread keep their order. Raises
    ValueError for different N.
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
    """(N,) mean ranks of values (N,) from 0 to 1; 0.5 of a single one."""
    from scipy.stats import rankdata

    return (rankdata(values) - 1) / (len(values) - 1) if len(values) > 1 else np.full(len(values), 0.5)
