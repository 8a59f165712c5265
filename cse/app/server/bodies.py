"""Request bodies, bounded in size, in time, and in the memory of unfinished ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

import anyio
from starlette.exceptions import HTTPException

from cse.app.server.budget import Budget

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

MOST_BODY = 4 * 2**20  # fits two texts of `validation.MAX_CHARACTERS` with every character escaped
SECONDS = 30.0  # from a request's head to the end of its body
MOST_UNFINISHED = 16 * 2**20, 64 * 2**20  # bytes, of a client and of all


async def read(receive: Receive, bodies: Budget, client: str) -> tuple[bytes, bool]:
    """Return a request's body, and False if the client disconnected before its end.

    Raises HTTPException if it is too large or too slow, or if unfinished bodies exceed their bound.
    """
    parts: list[bytes] = []
    size = 0
    try:
        with anyio.fail_after(SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return b"".join(parts), False
                part = message.get("body", b"")
                if size + len(part) > MOST_BODY:
                    raise too_large(MOST_BODY)
                if (status := bodies.exceeded(client, len(part))) is not None:
                    raise HTTPException(status, "Too many unfinished requests are on their way; try again.")
                bodies.add(client, len(part))
                size += len(part)
                parts.append(part)
                if not message.get("more_body"):
                    return b"".join(parts), True
    except TimeoutError:
        raise too_slow(SECONDS) from None
    finally:
        bodies.add(client, -size)


def replayed(body: bytes, ended: bool, receive: Receive) -> Receive:
    """Return a `receive` that replays a body that was read, then passes further messages on."""
    waiting: list[Message] = [
        {"type": "http.request", "body": body, "more_body": False} if ended else {"type": "http.disconnect"}
    ]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def counted(receive: Receive, most: int) -> Receive:
    """Return a `receive` that raises HTTPException after more than `most` bytes."""
    size = 0

    async def each() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise too_large(most)
        return message

    return each


def too_large(most: int) -> HTTPException:
    """Return the error for more than `most` bytes."""
    return HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The request has more than {most:,} bytes; send less.")


def too_slow(seconds: float) -> HTTPException:
    """Return the error for a body that is incomplete after some seconds."""
    return HTTPException(
        HTTPStatus.REQUEST_TIMEOUT, f"The request's body was not complete after {seconds:.0f} seconds; send it again."
    )
