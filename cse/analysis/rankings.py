"""How alike two ranked lists are: what they share, and how early (rank-biased overlap)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

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
