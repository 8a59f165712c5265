"""Bounds for open event streams: known sessions only, and at most `MOST` of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import gradio as gr
from gradio.server_messages import UnexpectedErrorMessage
from starlette.responses import JSONResponse, Response

PATH = "queue/data"  # follows `cse.app.server.calls.API`
MOST = 8  # of a session: a page has one, and closed ones are noticed only after seconds
UNKNOWN, TOO_MANY = 404, 429


class Streams:
    """The number of open streams of each session."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def refusal(self, blocks: gr.Blocks, session: str) -> Response | None:
        """Return the refusal of a new stream of `session`; None if it is allowed.

        For an unknown session Gradio sends the same message, but breaks off the response and logs several tracebacks. A
        stream of a session that waits for nothing stays open until its client disconnects.
        """
        if session not in blocks._queue.pending_messages_per_session:
            line = "There is no such session, or it was forgotten; make a call first."
            event = UnexpectedErrorMessage(message=line, session_not_found=True)  # makes a page reconnect
            return Response(f"data: {event.model_dump_json()}\n\n", UNKNOWN, media_type="text/event-stream")
        if self._open[session] >= MOST:
            line = f"This session has {MOST} streams open; close one."
            return JSONResponse({"detail": line}, TOO_MANY)
        return None

    @contextmanager
    def counted(self, session: str) -> Iterator[None]:
        """Count a stream of `session` as open within this context."""
        self._open[session] += 1
        try:
            yield
        finally:
            self._open[session] -= 1
            if not self._open[session]:
                del self._open[session]
