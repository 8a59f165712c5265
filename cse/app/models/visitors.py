"""The client of the current request, the session of its page, and whether it is still there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

MOST_VISITORS = 1000  # whose columns and newest requests are remembered


class Client(Protocol):
    """The client of a request, as the server's gate knows it; equal ones are one client."""

    @property
    def address(self) -> str:
        """Its network address, which several clients may share."""

    @property
    def owner(self) -> bool:
        """True if it has the rights of the server's owner."""

    def __hash__(self) -> int:
        """Return the hash of what tells clients apart."""


def current_request() -> Any:
    """Return the current `gr.Request`; None outside of one, as while the page is built."""
    from gradio.context import LocalContext

    return LocalContext.request.get(None)


def current_client() -> Client | None:
    """Return the client of the current request; None outside of one, which has no rights and no bounds."""
    request = current_request()
    client: Client | None = getattr(getattr(request, "request", request), "scope", {}).get("user")
    return client


def first_to_go(clients: Sequence[Client | None], sizes: Sequence[int] = ()) -> int:
    """Return the index of the oldest thing of the client that holds most; `clients` hold the things, oldest first.

    Addresses are compared before cookies, since a client can drop a cookie. Without `sizes` all things are equal.
    """
    of_address, of_client = Counter[str](), Counter[Client | None]()
    for client, size in zip(clients, sizes or [1] * len(clients), strict=True):
        of_address[client.address if client else ""] += size
        of_client[client] += size

    def held(index: int) -> tuple[int, int]:
        client = clients[index]
        return of_address[client.address if client else ""], of_client[client]

    return max(range(len(clients)), key=held)


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
