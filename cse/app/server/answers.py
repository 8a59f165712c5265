"""Bounds in bytes and age for answers that wait for their client, which Gradio keeps without limit."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import gradio as gr
import orjson
from gradio.server_messages import EventMessage, ProcessCompletedMessage

MOST_SESSIONS = 1000
SESSION_BYTES, ALL_BYTES = 8 * 2**20, 16 * 2**20  # as JSON; lists of numbers take about three times as much memory
SECONDS = 600.0  # that an unread answer is kept
MESSAGE_BYTES = 500  # of a message without an answer
MOST_ENDS = 32  # calls of a session that get an error for a dropped answer
LINE = "The answer was not fetched in time, or was too large to be kept; call again."


def bound_answers(blocks: gr.Blocks) -> None:
    """Store an app's answers in `Mailboxes`. The queue must be set up and unused."""
    queue: Any = blocks._queue  # uses its mapping as a plain dictionary
    queue.pending_messages_per_session = Mailboxes(
        queue.pending_event_ids_session, lambda session: drop_copies(blocks, session)
    )


def drop_copies(blocks: gr.Blocks, session: str | None) -> None:
    """Drop Gradio's unused data of sessions: all of `session`, which was made for a single call, and copies of others.

    The copies hold each field's settings, last input and last answer for deep links, which this app does not have.
    """
    held = blocks.state_holder
    if session is not None:
        held.session_data.pop(session, None)
        held.time_last_used.pop(session, None)
    for state in list(held.session_data.values()):
        state.config_values.clear()


class Mailbox(asyncio.Queue[EventMessage]):
    """The unread messages to a session, with their sizes."""

    def __init__(self, session: str, boxes: Mailboxes) -> None:
        super().__init__()
        self._session, self._boxes = session, boxes
        self._sizes: deque[int] = deque()
        self.size, self.used = 0, time.monotonic()  # bytes; when it was made or last read

    async def get(self) -> EventMessage:
        """Wait for the next message."""
        self._boxes.read(self._session, self)
        return await super().get()

    def get_nowait(self) -> EventMessage:
        """Return the next message. Raises QueueEmpty without one."""
        message = super().get_nowait()
        self._add(-self._sizes.popleft())
        return message

    def put_nowait(self, item: EventMessage) -> None:
        """Store a message; drop Gradio's copies, and messages that are too old or too large."""
        if isinstance(item, ProcessCompletedMessage):
            self._boxes.ended(self._session if item.event_id == self._session else None)
        self._sizes.append(size_of(item))
        self._add(self._sizes[-1])
        super().put_nowait(item)
        self._boxes.shorten(self)

    def drop(self) -> None:
        """Replace the messages by errors for the latest `MOST_ENDS` completed calls."""
        if self.size <= MESSAGE_BYTES * MOST_ENDS:
            return
        ended = [message for message in self.emptied() if isinstance(message, ProcessCompletedMessage)]
        for message in ended[:-MOST_ENDS]:
            self._boxes.forget(self._session, message.event_id)
        for message in ended[-MOST_ENDS:]:
            lost = {"error": LINE, "visible": True, "duration": 10, "title": "Error"}
            self._sizes.append(MESSAGE_BYTES)
            self._add(MESSAGE_BYTES)
            super().put_nowait(message.model_copy(update={"output": lost, "success": False}))

    def emptied(self) -> list[EventMessage]:
        """Remove and return all messages."""
        return [self.get_nowait() for _ in range(self.qsize())]

    def _add(self, size: int) -> None:
        self.size += size
        self._boxes.size += size


class Mailboxes(dict[str, Mailbox]):
    """The sessions' mailboxes in place of Gradio's queues, least recently read first."""

    def __init__(self, events: dict[str, set[str]], ended: Callable[[str | None], object]) -> None:
        """`events` are the calls of each session whose answers wait. `ended` is called for each completed call.

        Its argument is the session of a call made without one, whose name is the call's id; None for other calls.
        """
        super().__init__()
        self._events, self.ended, self.size = events, ended, 0

    def __setitem__(self, session: str, value: Any) -> None:
        """Give a session a new mailbox in place of Gradio's queue."""
        while len(self) >= MOST_SESSIONS:
            oldest = next(iter(self))
            del self[oldest]
            self._events.pop(oldest, None)
        super().__setitem__(session, Mailbox(session, self))

    def __missing__(self, session: str) -> asyncio.Queue[EventMessage]:
        """Return a queue that discards the messages to a closed session."""
        return asyncio.Queue()

    def __delitem__(self, session: str) -> None:
        """Drop a session's mailbox, if it has one; two streams that end at once both do."""
        if box := self.pop(session, None):
            box.emptied()

    def forget(self, session: str, event: str | None) -> None:
        """Drop a call of a session."""
        self._events.get(session, set()).discard(event or "")

    def read(self, session: str, box: Mailbox) -> None:
        """Mark a mailbox as read now."""
        box.used = time.monotonic()
        if self.get(session) is box:
            super().__setitem__(session, self.pop(session))

    def shorten(self, latest: Mailbox) -> None:
        """Drop messages that are too old, or beyond the bounds of `latest` or of all, longest unread first."""
        if latest.size > SESSION_BYTES:
            latest.drop()
        due = time.monotonic() - SECONDS
        for box in self.values():
            if box.used > due and self.size <= ALL_BYTES:
                break
            box.drop()


def size_of(message: EventMessage) -> int:
    """Return the approximate size of a message as JSON, in bytes."""
    output = getattr(message, "output", None)
    return MESSAGE_BYTES + (len(orjson.dumps(output, default=str)) if output else 0)
