"""Answers that wait for their client: bounded in bytes and age, where Gradio keeps them without end."""

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
SECONDS = 600.0  # that an answer waits
MESSAGE_BYTES = 500  # of a message without an answer
MOST_ENDS = 32  # calls of a session whose clients learn that their answer was dropped
LINE = "The answer was not fetched in time, or was too large to be kept; call again."


def bound_answers(blocks: gr.Blocks) -> None:
    """Have an app, whose queue is set up and not yet in use, keep its answers in `Mailboxes`."""
    queue: Any = blocks._queue  # asks of its mapping what any dictionary can
    queue.pending_messages_per_session = Mailboxes(
        queue.pending_event_ids_session, lambda session: drop_copies(blocks, session)
    )


def drop_copies(blocks: gr.Blocks, session: str | None) -> None:
    """Drop what Gradio keeps of sessions and nobody needs, such as one that was made for a single call.

    Of the others these are copies of all fields, for links that this app has not: settings, last inputs, last answers.
    """
    held = blocks.state_holder
    if session is not None:
        held.session_data.pop(session, None)
        held.time_last_used.pop(session, None)
    for state in list(held.session_data.values()):
        state.config_values.clear()


class Mailbox(asyncio.Queue[EventMessage]):
    """The messages to a session that it has not read, with their sizes."""

    def __init__(self, session: str, boxes: Mailboxes) -> None:
        super().__init__()
        self._session, self._boxes = session, boxes
        self._sizes: deque[int] = deque()
        self.size, self.used = 0, time.monotonic()  # bytes; when it was made or last looked at by its session

    async def get(self) -> EventMessage:
        """Wait for the next message."""
        self._boxes.read(self._session, self)
        return await super().get()

    def get_nowait(self) -> EventMessage:
        """The next message, or QueueEmpty."""
        message = super().get_nowait()
        self._add(-self._sizes.popleft())
        return message

    def put_nowait(self, item: EventMessage) -> None:
        """Keep a message, and drop what Gradio keeps beside it, what waits too long and what is too large."""
        if isinstance(item, ProcessCompletedMessage):
            self._boxes.ended(self._session if item.event_id == self._session else None)
        self._sizes.append(size_of(item))
        self._add(self._sizes[-1])
        super().put_nowait(item)
        self._boxes.shorten(self)

    def drop(self) -> None:
        """Keep of the messages the ends of the latest calls alone, and of their answers that they are gone."""
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
        """The messages, which are taken out."""
        return [self.get_nowait() for _ in range(self.qsize())]

    def _add(self, size: int) -> None:
        self.size += size
        self._boxes.size += size


class Mailboxes(dict[str, Mailbox]):
    """The sessions' mailboxes in place of Gradio's queues, the one that was not looked at for longest first."""

    def __init__(self, events: dict[str, set[str]], ended: Callable[[str | None], object]) -> None:
        """`events` are the calls of each session whose answers wait. `ended` is called whenever one of them is there.

        It gets the session of a call that was made without one, which is called as the call is.
        """
        super().__init__()
        self._events, self.ended, self.size = events, ended, 0

    def __setitem__(self, session: str, value: Any) -> None:
        """Give a session a new mailbox, in place of the queue that Gradio made for it."""
        while len(self) >= MOST_SESSIONS:
            oldest = next(iter(self))
            del self[oldest]
            self._events.pop(oldest, None)
        super().__setitem__(session, Mailbox(session, self))

    def __missing__(self, session: str) -> asyncio.Queue[EventMessage]:
        """What is said to a session that left goes nowhere."""
        return asyncio.Queue()

    def __delitem__(self, session: str) -> None:
        """Drop a session's mailbox; twice where two streams of it end at once."""
        if box := self.pop(session, None):
            box.emptied()

    def forget(self, session: str, event: str | None) -> None:
        """Drop a call of a session, which then waits for one less."""
        self._events.get(session, set()).discard(event or "")

    def read(self, session: str, box: Mailbox) -> None:
        """Note that a session waits for a message of its mailbox."""
        box.used = time.monotonic()
        if self.get(session) is box:
            super().__setitem__(session, self.pop(session))

    def shorten(self, latest: Mailbox) -> None:
        """Drop what is too old, too large in the latest mailbox, or too large of all, then the longest unread first."""
        if latest.size > SESSION_BYTES:
            latest.drop()
        due = time.monotonic() - SECONDS
        for box in self.values():
            if box.used > due and self.size <= ALL_BYTES:
                break
            box.drop()


def size_of(message: EventMessage) -> int:
    """About how many bytes a message takes as JSON."""
    output = getattr(message, "output", None)
    return MESSAGE_BYTES + (len(orjson.dumps(output, default=str)) if output else 0)
