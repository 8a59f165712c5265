"""Records in a model's folder about its training, read without its weights."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from cse.app.models.columns import Column
from cse.app.models.naming import BEFORE
from cse.methods.method import Pooling
from cse.models.names import BACKBONE, canonical_name, location


class Record(NamedTuple):
    """The seed of a model's training and the number of its trained parameters; None if they are not recorded."""

    seed: int | None = None
    trained: int | None = None


def record_of(model: str) -> Record:
    """Return the record of a bundled name or a checkpoint's folder; an empty one for any other model."""
    from cse.models.checkpoint import read_checkpoint_config

    if canonical_name(model) == BACKBONE:
        return Record(trained=0)
    folder = Path(location(model))
    if not folder.is_dir():  # no hub is asked
        return Record()
    try:
        config = read_checkpoint_config(folder)
    except ValueError:
        return Record()
    return Record(config.training.get("settings", {}).get("seed"), config.learned_numbers)


def seeds_of(models: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the seed of each model's training, by name, of those that record one; `models` are names and folders."""
    found = {name: record_of(model).seed for name, model in models}
    return {name: seed for name, seed in found.items() if seed is not None}


def before(column: Column) -> Column | None:
    """Return the model of a column as it was before its first training step; None if its folder does not tell.

    That is its backbone, read where the method reads it. What a method adds, as a prefix, is not there yet.
    """
    start = _start(column.model) if column.family is None else None
    return None if start is None else Column(f"{column.name}{BEFORE}", *start)


@lru_cache(256)
def _start(model: str) -> tuple[str, str] | None:
    """Return the backbone of a checkpoint and the pooling that reads it as its method does."""
    from cse.models.checkpoint import read_checkpoint_config

    folder = Path(location(model))
    if not folder.is_dir():
        return None
    try:
        config = read_checkpoint_config(folder)
    except ValueError:
        return None
    reading = config.method.reading
    pooling = reading.pooling.value
    if reading.pooling is Pooling.TOKEN:
        pooling = "prompt" if reading.at_mask else "cls"
    return config.backbone.place(folder), pooling
