"""Descriptions of a set of points of the maps, and their rows as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.app import validation
from cse.app.models.columns import Column
from cse.app.models.models import divided
from cse.app.models.remembered import fingerprint_of
from cse.app.state.groups import Groups
from cse.app.state.maps import Points, group_number, group_points, model_key

if TYPE_CHECKING:
    from cse.analysis.topics import Selection
    from cse.app.state.app_state import AppState
    from cse.encoder.encoder import Encoder

MOST = 5  # typical texts, and odd ones
WORDS = 8


def point_rows(value: Any, count: int) -> np.ndarray:
    """Return the distinct indices of 1 to `count` points that a client sent, ascending. Raises FieldError."""
    field = "The selection"
    if not isinstance(value, list) or not 1 <= len(value) <= count:
        raise validation.FieldError(field, f"{field} must be a list of 1 to {count:,} points.")
    return np.unique([validation.whole(each, "A point", 0, count - 1) for each in value])


def groups_by_model(
    state: AppState, points: Points, count: int, wanted: str
) -> tuple[dict[str, Groups], np.ndarray | None]:
    """Return the groups of the points by model, without failed models, and the vectors (N, d) of the `wanted` one."""
    digest, number, found = points.digest, group_number(count), list[np.ndarray]()

    def one(column: Column, encoder: Encoder) -> Groups:
        vectors = points.vectors(column, encoder)
        if column.name == wanted:
            found.append(vectors)
        return group_points(state, (model_key(column, fingerprint_of(encoder)), digest), points, vectors, number)

    groups, _ = divided(state.models.apply(one, points.columns))
    return groups, found[0] if found else None


def describe(state: AppState, points: Points, rows: np.ndarray, model: str, groups: int) -> Selection:
    """Describe a set of points by a model's vectors and all models' `groups`. Raises ValueError without vectors."""
    from cse.analysis.topics import selection

    known, vectors = groups_by_model(state, points, groups, model)
    if vectors is None:
        raise ValueError(
            f"{model[:60]} has no vectors of these texts; choose {' or '.join(known) or 'another corpus'}."
        )
    of = {name: each.of for name, each in known.items()}
    return selection(points.texts, vectors, rows, points.labels, of, WORDS, MOST)


def table(
    state: AppState, points: Points, rows: np.ndarray, groups: int
) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Return the columns and the rows of a table of points: number of the row, text, label, group by model."""
    known, _ = groups_by_model(state, points, groups, "")
    numbers = points.numbers or range(1, len(points.texts) + 1)
    columns = ["row", "text", *(["label"] if points.labels else []), *(f"group of {name}" for name in known)]

    def cells() -> Iterator[tuple[Any, ...]]:
        for row in rows.tolist():
            label = [points.labels[row]] if points.labels else []
            named = [int(each.of[row]) + 1 for each in known.values()]
            yield (numbers[row], points.texts[row], *label, *named)

    return columns, cells()
