"""Which sentences go through the model in one pass: as many tokens as a device likes, and hardly any padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

TOKENS = {"cpu": 2048}  # of one pass; on a CPU more of them leave its caches
MOST_TOKENS = 65_536  # of other devices
WINDOW = 16_384  # sentences that are tokenised and sorted together, which bounds what a long list takes
SPREAD = 4
SMALLEST = 8  # a pass of less than this part of the tokens takes shorter sentences in, padded


def plan_batches(lengths: Sequence[int], tokens: int, sentences: int | None = None) -> Iterator[np.ndarray]:
    """The numbers of the rows of each pass, longest rows first, of N rows of `lengths` tokens.

    A pass has at most `tokens`, padding included, but one row at least, and at most as many `sentences`. Its rows are
    of one length, unless they were too few.
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


def plan_packed(lengths: Sequence[int], tokens: int, sentences: int | None = None) -> Iterator[np.ndarray]:
    """The numbers of the rows of each pass without padding, longest rows first, of N rows of `lengths` tokens.

    A pass has at most `tokens` of any rows, but one row at least, and at most as many `sentences`. Where its states are
    laid out as rows again, as a mean needs them, they take at most `SPREAD` times as much.
    """
    order = np.argsort(np.negative(lengths), kind="stable")
    falling = np.asarray(lengths)[order]
    before = np.concatenate([[0], np.cumsum(falling)])  # tokens before each row
    start = 0
    while start < len(order):
        full = int(np.searchsorted(before, before[start] + tokens, side="right")) - 1
        spread = start + SPREAD * tokens // max(1, int(falling[start]))
        end = max(start + 1, min(full, spread))
        end = end if sentences is None else min(end, start + sentences)
        yield order[start:end]
        start = end
