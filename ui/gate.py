"""What stands before the app: requests of foreign pages, too large ones and calls that cannot be answered stop here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from ui.calls import API, UNKNOWN, Refusal, forget, lighten, refusal, unknown_event
from ui.names import OPTION, VARIABLE, Names
from ui.own_corpus import MOST_BYTES
from ui.streams import PATH as STREAM
from ui.streams import Streams

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BODY = 4 * 2**20  # two texts of `validation.MAX_CHARACTERS` escaped character by character, and room
MOST_UPLOAD = MOST_BYTES + 2**16  # a file with what a form puts around it
MISDIRECTED, FORBIDDEN, TOO_LARGE, UNSUPPORTED = 421, 403, 413, 415
BODIES = ("POST", "PUT", "PATCH", "DELETE")
UPLOAD, DEEP_LINK = "upload", "deep_link"


@dataclass(frozen=True)
class Gate:
    """An ASGI middleware of a Gradio app that serves `names`; refusals are JSON with one line, `detail`."""

    app: Callable[[Scope, Receive, Send], Awaitable[None]]
    names: Names
    streams: Streams = field(default_factory=Streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, blocks = Headers(scope=scope), scope["app"].get_blocks()
        stopped = self.stranger(headers, blocks.share_url)
        path = scope["path"].partition(API)[2].strip("/")
        session = QueryParams(scope["query_string"]).get("session_hash") if path == STREAM else None
        if stopped is None and scope["method"] == "GET":
            kept = path == DEEP_LINK  # Gradio writes all a session holds to the disk, and never deletes it
            line = "This app stores no pages; share the page's address."
            stopped = refused(UNKNOWN, line) if kept else answered(unknown_event(blocks, path))
            stopped = self.streams.refusal(blocks, session) if session is not None else stopped
        elif stopped is None and scope["method"] in BODIES:
            stopped, receive = await inspected(path, headers, blocks, receive)
        with self.streams.counted(session) if stopped is None and session is not None else nullcontext():
            await (stopped or self.app)(scope, receive, send)
        if stopped is None and scope["method"] == "GET" and path.startswith(("call/", STREAM)):
            if session is None:
                forget(blocks, path)
            lighten(blocks)

    def stranger(self, headers: Headers, share: str | None) -> Response | None:
        """The refusal of a request to another server's name, or from another site's page."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.names.serves(host, share):
            cure = f"if it should, start it with {OPTION} NAME, or set {VARIABLE}"
            return refused(MISDIRECTED, f"This app does not answer to the name {host[:200]!r}; {cure}.")
        if origin is not None and not self.names.trusts(origin, host, share):
            cure = f"if its site should, start the app with {OPTION} NAME, or set {VARIABLE}"
            return refused(FORBIDDEN, f"A page of {origin[:200]!r} may not use this app; {cure}.")
        return None


async def inspected(
    path: str, headers: Headers, blocks: gr.Blocks, receive: Receive
) -> tuple[Response | None, Receive]:
    """The refusal of a request's body, and what the app receives: an upload as it comes, anything else once it is here.

    `path` is what follows `API`.
    """
    form = headers.get("content-type", "").lower().startswith("multipart/")
    if form and not (path == UPLOAD and any(isinstance(block, gr.File) for block in blocks.blocks.values())):
        return refused(UNSUPPORTED, "No part of this app takes files here; send JSON."), receive
    most = MOST_UPLOAD if form else MOST_BODY
    announced = headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced) > most:
        return too_large(most), receive
    if form:
        return None, counted(receive, most)
    body, ended = await read(receive, most)
    if body is None:
        return too_large(most), receive
    return answered(refusal(blocks, path, body)), replayed(body, ended, receive)


async def read(receive: Receive, most: int) -> tuple[bytes | None, bool]:
    """A request's body, None for more than `most` bytes, and whether the client is there until its end."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts), False
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            return None, True
        if not message.get("more_body"):
            return b"".join(parts), True


def replayed(body: bytes, ended: bool, receive: Receive) -> Receive:
    """What an app receives of a body that was read before it, and then whatever comes."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}] if ended else [{"type": "http.disconnect"}]

    async def again() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return again


def counted(receive: Receive, most: int) -> Receive:
    """What an app receives, up to `most` bytes; more of them is answered as too large."""
    size = 0

    async def each() -> MutableMapping[str, Any]:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise HTTPException(TOO_LARGE, f"The request has more than {most:,} bytes; send less.")
        return message

    return each


def too_large(most: int) -> Response:
    """The refusal of more than `most` bytes."""
    return refused(TOO_LARGE, f"The request has more than {most:,} bytes; send less.")


def answered(reason: Refusal | None) -> Response | None:
    """A refusal as it is sent, if there is one."""
    return None if reason is None else JSONResponse(*reason)


def refused(status: int, line: str) -> Response:
    """An answer of one line."""
    return JSONResponse({"detail": line}, status)
