"""Batches of sentences by token count, with little padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

TOKENS = {"cpu": 2048}  # per pass; more do not fit into a CPU's caches
MOST_TOKENS = 65_536  # per pass on other devices
WINDOW = 16_384  # sentences tokenised and sorted together, which limits the memory of a long list
SMALLEST = 8  # a pass of fewer than 1/8 of the rows that fit is filled up with shorter ones, padded


def plan_batches(lengths: Sequence[int], tokens: int, sentences: int | None = None) -> Iterator[np.ndarray]:
    """Yield the row numbers of each pass over N rows of `lengths` tokens, longest rows first.

    A pass has at most `tokens`, padding included, but at least one row, and at most `sentences` rows. All its rows have
    the same length, unless these would be too few.
    """
    order = np.argsort(np.negative(lengths), kind="stable")
    falling = -np.asarray(lengths)[order]
    start = 0
    while start < len(order):
        room = max(1, tokens // max(1, -int(falling[start])))
        room = room if sentences is None else min(room, sentences)
        alike = int(np.searchsorted(falling, falling[start], side="right")) - start
        size = min(room, max(alike, room // SMALLEST))
        yield order[start : start + size]
        start += size
