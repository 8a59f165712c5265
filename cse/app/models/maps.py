"""From sentences to one aligned map per model, with what the page tells about its points."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cse.analysis.projection import LEAST, NEIGHBOURS, continuity, directions, lost, nearest, trustworthiness
from cse.app import validation
from cse.app.drawing.canvas import ModelMap
from cse.app.models.models import Column, Failure, divided
from cse.app.models.remembered import fingerprint_of
from cse.app.models.state import AppState
from cse.training.progress import Report, silent

if TYPE_CHECKING:
    from cse.encoding.encoder import Encoder

MOST_SEED = 2**32 - 1


class Points(NamedTuple):
    """N sentences with a label each; `rows` are their places in the demo corpus, None for other sources."""

    texts: list[str]
    labels: list[str]
    rows: np.ndarray | None = None
    paired: bool = False  # points 2 i and 2 i + 1 belong together
    numbered: bool = False  # the points have no topics to tell them apart

    @property
    def topics(self) -> list[str] | None:
        """The labels where they are topics."""
        return None if self.rows is None else self.labels


def draw_maps(
    state: AppState, points: Points, seed: int, report: Report = silent
) -> Iterator[dict[str, ModelMap | Failure]]:
    """Each model's map of the points: those done so far, as each is done; maps drawn lately come all at once."""
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
    """The map `xy` (N, 2) of `vectors` (N, d) with its neighbours and scores; a map of few points has no scores."""
    from cse.evaluation.clustering import same_label_neighbours

    neighbourhoods = nearest(directions(vectors), NEIGHBOURS), lost(vectors, xy)
    if len(vectors) < LEAST:
        return ModelMap(xy, *neighbourhoods)
    same = same_label_neighbours(vectors, np.array(topics)) if topics else None
    return ModelMap(xy, *neighbourhoods, trustworthiness(vectors, xy), continuity(vectors, xy), same)


def model_key(column: Column, fingerprint: str) -> Hashable:
    """What a model is known by among maps: two of one fingerprint may have tokenizers that differ."""
    return column.opened_by, fingerprint


def maps_key(models: Mapping[str, Hashable], points: Points, seed: int) -> Hashable:
    """What maps are kept by: the models' names with their `model_key`, the sentences and the seed."""
    return (*models.items(), *points.texts, seed)


def in_order(state: AppState, answers: dict[str, ModelMap | Failure]) -> dict[str, ModelMap | Failure]:
    """The answers there are, in the order of the page's columns."""
    return {column.name: answers[column.name] for column in state.models.columns if column.name in answers}
