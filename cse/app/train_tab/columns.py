"""The models that a visitor trained, or opened from own files, as columns of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.app.models.columns import Column, free_name, opened_by
from cse.app.scoreboard.add_model import described

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.app.training.outcome import Made
    from cse.app.training.trainings import Trainings


def made_by(trainings: Trainings, key: Any) -> list[Made]:
    """Return the models of a key: those of finished trainings, the newest first, and those of own files."""
    trained = [made for training in trainings.of(key) if training.outcome for made in training.outcome.models]
    return [*trained, *trainings.opened.of(key)]


def attach(state: AppState, made: Sequence[Made]) -> list[Column]:
    """Add models to the columns of the current visitor's page, those that are there already left out.

    Returns the new columns. Raises ValueError as `Added.add` does.
    """
    return [column for each in made if (column := put_column(state, each.folder, each.name)) is not None]


def put_column(state: AppState, folder: Path, name: str) -> Column | None:
    """Add the model in a folder under a name, or that name with a number; None if it is a column already.

    Raises ValueError for a model that does not open, and as `Added.add` does.
    """
    models = state.models
    with models.admitting():
        reading = opened_by(str(folder))
    if any(column.opened_by == reading for column in models.columns):
        return None
    taken = [column.name for column in models.columns]
    names = (name, *(f"{name} {number}" for number in range(2, len(taken) + 3)))
    column = Column(free_name(names, taken), *reading, added=name)
    described(state, column)
    return column
