"""The event streams that clients hold open: of sessions that there are, and a few of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import gradio as gr
from gradio.server_messages import UnexpectedErrorMessage
from starlette.responses import JSONResponse, Response

PATH = "queue/data"  # follows `cse.app.server.calls.API`
MOST = 8  # of a session: a page has one, and a few that it left are noticed only seconds later
UNKNOWN, TOO_MANY = 404, 429


class Streams:
    """How many streams each session has open now."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def refusal(self, blocks: gr.Blocks, session: str) -> Response | None:
        """The answer to who may not open a stream of `session`; None for who may.

        To an unknown session Gradio says the same once its answer has begun, which it then breaks off and logs as
        several tracebacks. A stream of a session that waits for nothing stays open until its client leaves.
        """
        if session not in blocks._queue.pending_messages_per_session:
            line = "There is no such session, or it was forgotten; make a call first."
            told = UnexpectedErrorMessage(message=line, session_not_found=True)  # on which a page connects anew
            return Response(f"data: {told.model_dump_json()}\n\n", UNKNOWN, media_type="text/event-stream")
        if self._open[session] >= MOST:
            line = f"This session has {MOST} streams open; close one."
            return JSONResponse({"detail": line}, TOO_MANY)
        return None

    @contextmanager
    def counted(self, session: str) -> Iterator[None]:
        """A stream of `session` is open for as long as this is."""
        self._open[session] += 1
        try:
            yield
        finally:
            self._open[session] -= 1
            if not self._open[session]:
                del self._open[session]
