"""Projections fitted on some texts of a labelled set and scored on others: gains of label neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cse.adaptation.projection import fit_projection
from cse.corpus import Corpus
from cse.corpus.formats import Options
from cse.evaluation.clustering import same_label_neighbours

Encode = Callable[[list[str]], np.ndarray]


@dataclass(frozen=True)
class Gains:
    """The label neighbours of a model on a set, in percent, and the gain of each number of components."""

    texts: str
    model: str
    start: float
    gains: Mapping[int, float]


def labelled_texts(file: Path, most: int, seed: int) -> Corpus:
    """Return the distinct texts of a file of label<TAB>text lines, or `most` of them drawn by the seed."""
    return Corpus.read(file, "2", "1", options=Options(delimiter="\t", header=False)).distinct_sample(most, seed)


def summary(rows: Sequence[Gains]) -> dict[int, dict[str, float]]:
    """The mean and the smallest gain of each number of components."""
    gains = {each: [row.gains[each] for row in rows] for each in rows[0].gains}
    return {each: {"mean": float(np.mean(found)), "smallest": min(found)} for each, found in gains.items()}


def measure(
    file: Path,
    encoders: Mapping[str, Encode],
    components: Sequence[int],
    *,
    fit: int,
    scored: int,
    seed: int,
    neighbours: int | None = None,
) -> list[Gains]:
    """Fit on `fit` texts of a file of label<TAB>text lines and score `scored` others, for each model.

    `neighbours` is that of `fit_projection`.

    Raises ValueError if there are fewer texts than that many, or fewer to fit on than components.
    """
    rows = labelled_texts(file, fit + scored, seed)
    order = np.random.default_rng(seed).permutation(len(rows))
    held, learned = (rows.take(part) for part in (order[:scored], order[scored:]))
    gold = np.unique(held.labels, return_inverse=True)[1]
    found = []
    for name, encode in encoders.items():
        fitted, vectors = (encode(part.sentences) for part in (learned, held))
        start = 100 * same_label_neighbours(vectors, gold)
        scores = {
            each: same_label_neighbours(fit_projection(fitted, each, neighbours)(vectors), gold) for each in components
        }
        gains = {each: 100 * score - start for each, score in scores.items()}
        found.append(Gains(file.parent.name if file.stem == "train" else file.stem, name, start, gains))
    return found
