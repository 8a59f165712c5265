"""Augmentations of a view's rows: repeated tokens (ESimCSE), cut-off dimensions and shuffled positions (ConSERT).

Each function returns a new row and draws from `rng`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cse.encoding.rows import Row

if TYPE_CHECKING:
    from cse.methods.method import Method

MOST_REPEATED = 10  # exclusive, as in ESimCSE's released code


def augmented(
    views: Sequence[Sequence[Row]], method: Method, width: int, room: int, rng: np.random.Generator
) -> list[list[Row]]:
    """The rows of every view, augmented as `method` says.

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
    """The row with n distinct tokens repeated in place, never the first or the last (ESimCSE 3.1).

    n is drawn uniformly from 0 to min(10, floor(share * length)) - 1, as in the released code (the paper's bound is
    max(2, ...)), and reduced to the tokens that fit in `room`.
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
    """The row with its positions permuted, including those of the special tokens (ConSERT)."""
    return replace(row, positions=tuple(rng.permutation(row.positions).tolist()))


def cut_off(row: Row, share: float, width: int, rng: np.random.Generator) -> Row:
    """The row with floor(share * width) embedding dimensions marked to be zeroed (ConSERT's feature cut-off)."""
    return replace(row, cut=tuple(rng.permutation(width)[: int(share * width)].tolist()))
