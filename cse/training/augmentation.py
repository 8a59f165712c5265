"""What training changes of a view's rows: tokens repeated (ESimCSE), dimensions cut, positions shuffled (ConSERT).

Functions of a row give a new one and take what is random from `rng`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cse.encoding.rows import Row

if TYPE_CHECKING:
    from cse.methods.method import Method

MOST_REPEATED = 10  # ESimCSE's released code: always fewer


def augmented(
    views: Sequence[Sequence[Row]], method: Method, width: int, room: int, rng: np.random.Generator
) -> list[list[Row]]:
    """The rows of every view as `method` changes them.

    Embeddings have `width` dimensions, and `room` tokens fit in a row.
    """
    first, second, *others = (list(rows) for rows in views)
    if method.cutoff:
        first = [cut_off(row, method.cutoff, width, rng) for row in first]
    if method.repetition:
        second = [repeated(row, method.repetition, room, rng) for row in second]
    if method.shuffled:
        second = [shuffled(row, rng) for row in second]
    return [first, second, *others]


def repeated(row: Row, share: float, room: int, rng: np.random.Generator) -> Row:
    """The row with n of its tokens twice in place, distinct ones and neither the first nor the last (ESimCSE 3.1).

    n is drawn evenly from 0 to min(10, floor(share * length)) - 1, as in the released code (the paper's bound is
    max(2, ...)), and is smaller where fewer tokens fit in `room`.
    """
    length = len(row.ids)
    most = min(MOST_REPEATED, int(share * length))
    count = min(int(rng.integers(most)) if most else 0, room - length)
    twice = set((1 + rng.choice(length - 2, count, replace=False)).tolist()) if count > 0 else set()
    order = [place for place in range(length) for _ in range(1 + (place in twice))]
    return Row(
        tuple(row.ids[place] for place in order),
        tuple(row.slots[place] for place in order),
        tuple(range(len(order))),
        order.index(row.pool_at),
    )


def shuffled(row: Row, rng: np.random.Generator) -> Row:
    """The row with its positions, those of the special tokens too, permuted among its tokens (ConSERT)."""
    return replace(row, positions=tuple(rng.permutation(row.positions).tolist()))


def cut_off(row: Row, share: float, width: int, rng: np.random.Generator) -> Row:
    """The row without floor(share * width) of the dimensions of its embeddings (ConSERT's feature cut-off)."""
    return replace(row, cut=tuple(rng.permutation(width)[: int(share * width)].tolist()))
