"""Request bodies and uploaded files, bounded in size, in time, and in what clients hold together."""

from __future__ import annotations

import secrets
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import anyio
import gradio as gr
from gradio_client.utils import strip_invalid_filename_characters
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from cse.app.server.access import Scope
from cse.app.validation import MAX_FILE_BYTES

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

MAX_BODY = 4 * 2**20  # fits two texts of `validation.MAX_CHARACTERS` with every character escaped
SECONDS, UPLOAD_SECONDS = 30.0, 120.0  # from a request's head to the end of its body
MAX_UNFINISHED = 16 * 2**20, 64 * 2**20  # bytes of bodies on their way, of a client and of all
FORM = 2**16  # bytes of a multipart form around its file
MAX_KEPT = 4 * (MAX_FILE_BYTES + FORM), 32 * (MAX_FILE_BYTES + FORM)  # bytes of uploads, of a client and of all
AGE = 3600  # seconds that an unread file is kept


class Budget:
    """Amounts held by clients: at most `own` per client and `total` in all."""

    def __init__(self, own: int, total: int) -> None:
        self.own, self.total = own, total
        self._held: Counter[str] = Counter()

    def check(self, client: str, amount: int, what: str) -> None:
        """Raise HTTPException, 429 or 503, if `amount` more is beyond the client's bound or that of all."""
        if self._held[client] + amount > self.own:
            raise HTTPException(HTTPStatus.TOO_MANY_REQUESTS, f"This address has too many {what}; try again later.")
        if self._held.total() + amount > self.total:
            line = f"All clients together have too many {what}; try again later."
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, line)

    def add(self, client: str, amount: int) -> None:
        """Add `amount`, which may be negative, to what a client holds."""
        self._held[client] += amount
        if not self._held[client]:
            del self._held[client]

    @contextmanager
    def held(self, client: str, amount: int, what: str) -> Iterator[None]:
        """Hold `amount` for the client within this context. Raises HTTPException as `check` does."""
        self.check(client, amount, what)
        self.add(client, amount)
        try:
            yield
        finally:
            self.add(client, -amount)


def too_large(limit: int) -> HTTPException:
    """Return the error for more than `limit` bytes."""
    return HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The request has more than {limit:,} bytes; send less.")


def too_slow(seconds: float) -> HTTPException:
    """Return the error for a body that is incomplete after some seconds; the connection is closed."""
    line = f"The request's body was not complete after {seconds:.0f} seconds; send it again."
    return HTTPException(HTTPStatus.REQUEST_TIMEOUT, line, {"Connection": "close"})


def counted(receive: Receive, limit: int) -> Receive:
    """Return a `receive` that raises HTTPException after more than `limit` bytes."""
    size = 0

    async def next_message() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise too_large(limit)
        return message

    return next_message


async def read_body(receive: Receive, bodies: Budget, client: str) -> tuple[bytes, bool]:
    """Return a request's body, and False if the client disconnected before its end."""
    body, receive = bytearray(), counted(receive, MAX_BODY)
    try:
        with anyio.fail_after(SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return bytes(body), False
                part = message.get("body", b"")
                bodies.check(client, len(part), "unfinished requests")
                bodies.add(client, len(part))
                body += part
                if not message.get("more_body"):
                    return bytes(body), True
    except TimeoutError:
        raise too_slow(SECONDS) from None
    finally:
        bodies.add(client, -len(body))


class Uploads:
    """The files that wait to be read. Their reader deletes them, which frees room.

    Gradio would name a file's folder after its content, so two visitors with the same file would share a path that the
    first reader deletes.
    """

    def __init__(self, largest: int = MAX_FILE_BYTES, budget: Budget | None = None) -> None:
        """A file has at most `largest` bytes, and a form `limit`; one always has room in the default `budget`."""
        self.largest, self.limit = largest, largest + FORM
        self.budget = budget or Budget(*(max(size, self.limit) for size in MAX_KEPT))
        self.kept: dict[Path, tuple[int, str, float]] = {}  # size, client and time of arrival

    async def answer(self, scope: Scope, receive: Receive, client: str, announced: int) -> Response:
        """Store an upload and return its path in Gradio's JSON form. Raises HTTPException for a refusal."""
        blocks, folder = scope["app"].get_blocks(), Path(scope["app"].uploaded_file_dir)
        self.clear(blocks)
        with self.budget.held(client, announced or self.limit, "uploads that wait to be read"):
            file = await self._received(scope, receive, folder)
        size = file.stat().st_size
        self.kept[file] = size, client, time.monotonic()
        self.budget.add(client, size)
        blocks.upload_file_set.add(str(file))
        return JSONResponse([str(file)])

    def clear(self, blocks: gr.Blocks) -> None:
        """Drop the files that were read, and delete those unread for `AGE` seconds."""
        for file, (size, client, since) in list(self.kept.items()):
            if not file.is_file() or time.monotonic() - since > AGE:
                shutil.rmtree(file.parent, ignore_errors=True)
                del self.kept[file]
                self.budget.add(client, -size)
                blocks.upload_file_set.discard(str(file))

    async def _received(self, scope: Scope, receive: Receive, folder: Path) -> Path:
        """Store a form's file in a new folder within `folder`, and return its path."""
        request = Request(scope, counted(receive, self.limit))
        try:
            with anyio.fail_after(UPLOAD_SECONDS):
                form = await request.form(max_files=1, max_fields=1)
            try:
                file = form.get("files")
                if not isinstance(file, UploadFile):
                    raise HTTPException(HTTPStatus.BAD_REQUEST, "The form has no file called files.")
                if (file.size or 0) > self.largest:
                    raise too_large(self.largest)
                name = strip_invalid_filename_characters(Path(file.filename or "").name)
                path = folder / secrets.token_hex(16) / (name if name.strip(".") else "file")
                await anyio.to_thread.run_sync(store, file.file, path)
                return path
            finally:
                await form.close()
        except TimeoutError:
            raise too_slow(UPLOAD_SECONDS) from None
        except ClientDisconnect:  # nobody receives the response
            raise HTTPException(HTTPStatus.BAD_REQUEST, "The client left.") from None
        except OSError as error:  # a large file is spooled to the disk first
            line = f"The file cannot be stored here ({error.strerror or error}); try again later."
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, line) from error


def store(source: Any, path: Path) -> None:
    """Copy a file to `path`, in a new folder. Raises OSError, and leaves nothing, if it cannot be written."""
    try:
        path.parent.mkdir(parents=True)
        with path.open("wb") as target:
            shutil.copyfileobj(source, target)
    except OSError:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise
