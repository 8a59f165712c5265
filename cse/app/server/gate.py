"""ASGI middleware: reject other hosts and origins, requests beyond a client's bounds, and invalid calls."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus

import gradio as gr
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response

from cse.app.server.bodies import MOST_BODY, MOST_UNFINISHED, Receive, Scope, read, replayed, too_large
from cse.app.server.budget import Budget
from cse.app.server.calls import API, FIELD, Refusal, completed, names_in, refusal, unknown_event, wrong_name
from cse.app.server.calls import refused as refused_call
from cse.app.server.hosts import OPTION, VARIABLE, Names
from cse.app.server.response_headers import Send, security_headers, with_headers
from cse.app.server.rights import Client, Rights
from cse.app.server.streams import MOST as MOST_STREAMS
from cse.app.server.streams import PATH as STREAM
from cse.app.server.streams import refused_stream
from cse.app.server.uploads import PATH as UPLOAD
from cse.app.server.uploads import PROGRESS, Uploads, finished

MOST_OPEN = 256, 768  # open requests of a kind, of a client and of all; a page holds two streams
KINDS = ("heartbeat", "queue", "call")  # first parts of paths that have their own budgets
BODIES = ("POST", "PUT", "PATCH", "DELETE")
DEEP_LINK = "deep_link"


@dataclass(frozen=True)
class Gate:
    """An ASGI middleware of a Gradio app that serves `names`. It puts the `Client` of a request into its scope.

    The owner's uploads have bounds of their own. Refusals are JSON with one line, `detail`; those of uploads are plain
    text.
    """

    app: Callable[[Scope, Receive, Send], Awaitable[None]]
    names: Names
    rights: Rights = field(default_factory=Rights)
    streams: Budget = field(default_factory=lambda: Budget(MOST_STREAMS, sys.maxsize))  # open ones, by session
    open: defaultdict[str, Budget] = field(default_factory=lambda: defaultdict(lambda: Budget(*MOST_OPEN)))
    bodies: Budget = field(default_factory=lambda: Budget(*MOST_UNFINISHED))
    uploads: Uploads = field(default_factory=Uploads)
    owner_uploads: Uploads = field(default_factory=Uploads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        client = scope["user"] = self.rights.client(scope)  # Starlette's key of who asks
        send = with_headers(send, security_headers(self.names.public) | self.rights.mark_headers(scope, client))
        kind = path_of(scope).partition("/")[0]
        open_now = self.open[kind if kind in KINDS else "other"]
        status = open_now.exceeded(client.address)
        if status is not None:
            whose = "This address has" if status == HTTPStatus.TOO_MANY_REQUESTS else "All clients together have"
            await refused(status, f"{whose} too many requests open; try again later.")(scope, receive, send)
            return
        with open_now.held(client.address):
            try:
                stopped, receive = await self.inspected(scope, receive, client)
            except HTTPException as error:
                shown = path_of(scope) == UPLOAD  # the page shows the body as it is
                line, status = error.detail, error.status_code
                stopped = PlainTextResponse(line, status) if shown else refused(status, line)
                if error.status_code == HTTPStatus.REQUEST_TIMEOUT:
                    stopped.headers["Connection"] = "close"
            session = session_of(scope) if stopped is None else None
            with nullcontext() if session is None else self.streams.held(session):
                await (stopped or self.app)(scope, receive, send)

    async def inspected(self, scope: Scope, receive: Receive, client: Client) -> tuple[Response | None, Receive]:
        """Return the answer to a request that is stopped here, or None, and the app's `receive`.

        Raises HTTPException for a body that is too large or too slow, or beyond a client's bounds.
        """
        headers, blocks, path = Headers(scope=scope), scope["app"].get_blocks(), path_of(scope)
        stopped = self.foreign_refusal(headers, blocks.share_url)
        reasons = [reason for reason in map(wrong_name, names_in(scope, path)) if reason is not None]
        if stopped is None and reasons:
            stopped = answered(refused_call(reasons[0], HTTPStatus.UNPROCESSABLE_ENTITY))
        stopped = stopped or self.rights.entrance(scope, client)
        if stopped is not None:
            return stopped, receive
        if scope["method"] in BODIES:
            return await self.body(scope, receive, client)
        return (self.stream(scope) if scope["method"] == "GET" else None), receive

    def stream(self, scope: Scope) -> Response | None:
        """Return the refusal of a GET request for a deep link, an unknown call or a surplus stream; None for others."""
        path, session, blocks = path_of(scope), session_of(scope), scope["app"].get_blocks()
        if path == DEEP_LINK:  # Gradio would write the session's data to the disk and never delete it
            return refused(HTTPStatus.NOT_FOUND, "This app stores no pages; share the page's address.")
        if path == PROGRESS:
            return finished()
        if session is not None:
            return refused_stream(blocks, session, self.streams)
        return answered(unknown_event(blocks, path))

    async def body(self, scope: Scope, receive: Receive, client: Client) -> tuple[Response | None, Receive]:
        """Return the answer to a request with a body that is stopped here, or None, and the app's `receive`."""
        headers, blocks, path = Headers(scope=scope), scope["app"].get_blocks(), path_of(scope)
        form = headers.get("content-type", "").lower().startswith("multipart/")
        if form and not (path == UPLOAD and any(isinstance(block, gr.File) for block in blocks.blocks.values())):
            return refused(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "No part of this app takes files here; send JSON."
            ), receive
        uploads = self.owner_uploads if client.owner else self.uploads
        most, announced = uploads.most if form else MOST_BODY, headers.get("content-length", "0")
        if not announced.isdecimal() or int(announced) > most:
            raise too_large(most)
        if form:
            return await uploads.answer(scope, receive, client.address, int(announced)), receive
        body, ended = await read(receive, self.bodies, client.address)
        body = completed(blocks, path, body)
        return answered(refusal(blocks, path, body)), replayed(body, ended, receive)

    def foreign_refusal(self, headers: Headers, share: str | None) -> Response | None:
        """Return the refusal of a request to another host name or from another site's page."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.names.serves(host, share):
            cure = f"if it should, start it with {OPTION} NAME, or set {VARIABLE}"
            return refused(
                HTTPStatus.MISDIRECTED_REQUEST, f"This app does not answer to the name {host[:200]!r}; {cure}."
            )
        if origin is not None and not self.names.trusts(origin, host, share):
            cure = f"if its site should, start the app with {OPTION} NAME, or set {VARIABLE}"
            return refused(HTTPStatus.FORBIDDEN, f"A page of {origin[:200]!r} may not use this app; {cure}.")
        return None


def path_of(scope: Scope) -> str:
    """Return the part of a request's path after `API`; empty without it."""
    return str(scope["path"]).partition(API)[2].strip("/")


def session_of(scope: Scope) -> str | None:
    """Return the session whose stream a request opens, or None."""
    if scope["method"] != "GET" or path_of(scope) != STREAM:
        return None
    return QueryParams(scope["query_string"]).get(FIELD)


def answered(reason: Refusal | None) -> Response | None:
    """Return a refusal as a response, or None."""
    return None if reason is None else JSONResponse(*reason)


def refused(status: int, line: str) -> Response:
    """Return a response of one line."""
    return JSONResponse({"detail": line}, status)
