"""The visitor of the current request, and the columns that each visitor has added."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from cse.app.models.recent import Recent

if TYPE_CHECKING:
    from cse.app.models.models import Column

MOST_COLUMNS = 4  # added by one visitor
MOST_VISITORS = 1000  # whose columns and newest requests are remembered


def current_request() -> Any:
    """Return the current `gr.Request`; None outside of one, as while the page is built."""
    from gradio.context import LocalContext

    return LocalContext.request.get(None)


def visitor() -> str | None:
    """Return the session of the current request; None outside of one."""
    return getattr(current_request(), "session_hash", None)


def client_left() -> bool:
    """True if the client of the current request has disconnected."""
    from gradio.context import LocalContext

    blocks, number = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    event = blocks._queue.event_ids_to_events.get(number) if blocks is not None and number is not None else None
    return event is not None and not event.alive


class ClientLeft(ValueError):
    """The client of a request has disconnected, so that its place in the queue is free."""

    def __init__(self) -> None:
        super().__init__("The client has left.")


class Added:
    """The columns that each visitor has added; no visitor sees those of another."""

    def __init__(self) -> None:
        self._columns = Recent[tuple["Column", ...]](MOST_VISITORS)
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
