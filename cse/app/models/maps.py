"""One aligned map per model of a list of sentences, with neighbours and scores."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cse.analysis.projection import LEAST, NEIGHBOURS, continuity, directions, lost, nearest, trustworthiness
from cse.app import validation
from cse.app.models.models import Column, Failure, divided
from cse.app.models.remembered import fingerprint_of
from cse.runs.progress import Report, silent

if TYPE_CHECKING:
    from cse.app.models.state import AppState
    from cse.encoding.encoder import Encoder

MOST_SEED = 2**32 - 1


class ModelMap(NamedTuple):
    """A model's map of N points.

    `xy` (N, 2) float32 in [0, 1]; `near` (N, k) the points whose vectors are nearest, nearest first; `lost` (N,) the
    share of a point's neighbours that the map does not show; scores as in `cse.analysis.faithfulness`,
    None if there is none.
    """

    xy: np.ndarray
    near: np.ndarray
    lost: np.ndarray
    trustworthiness: float | None = None
    continuity: float | None = None
    same_topic: float | None = None


class Points(NamedTuple):
    """N sentences with a label each; `rows` are their indices in the demo corpus, None for other sources."""

    texts: list[str]
    labels: list[str]
    rows: np.ndarray | None = None
    paired: bool = False  # points 2i and 2i + 1 form a pair
    numbered: bool = False  # points are labelled by number

    @property
    def topics(self) -> list[str] | None:
        """The labels if they are topics, else None."""
        return None if self.rows is None else self.labels


def draw_maps(
    state: AppState, points: Points, seed: int, report: Report = silent
) -> Iterator[dict[str, ModelMap | Failure]]:
    """Yield the maps done so far by model, each time one is done; cached maps are yielded all at once."""
    from cse.analysis.projection import project

    start = validation.whole(seed, "The seed", 0, MOST_SEED)

    def vectors(column: Column, encoder: Encoder) -> tuple[Hashable, np.ndarray]:
        rows = encoder.encode(points.texts) if points.rows is None else state.demo.vectors(encoder)[points.rows]
        return model_key(column, fingerprint_of(encoder)), rows

    total = 2 * len(state.models.columns)
    answers = state.models.apply(vectors, report=lambda done, _, name: report(done, total, f"encoding: {name}"))
    known, failed = divided(answers)
    key = maps_key({name: model for name, (model, _) in known.items()}, points, start)
    kept = state.maps.get(key)
    if kept is not None or not known:
        yield in_order(state, (kept or {}) | failed)
        return
    report(total // 2, total, f"map: {next(iter(known))}")
    measured: dict[str, ModelMap] = {}
    for done, maps in enumerate(project({name: rows for name, (_, rows) in known.items()}, start), start=1):
        name = list(maps)[-1]
        measured[name] = measure(known[name][1], maps[name], points.topics)
        drawn = {name: measured[name]._replace(xy=xy) for name, xy in maps.items()}
        if done == len(known):
            state.maps.put(key, drawn)
        yield in_order(state, drawn | failed)


def measure(vectors: np.ndarray, xy: np.ndarray, topics: Sequence[str] | None) -> ModelMap:
    """Return the map `xy` (N, 2) of `vectors` (N, d) with its neighbours, and scores if there are enough points."""
    from cse.evaluation.clustering import same_label_neighbours

    neighbourhoods = nearest(directions(vectors), NEIGHBOURS), lost(vectors, xy)
    if len(vectors) < LEAST:
        return ModelMap(xy, *neighbourhoods)
    same = same_label_neighbours(vectors, np.array(topics)) if topics else None
    return ModelMap(xy, *neighbourhoods, trustworthiness(vectors, xy), continuity(vectors, xy), same)


def model_key(column: Column, fingerprint: str) -> Hashable:
    """Return a model's part of a cache key; models of one fingerprint may have different tokenizers."""
    return column.opened_by, fingerprint


def maps_key(models: Mapping[str, Hashable], points: Points, seed: int) -> Hashable:
    """Return the cache key of maps: the models' names with their `model_key`, the sentences and the seed."""
    return (*models.items(), *points.texts, seed)


def in_order(state: AppState, answers: dict[str, ModelMap | Failure]) -> dict[str, ModelMap | Failure]:
    """Return the answers in the order of the page's columns."""
    return {column.name: answers[column.name] for column in state.models.columns if column.name in answers}
