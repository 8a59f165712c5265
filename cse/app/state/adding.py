"""Models that a visitor adds to the page while the app runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.app.models.columns import Column, free_name, opened_by
from cse.app.models.models import Failure
from cse.app.models.naming import BEFORE, POOLED, title
from cse.app.state.records import before

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState

PATHS = ("/", "~", ".", "\\")  # begin a path


def add_column(state: AppState, name: Any) -> Column:
    """Open a model and add it to the current visitor's columns.

    Raises ValueError, in one line without a path, if the model is not admitted, is there already, or fails.
    """
    model, requested = state.admission.model(name), str(name).strip()
    pooling = POOLED.get(requested.lower())
    called = requested.lower() if pooling else Path(model).name
    column = put_column(state, model, requested, (called, requested, f"{requested} again"), pooling)
    if column is None:
        raise ValueError(f"{title(called)} is on your page already.")
    return column


def add_own(state: AppState, key: str, name: Any, archive: str | None) -> Column:
    """Add the model in a .zip that a visitor sent, or else the one of a name or, for the owner, of a folder's path.

    Raises ValueError as `add_column`, and for what the rules of the server do not allow.
    """
    opened, requested = state.trainings.opened, str(name or "").strip()
    if archive is None and not requested.startswith(PATHS):
        return add_column(state, name)
    if archive is None:
        made = opened.folder(requested)
    else:
        try:
            made = opened.unpack(key, Path(archive), Path(archive).stem)
        finally:
            Path(archive).unlink(missing_ok=True)
    column = put_column(state, str(made.folder), made.name, numbered(made.name))
    if column is None:
        raise ValueError(f"{made.name} is on your page already.")
    return column


def numbered(name: str) -> Iterator[str]:
    """Yield a name, and the name with numbers from 2."""
    yield name
    yield from (f"{name} {number}" for number in itertools.count(2))


def put_column(
    state: AppState, model: str, requested: str, names: Iterable[str], pooling: str | None = None
) -> Column | None:
    """Add a model to the current visitor's columns under the first of the `names` that is free; None if it is one.

    `pooling` is that of a plain backbone. Raises ValueError, and adds nothing, if the model does not open, and as
    `Added.add` does.
    """
    models = state.models
    with models.admitting():
        reading = opened_by(model, pooling=pooling)
    if any(column.opened_by == reading for column in models.columns):
        return None
    column = Column(free_name(names, [column.name for column in models.columns]), *reading, added=requested)
    models.added.add(column)
    answer = models.apply(lambda _, encoder: encoder.dim, [column])[column.name]
    if isinstance(answer, Failure):
        models.added.remove(column)
        raise ValueError(f"{column.name} was not added: {answer.reason}")
    return column


def attach(state: AppState, key: str) -> list[str]:
    """Add the models of a visitor's key that are not on the page, and return their names, each with that of its start.

    A name that is there gets a number. A start that the model's folder does not tell is added, too. Raises ValueError
    as `put_column`.
    """
    names: list[str] = []
    for made, request in state.trainings.models(key):
        column = put_column(state, str(made.folder), made.name, numbered(made.name))
        if column is None:
            continue
        start = f"{column.name}{BEFORE}"
        told = before(column) is not None
        if request and not told:
            told = put_column(state, request.start, start, [start], request.pooling) is not None
        names += [column.name, start] if told else [column.name]
    return names
