"""Votes of labels in a person's place: how often `cse judge` names the better of two models, over many pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from cse.analysis.votes import RESULT, START, questions, verdict, vote_by_label
from cse.evaluation.clustering import same_label_neighbours
from tests.bench.adapt import labelled_texts

MODELS = {
    "simcse": ("simcse", None), "promptbert": ("promptbert", None), "dcpcse": ("dcpcse", None),
    "conpvp": ("conpvp", None), "mean": ("bundled", "mean"), "cls": ("bundled", "cls"),
    "first-last": ("bundled", "first-last"), "static": ("bundled", "static"), "prompt": ("bundled", "prompt"),
    "prompt-denoised": ("bundled", "prompt-denoised"),
}  # fmt: skip

Encode = Callable[[list[str]], np.ndarray]


@dataclass
class Tally:
    """Of `pairs` of models, those that `differ` enough, and the outcomes of their sessions, one per pair and seed.

    `right` and `wrong`: more votes for the better or the worse model; `named` and `misnamed`: by the sign test too.
    """

    pairs: int = 0
    differ: int = 0
    sessions: int = 0
    right: int = 0
    wrong: int = 0
    named: int = 0
    misnamed: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            *(first + second for first, second in zip(asdict(self).values(), asdict(other).values(), strict=True))
        )

    def to_json(self) -> dict[str, float]:
        """The counts, the outcomes also in percent of the sessions."""
        counts = asdict(self)
        outcomes = ("right", "wrong", "named", "misnamed")
        return counts | {f"{name}_percent": 100 * counts[name] / max(1, self.sessions) for name in outcomes}


def simulate(vectors: Mapping[str, np.ndarray], labels: Sequence[str], votes: int, points: float, seeds: int) -> Tally:
    """Judge all pairs of models, by their vectors (N, d), that differ by `points` of label neighbours."""
    gold = np.unique(np.asarray(labels), return_inverse=True)[1]
    shares = {name: 100 * same_label_neighbours(rows, gold) for name, rows in vectors.items()}
    tally = Tally()
    for start, result in combinations(vectors, 2):
        tally.pairs += 1
        gain = shares[result] - shares[start]
        if abs(gain) < points:
            continue
        tally.differ += 1
        for seed in range(seeds):
            asked = questions(vectors[start], vectors[result], seed)[:votes]
            found = verdict(vote_by_label(question, labels) for question in asked)
            better = RESULT if gain > 0 else START
            tally.sessions += 1
            tally.right += found.ahead == better
            tally.wrong += found.ahead not in (better, None)
            tally.named += found.better == better
            tally.misnamed += found.better not in (better, None)
    return tally


def measure(file: Path, encoders: Mapping[str, Encode], texts: int, votes: int, points: float, seeds: int) -> Tally:
    """`simulate` on a sample of a file of label<TAB>text lines."""
    rows = labelled_texts(file, texts, seed=0)
    vectors = {name: encode(rows.sentences) for name, encode in encoders.items()}
    return simulate(vectors, rows.labels, votes, points, seeds)
