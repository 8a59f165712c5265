"""The texts on whose nearest neighbours two models differ most, as blind questions: which list fits the text better?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cse.judging.verdict import RESULT, SAME, START
from cse.vectors import COSINES_AT_ONCE, nearest_others, unit_rows

NEIGHBOURS = 5
LEAST_TEXTS, MOST_TEXTS = 10, 5000  # distinct ones to compare; more are sampled
FIRST, FEWEST = 0.1, 60  # share and least number of texts that are shown in random order


@dataclass(frozen=True)
class Question:
    """A text, by its row, and the rows of its nearest neighbours under both models, nearest first.

    List A is START's, or RESULT's if `swapped`.
    """

    row: int
    start: tuple[int, ...]
    result: tuple[int, ...]
    swapped: bool

    @property
    def lists(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Lists A and B."""
        return (self.result, self.start) if self.swapped else (self.start, self.result)

    def chosen(self, second: bool) -> str:
        """The model of list A, or of list B if `second`."""
        return RESULT if second != self.swapped else START


def questions(start: np.ndarray, result: np.ndarray, seed: int) -> list[Question]:
    """Return a question for each text that has different neighbours under both models, the most different first.

    `start` and `result` (N, d) are vectors of the same N texts, of any two dimensions. Those of the `FIRST` share of
    the texts with the largest `differences` come first, in random order: the most extreme ones alone would be odd
    texts. Order and sides follow from `seed`. Raises ValueError for different N.
    """
    if len(start) != len(result):
        raise ValueError(f"the models have different numbers of vectors: {len(start)} and {len(result)}")
    near = nearest_others(start, NEIGHBOURS), nearest_others(result, NEIGHBOURS)  # (N, k) each
    rng = np.random.default_rng(seed)
    order, swapped = rng.permutation(len(start)), rng.integers(2, size=len(start)).astype(bool)
    order = order[np.argsort(-differences(start, result, near)[order], kind="stable")]
    first = max(FEWEST, round(FIRST * len(order)))
    order[:first] = rng.permutation(order[:first])
    return [
        Question(row, tuple(near[0][row].tolist()), tuple(near[1][row].tolist()), bool(swapped[row]))
        for row in order.tolist()
        if set(near[0][row].tolist()) != set(near[1][row].tolist())
    ]


def differences(start: np.ndarray, result: np.ndarray, near: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """(N,) difference of two models on each text, given its neighbours (N, k) under both.

    The mean rank that one model gives the other's neighbours, the smaller of both directions.
    """
    return np.minimum(ranks(result, near[0]).mean(axis=1), ranks(start, near[1]).mean(axis=1))


def ranks(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(N, k) rank of each of the rows `rows` (N, k) among all others by cosine to the vector (N, d), 0 for the nearest.

    Equal cosines share the lowest rank.
    """
    unit = unit_rows(vectors)
    found = np.empty(rows.shape, dtype=np.int64)
    block = max(1, COSINES_AT_ONCE // max(1, len(unit)))
    for start in range(0, len(unit), block):
        cosines = unit[start : start + block] @ unit.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -np.inf
        wanted = np.take_along_axis(cosines, rows[start : start + block], axis=1)
        for place in range(rows.shape[1]):
            found[start : start + block, place] = (cosines > wanted[:, place, None]).sum(axis=1)
    return found


def vote_by_label(question: Question, labels: Sequence[str]) -> str:
    """Return the vote for the list with more neighbours of the text's own label, "same" for equally many."""
    own = labels[question.row]
    start, result = (sum(labels[row] == own for row in rows) for rows in (question.start, question.result))
    return SAME if start == result else RESULT if result > start else START
