"""ASGI middleware: reject other hosts and origins, requests beyond a client's bounds, and calls without an answer."""

from __future__ import annotations

import inspect
import json
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import gradio as gr
from gradio.block_function import BlockFunction
from gradio.components.api_component import Api
from gradio.server_messages import UnexpectedErrorMessage
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response

from cse.app.server.access import MARKED, Client, Names, Rights, Scope
from cse.app.server.bodies import MAX_BODY, MAX_UNFINISHED, Budget, Message, Receive, Uploads, read_body, too_large
from cse.app.server.gradio_adapter import knows_call, knows_session
from cse.app.validation import counted

Send = Callable[[Message], Awaitable[None]]

API = "/gradio_api/"  # before Gradio's routes
STREAM, HEARTBEAT, UPLOAD, PROGRESS = "queue/data", "heartbeat/", "upload", "upload_progress"
DEEP_LINK = "deep_link"  # Gradio would write the session's data to the disk and never delete it
SESSION = "session_hash"  # Gradio's name of a session, which clients choose, in bodies and queries
SESSION_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MAX_OPEN = 256, 768  # open requests of a kind, of a client and of all; a page holds two streams
KINDS = ("heartbeat", "queue", "call")  # first parts of paths that have their own budgets
MAX_NAMED = 20  # endpoints listed in a message
REQUIRED = inspect.Parameter.empty

# Gradio's page has inline scripts, and compiles the JavaScript functions of events.
SOURCES = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
HUGGING_FACE = "https://huggingface.co https://*.huggingface.co https://*.hf.space"


@dataclass(frozen=True)
class Gate:
    """An ASGI middleware of a Gradio app that serves `names`. It puts the `Client` of a request into its scope."""

    app: Callable[[Scope, Receive, Send], Awaitable[None]]
    names: Names
    rights: Rights = field(default_factory=Rights)
    open: defaultdict[str, Budget] = field(default_factory=lambda: defaultdict(lambda: Budget(*MAX_OPEN)))
    bodies: Budget = field(default_factory=lambda: Budget(*MAX_UNFINISHED))
    uploads: Uploads = field(default_factory=Uploads)
    owner_uploads: Uploads = field(default_factory=Uploads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        client = scope["user"] = self.rights.client(scope)  # Starlette's key of who asks
        added = security_headers(self.names.public)
        if not client.name and scope["path"] in MARKED:
            added["Set-Cookie"] = self.rights.cookie(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in added.items():
                    headers.setdefault(name, value)
            await send(message)

        kind = path_of(scope).partition("/")[0]
        with ExitStack() as stack:
            try:
                held = self.open[kind if kind in KINDS else "other"].held(client.address, 1, "requests open")
                stack.enter_context(held)
                answer, receive = await self.inspected(scope, receive, client)
            except HTTPException as error:
                detail = error.detail if isinstance(error.detail, dict) else {"detail": error.detail}
                answer = JSONResponse(detail, error.status_code, error.headers)
                if path_of(scope) == UPLOAD:  # the page shows it as it is
                    answer = PlainTextResponse(error.detail, error.status_code, error.headers)
            await (answer or self.app)(scope, receive, send_with_headers)

    async def inspected(self, scope: Scope, receive: Receive, client: Client) -> tuple[Response | None, Receive]:
        """Return the answer to a request that needs no app, or None, and the app's `receive`."""
        headers, blocks, path = Headers(scope=scope), scope["app"].get_blocks(), path_of(scope)
        self.names.check(headers.get("host", ""), headers.get("origin"), blocks.share_url)
        sessions = QueryParams(scope["query_string"]).getlist(SESSION)
        for session in (*sessions, *([path.removeprefix(HEARTBEAT)] if path.startswith(HEARTBEAT) else [])):
            check_session(session)
        if (entrance := self.rights.entrance(scope, client)) is not None:
            return entrance, receive
        if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
            return await self.body(scope, receive, client)
        if scope["method"] == "HEAD" and scope["path"] == "/":
            # Gradio asks so at its start and gives up after 3 s, in which a busy machine may not make the page.
            return Response(media_type="text/html"), receive
        if scope["method"] != "GET":
            return None, receive
        if path == DEEP_LINK:
            raise HTTPException(HTTPStatus.NOT_FOUND, "This app stores no pages; share the page's address.")
        if path == PROGRESS:  # uploads are small
            return Response('data: {"msg": "done"}\n\n', media_type="text/event-stream"), receive
        if path == STREAM and sessions and not knows_session(blocks, sessions[-1]):
            # Gradio sends the same message, which makes a page reconnect, but breaks off and logs tracebacks.
            line = "There is no such session, or it was forgotten; make a call first."
            event = f"data: {UnexpectedErrorMessage(message=line, session_not_found=True).model_dump_json()}\n\n"
            return Response(event, HTTPStatus.NOT_FOUND, media_type="text/event-stream"), receive
        kind, *call = path.replace("call/v2/", "call/").split("/")
        if kind == "call" and len(call) == 2 and not knows_call(blocks, call[1]):
            cure = f"call /{call[0][:60]} again"
            line = f"There is no call {call[1][:60]}, or its results were fetched; {cure}."
            raise HTTPException(HTTPStatus.NOT_FOUND, line)
        return None, receive

    async def body(self, scope: Scope, receive: Receive, client: Client) -> tuple[Response | None, Receive]:
        """Return the answer to an upload, or None, and the app's `receive`. Raises HTTPException as `inspected`."""
        headers, blocks, path = Headers(scope=scope), scope["app"].get_blocks(), path_of(scope)
        form = headers.get("content-type", "").lower().startswith("multipart/")
        if form and not (path == UPLOAD and any(isinstance(block, gr.File) for block in blocks.blocks.values())):
            line = "No part of this app takes files here; send JSON."
            raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, line)
        uploads = self.owner_uploads if client.owner else self.uploads
        limit, announced = uploads.limit if form else MAX_BODY, headers.get("content-length", "0")
        if not announced.isdecimal() or int(announced) > limit:
            raise too_large(limit)
        if form:
            return await uploads.answer(scope, receive, client.address, int(announced)), receive
        body, whole = await read_body(receive, self.bodies, client.address)
        ready: list[Message] = [{"type": "http.disconnect"}]
        if whole:
            ready = [{"type": "http.request", "body": checked_call(blocks, path, body), "more_body": False}]

        async def replayed() -> Message:
            return ready.pop() if ready else await receive()

        return None, replayed


def path_of(scope: Scope) -> str:
    """Return the part of a request's path after `API`; empty without it."""
    return str(scope["path"]).partition(API)[2].strip("/")


def security_headers(public: bool) -> dict[str, str]:
    """Return a server's headers; Hugging Face's pages may frame a `public` Space."""
    policy = {**SOURCES, "frame-ancestors": HUGGING_FACE if public else "'none'"}
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
    }
    return headers if public else {**headers, "X-Frame-Options": "DENY"}


def check_session(name: Any) -> None:
    """Raise HTTPException for a session name that is neither missing nor valid."""
    if name is not None and not (isinstance(name, str) and SESSION_NAME.fullmatch(name)):
        cure = "give 1 to 64 letters a-z, digits, hyphens, underscores or dots"
        raise invalid(f"{SESSION} is {json.dumps(name)[:60]}; {cure}.")


def invalid(line: str) -> HTTPException:
    """Return the refusal of a call in the form of Gradio's validation errors, which its clients show."""
    line = line.encode("utf-8", "replace").decode()
    detail: Any = {"__type__": "validate", "is_valid": False, "message": line, "parameter_name": "the call"}
    detail = {"detail": [detail], "error": line}
    return HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def checked_call(blocks: gr.Blocks, path: str, body: bytes) -> bytes:
    """Return the body of a call, with the defaults of the last values that it leaves out; other bodies as they are."""
    kind, _, name = path.partition("/")
    if kind == "stream":  # Gradio would replace the values of a waiting call by unchecked ones
        raise HTTPException(HTTPStatus.NOT_FOUND, "No part of this app takes streams; call an endpoint.")
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        return body  # Gradio reports it
    if not isinstance(sent, dict):
        return body
    check_session(sent.get(SESSION))
    if (kind, name) != ("queue", "join") and kind not in ("call", "run", "api"):
        return body
    function = called_function(blocks, kind, name.removeprefix("v2/"), sent)
    if name.startswith("v2/"):
        known = parameters_of(function)
        wrong = [f"{name[:60]} is none of them" for name in sent if name not in known]
        wrong += [f"{name} is missing" for name in known if known[name].default is REQUIRED and name not in sent]
        if wrong:
            raise invalid(f"/{function.api_name} takes {', '.join(known) or 'no values'}; {wrong[0]}.")
        return body
    values = sent.get("data")
    if not isinstance(values, list):
        return body
    rest = [parameter.default for parameter in parameters_of(function).values()][len(values) :]
    if rest and kind == "call" and function.api_visibility == "public" and REQUIRED not in rest:
        values = [*values, *rest]
        body = json.dumps({**sent, "data": values}).encode()
    check_values(function, values)
    return body


def called_function(blocks: gr.Blocks, kind: str, name: str, sent: dict[str, Any]) -> BlockFunction:
    """Return the function of a call. Raises HTTPException if there is none, or if it runs in the page alone."""
    number = None if kind == "call" else sent.get("fn_index")  # of Gradio's routes only `call` ignores a number
    by_name = (function for function in blocks.fns.values() if function.api_name == name)
    if kind == "queue" or number is not None:
        function = blocks.fns.get(number) if isinstance(number, int) else None
    else:
        function = next(by_name, None)
    public = [f"/{known.api_name}" for known in blocks.fns.values() if known.api_visibility == "public"]
    choices = f"choose {', '.join(public[:MAX_NAMED])}"
    if function is None:
        line = f"There is no endpoint {str(number if kind == 'queue' else f'/{name}')[:60]}; {choices}."
        raise HTTPException(HTTPStatus.NOT_FOUND, line.encode("utf-8", "replace").decode())
    if function.fn is None:
        raise invalid(f"/{function.api_name} runs in the page alone; {choices}.")
    return function


def parameters_of(function: BlockFunction) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of an endpoint's function by name."""
    return inspect.signature(function.fn).parameters if callable(function.fn) else {}


def check_values(function: BlockFunction, values: list[Any]) -> None:
    """Raise HTTPException for a wrong number of values."""
    if function.inputs and all(isinstance(field, Api) for field in function.inputs):
        names = list(parameters_of(function))
    else:
        names = [getattr(field, "label", None) or type(field).__name__ for field in function.inputs]
    shown = [name for name, field in zip(names, function.inputs, strict=True) if not field.skip_api]
    if len(values) not in (len(names), len(shown)):
        listed = f" ({', '.join(shown)})" if shown else ""
        raise invalid(f"/{function.api_name} takes {counted(len(shown), 'value')}{listed}, not {len(values)}.")
