"""The HTTP route that sends a file of the chosen corpus: vectors, index or table."""

from __future__ import annotations

import json
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cse.app.corpus.export import PATH
from cse.app.corpus.exports import Sent, taken
from cse.app.state.app_state import AppState

REFUSED = 422
FIELDS = ("kind", "corpus", "key", "model")


def file_route() -> Route:
    """Return the route; it answers a JSON object with the `FIELDS`, and refuses with one line, `detail`."""
    return Route(PATH, answer, methods=["POST"])


async def answer(request: Request) -> Response:
    """Return a file of a corpus of the app that received the request."""
    state: AppState = request.app.get_blocks().app_state
    try:
        asked = json.loads(await request.body())
        if not isinstance(asked, dict):
            raise ValueError(f"Send a JSON object with {', '.join(FIELDS)}.")
        sent: Sent = await run_in_threadpool(taken, state, *(asked.get(field) for field in FIELDS))
    except ValueError as error:
        return JSONResponse({"detail": str(error)}, REFUSED)
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(sent.name)}", "Cache-Control": "no-store"}
    return StreamingResponse(sent.parts, media_type=sent.kind, headers=headers)
