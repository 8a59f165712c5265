"""Where models differ about pairs of sentences: their ranks of the pairs compared, since their cosines cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


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
