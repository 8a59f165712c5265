"""Whose request is being answered, and the columns that this visitor has added to his own page."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from cse.app.models.recent import Recent

if TYPE_CHECKING:
    from cse.app.models.models import Column

MOST_COLUMNS = 4  # that one visitor adds
MOST_VISITORS = 1000  # whose columns and newest requests are remembered


def visitor() -> str | None:
    """The session of the request being answered; None outside of one, as while the page is built."""
    from gradio.context import LocalContext

    return getattr(LocalContext.request.get(None), "session_hash", None)


def gone() -> bool:
    """Whether the client whose request is being answered has left, so that nobody waits for the rest."""
    from gradio.context import LocalContext

    blocks, number = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    event = blocks._queue.event_ids_to_events.get(number) if blocks is not None and number is not None else None
    return event is not None and not event.alive


class Added:
    """The columns of each visitor, who sees no one else's."""

    def __init__(self) -> None:
        self._columns = Recent[tuple["Column", ...]](MOST_VISITORS)
        self._changing = Lock()  # a visitor may ask twice at once

    def columns(self) -> tuple[Column, ...]:
        """Those of the visitor who asks."""
        return self._columns.get(visitor()) or ()

    def add(self, column: Column) -> None:
        """Add one. Raises ValueError outside of a session, and where the visitor has as many as he may have."""
        if visitor() is None:
            raise ValueError("A model is added to a page or to a client's session, and this request has none.")
        with self._changing:
            own = self.columns()
            if len(own) >= MOST_COLUMNS:
                raise ValueError(f"You have added {MOST_COLUMNS} models; remove yours to add others.")
            self._columns.put(visitor(), (*own, column))

    def remove(self, column: Column) -> None:
        """Take away one of the visitor who asks."""
        with self._changing:
            self._columns.put(visitor(), tuple(own for own in self.columns() if own != column))

    def clear(self) -> None:
        """Take away those of the visitor who asks."""
        self._columns.put(visitor(), ())
