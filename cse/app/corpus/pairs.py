"""Pairs of texts drawn from the chosen corpus: near ones by its vectors, or at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from cse.app import validation
from cse.app.corpus.chosen import FIELD, ChosenCorpus, vectors_by_model
from cse.app.models.columns import Column
from cse.app.models.models import divided

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState

DRAWN = {"near": "Near pair of the corpus", "random": "Random pair of the corpus"}
SAMPLED = 60  # texts whose nearest other one is looked up, spread over the corpus


def drawn_pair(state: AppState, corpus: ChosenCorpus, kind: str, chance: Random) -> tuple[str, str]:
    """Return two texts: a random one, with a random other or its nearest in the first model that has the vectors.

    Raises FieldError for fewer than two texts, and ValueError while no model has encoded them.
    """
    check(corpus)
    first, other = chance.sample(range(len(corpus.texts)), 2)
    if validation.one_of(kind, "The pair", DRAWN) == "near":
        column = next(iter(corpus.ready(state.models.columns)), state.models.columns[0])
        other = int(nearest_of(state, corpus, np.array([first]), [column])[0][0])
    return corpus.texts[first], corpus.texts[other]


def near_pairs(state: AppState, corpus: ChosenCorpus) -> list[tuple[str, str]]:
    """Return distinct pairs of different texts: texts spread over the corpus with their nearest others in each model.

    Raises as `drawn_pair`.
    """
    check(corpus)
    rows = np.unique(np.linspace(0, len(corpus.texts) - 1, SAMPLED).astype(int))
    columns = corpus.ready(state.models.columns) or state.models.columns[:1]
    near = nearest_of(state, corpus, rows, columns)
    found = [tuple(sorted(pair)) for others in near for pair in zip(rows.tolist(), others.tolist(), strict=True)]
    pairs = dict.fromkeys((corpus.texts[first], corpus.texts[other]) for first, other in found)
    return [pair for pair in pairs if pair[0] != pair[1]]


def check(corpus: ChosenCorpus) -> None:
    """Raise FieldError for a corpus that has no pair."""
    if len(corpus.texts) < 2:
        raise validation.FieldError(FIELD, f"{corpus.label} has one text; a pair needs two.")


def nearest_of(state: AppState, corpus: ChosenCorpus, rows: np.ndarray, columns: Sequence[Column]) -> list[np.ndarray]:
    """Return for each column the nearest other text of each of the `rows` (n,). Raises ValueError if all fail."""
    known, failed = divided(vectors_by_model(state, corpus, columns))
    if not known:
        raise ValueError(next(iter(failed.values())).reason)
    return [nearest(vectors, rows) for vectors in known.values()]


def nearest(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the row with the highest cosine to each of the `rows` (n,) of vectors (N, d), without itself."""
    from cse.vectors import unit_rows

    unit = unit_rows(vectors)
    cosines = unit[rows] @ unit.T
    cosines[np.arange(len(rows)), rows] = -np.inf
    return cosines.argmax(axis=1)
