"""The columns of the app: those of the page, and those that each visitor has added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from cse.app.models.recent import RecentByClient
from cse.app.models.visitors import MOST_VISITORS, visitor
from cse.models.names import canonical_name, resolve

MOST_COLUMNS = 4  # added by one visitor
MOST_SESSIONS = 100  # of a client, whose columns are remembered


@dataclass(frozen=True)
class Column:
    """A model on the page: its heading, the arguments of `cse.load`, and the name by which a visitor `added` it."""

    name: str
    model: str
    pooling: str | None = None
    family: str | None = None
    added: str = ""

    @property
    def opened_by(self) -> tuple[str, str | None, str | None]:
        """Name, pooling and family."""
        return self.model, self.pooling, self.family


class Added:
    """The columns that each visitor has added; no visitor sees those of another."""

    def __init__(self) -> None:
        self._columns = RecentByClient[tuple[Column, ...]](MOST_VISITORS, MOST_SESSIONS)
        self._changing = Lock()  # a visitor may send two requests at once

    def columns(self) -> tuple[Column, ...]:
        """Return the current visitor's columns."""
        return self._columns.get(visitor()) or ()

    def add(self, column: Column) -> None:
        """Add a column. Raises ValueError outside of a session, or if the visitor has `MOST_COLUMNS`."""
        if visitor() is None:
            raise ValueError("A model is added to a page or to a client's session, and this request has none.")
        with self._changing:
            own = self.columns()
            if len(own) >= MOST_COLUMNS:
                raise ValueError(f"You have added {MOST_COLUMNS} models; remove yours to add others.")
            self._columns.put(visitor(), (*own, column))

    def remove(self, column: Column) -> None:
        """Remove one of the current visitor's columns."""
        with self._changing:
            self._columns.put(visitor(), tuple(own for own in self.columns() if own != column))

    def clear(self) -> None:
        """Remove the current visitor's columns."""
        self._columns.put(visitor(), ())


def columns(models: Sequence[str], family: str | None = None, pooling: str | None = None) -> tuple[Column, ...]:
    """Return a column per model, without duplicates; the second of two folders of one name is headed by its path."""
    found: dict[str, Column] = {}
    for reading in dict.fromkeys(opened_by(model, family, pooling) for model in models):
        name = free_name((Path(reading[0]).name, reading[0]), found)
        found[name] = Column(name, *reading)
    return tuple(found.values())


def opened_by(model: str, family: str | None = None, pooling: str | None = None) -> tuple[str, str | None, str | None]:
    """Return the name, pooling and family that `cse.load` opens a model by; a wrong name is returned as it is.

    `family` is that of a published checkpoint, `pooling` that of a plain backbone.
    """
    try:
        reference = resolve(model, pooling, family, lenient=True)
    except ValueError:
        return canonical_name(model), None, family
    return reference.name, reference.pooling, reference.family


def free_name(candidates: Iterable[str], taken: Iterable[str]) -> str:
    """Return the first candidate that is not empty and not taken; there must be one."""
    known = {"", *taken}
    return next(name for name in candidates if name not in known)
