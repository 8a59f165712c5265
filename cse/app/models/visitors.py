"""The visitor of the current request, and whether its client is still there."""

from __future__ import annotations

from typing import Any

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
