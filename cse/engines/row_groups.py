"""Grouping of the rows of a training step into forward passes with little padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FORWARD_COST = 64  # overhead of a forward pass in tokens, measured with bundled models on a CPU


def row_groups(lengths: Sequence[int], most: int | None = None, cost: int = FORWARD_COST) -> list[list[int]]:
    """Return the numbers of rows of these `lengths` (tokens) in groups of similar length, short ones first.

    Each group is padded to its longest row. The groups minimise padding plus `cost` tokens per group; larger ones are
    then split into groups of at most `most` rows.
    """
    order = np.argsort(lengths, kind="stable")
    ordered = np.asarray(lengths)[order]
    ends = [*(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]  # rows of one length stay together
    total, start_of = {0: 0}, {}
    for place, end in enumerate(ends):
        starts = (0, *ends[:place])
        costs = [total[start] + (end - start) * int(ordered[end - 1]) + cost for start in starts]
        best = int(np.argmin(costs))
        total[end], start_of[end] = costs[best], starts[best]
    groups, end = [], len(ordered)
    while end:
        groups.append(order[start_of[end] : end])
        end = start_of[end]
    parts = (np.array_split(group, -(-len(group) // (most or len(group)))) for group in reversed(groups))
    return [part.tolist() for group in parts for part in group]
