"""The HTTP route that sends the chosen corpus as a file."""

from __future__ import annotations

import json
from http import HTTPStatus
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cse.app.corpus.exports import Sent, taken
from cse.app.state.app_state import AppState

PATH = "/corpus/files"
FIELDS = ("kind", "corpus", "key", "model")


def file_route() -> Route:
    """Return the route; it answers a JSON object with the `FIELDS`, and refuses with one line, `detail`."""
    return Route(PATH, answer, methods=["POST"])


async def answer(request: Request) -> Response:
    """Return a file of a corpus of the app that received the request."""
    state: AppState = request.app.get_blocks().app_state
    try:
        body = json.loads(await request.body())
        if not isinstance(body, dict):
            raise ValueError(f"Send a JSON object with {', '.join(FIELDS)}.")
        sent: Sent = await run_in_threadpool(taken, state, *(body.get(field) for field in FIELDS))
    except (ValueError, RecursionError) as error:  # RecursionError: deeply nested lists
        return JSONResponse({"detail": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY)
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(sent.name)}", "Cache-Control": "no-store"}
    return StreamingResponse(sent.parts, media_type=sent.kind, headers=headers)
