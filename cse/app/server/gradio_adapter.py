"""Everything that this app needs of Gradio 6.31 beyond its public interface; docs/decisions.md has the reasons."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

import gradio as gr
import orjson
from gradio.context import LocalContext
from gradio.server_messages import EventMessage, ProcessCompletedMessage

MAX_SESSIONS, SECONDS = 1000, 600.0  # that have a mailbox; that an unread answer is kept
MAX_BYTES = 16 * 2**20  # of unread answers, as JSON; lists of numbers take about three times as much memory
MESSAGE_BYTES = 500  # without an answer
POLL, PROGRESS_POLL = 0.02, 0.1  # seconds between looks at the queue; Gradio's .001 and .01 take 6 % of a core at rest


def current_request() -> Any:
    """Return the current `gr.Request`; None outside of one, as while the page is built."""
    return LocalContext.request.get(None)


def client_left() -> bool:
    """True if the client of the current request has disconnected."""
    blocks, number = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    event = blocks._queue.event_ids_to_events.get(number) if blocks is not None and number is not None else None
    return event is not None and not event.alive


def data_of(event: gr.EventData) -> dict[str, Any]:
    """Return the object that the page's script sent with an event, unchecked; an empty one for anything else."""
    return event._data if isinstance(event._data, dict) else {}


def knows_session(blocks: gr.Blocks, session: str) -> bool:
    """True if messages to a session are kept."""
    return session in blocks._queue.pending_messages_per_session


def knows_call(blocks: gr.Blocks, number: str) -> bool:
    """True if a call waits, runs, or has an answer that was not fetched."""
    waiting = list(blocks._queue.pending_event_ids_session.items())
    return any(number in calls and knows_session(blocks, session) for session, calls in waiting)


def set_up_queue(blocks: gr.Blocks) -> None:
    """Make an unused queue look for work less often, and bound the unread answers that it keeps."""
    queue: Any = blocks._queue  # uses its mapping of messages as a plain dictionary
    queue.sleep_when_free, queue.progress_update_sleep_when_free = POLL, PROGRESS_POLL
    queue.pending_messages_per_session = Mailboxes(blocks)


class Mailbox(asyncio.Queue[EventMessage]):
    """The unread messages to a session, their sizes in bytes, and the time when it was made or last read."""

    def __init__(self, session: str, boxes: Mailboxes) -> None:
        super().__init__()
        self.session, self.boxes, self.used = session, boxes, time.monotonic()
        self.sizes: deque[int] = deque()

    async def get(self) -> EventMessage:
        """Wait for the next message."""
        self.used = time.monotonic()
        if self.boxes.get(self.session) is self:
            dict.__setitem__(self.boxes, self.session, self.boxes.pop(self.session))  # to the end
        return await super().get()

    def get_nowait(self) -> EventMessage:
        """Return the next message. Raises QueueEmpty without one."""
        message = super().get_nowait()
        self.boxes.size -= self.sizes.popleft()
        return message

    def put_nowait(self, item: EventMessage) -> None:
        """Store a message, for which older ones may have to go, and drop Gradio's copies of all fields."""
        output = getattr(item, "output", None)
        self.sizes.append(MESSAGE_BYTES + (len(orjson.dumps(output, default=str)) if output else 0))
        self.boxes.size += self.sizes[-1]
        super().put_nowait(item)
        self.boxes.shorten(self)
        held = self.boxes.blocks.state_holder
        if isinstance(item, ProcessCompletedMessage):
            if item.event_id == self.session:  # of a call without a session
                held.session_data.pop(self.session, None)
                held.time_last_used.pop(self.session, None)
            for state in list(held.session_data.values()):
                state.config_values.clear()


class Mailboxes(dict[str, Mailbox]):
    """The sessions' mailboxes in place of Gradio's queues, least recently read first; `size` is that of all."""

    def __init__(self, blocks: gr.Blocks) -> None:
        super().__init__()
        self.blocks, self.calls, self.size = blocks, blocks._queue.pending_event_ids_session, 0

    def __setitem__(self, session: str, value: Any) -> None:
        while len(self) >= MAX_SESSIONS:
            del self[next(iter(self))]
        super().__setitem__(session, Mailbox(session, self))

    def __missing__(self, session: str) -> asyncio.Queue[EventMessage]:
        return asyncio.Queue()  # nobody reads it

    def __delitem__(self, session: str) -> None:
        box = self.pop(session, None)  # two streams that end at once both delete it
        while box is not None and not box.empty():
            box.get_nowait()
        self.calls.pop(session, None)

    def shorten(self, latest: Mailbox) -> None:
        """Forget sessions that were not read lately or, longest unread first, while all have too many bytes."""
        for session, box in list(self.items()):
            if self.size <= MAX_BYTES and box.used > time.monotonic() - SECONDS:
                break
            if box is not latest or box.qsize() > 1:
                del self[session]
