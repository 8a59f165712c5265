"""Refusals of event streams: known sessions only, and at most `MOST` of each."""

from __future__ import annotations

from http import HTTPStatus

import gradio as gr
from gradio.server_messages import UnexpectedErrorMessage
from starlette.responses import JSONResponse, Response

from cse.app.server.budget import Budget

PATH = "queue/data"  # follows `cse.app.server.calls.API`
MOST = 8  # of a session: a page has one, and closed ones are noticed only after seconds


def refused_stream(blocks: gr.Blocks, session: str, streams: Budget) -> Response | None:
    """Return the refusal of a new stream of `session`; None if it is allowed. `streams` are those open by session.

    For an unknown session Gradio sends the same message, but breaks off the response and logs several tracebacks. A
    stream of a session that waits for nothing stays open until its client disconnects.
    """
    if session not in blocks._queue.pending_messages_per_session:
        line = "There is no such session, or it was forgotten; make a call first."
        event = UnexpectedErrorMessage(message=line, session_not_found=True)  # makes a page reconnect
        return Response(f"data: {event.model_dump_json()}\n\n", HTTPStatus.NOT_FOUND, media_type="text/event-stream")
    if streams.exceeded(session):
        line = f"This session has {MOST} streams open; close one."
        return JSONResponse({"detail": line}, HTTPStatus.TOO_MANY_REQUESTS)
    return None
