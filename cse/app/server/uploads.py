"""Uploaded files: a path for each upload, bounds per client and in all, and expiry."""

from __future__ import annotations

import secrets
import shutil
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import gradio as gr
from gradio_client.utils import strip_invalid_filename_characters
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from cse.app.server.bodies import Receive, Scope, counted, too_large, too_slow
from cse.app.server.budget import Budget
from cse.app.validation import MAX_FILE_BYTES

PATH, PROGRESS = "upload", "upload_progress"  # follow `cse.app.server.calls.API`
FORM = 2**16  # bytes of a multipart form around its file
MOST_UPLOAD = MAX_FILE_BYTES + FORM
MOST_KEPT = 4 * MOST_UPLOAD, 32 * MOST_UPLOAD  # bytes, of a client and of all
SECONDS = 120.0  # from the head of an upload to its end
AGE = 3600  # seconds that an unread file is kept


class Kept(NamedTuple):
    """A stored file: path, size in bytes, client, and time of arrival."""

    path: Path
    size: int
    client: str
    since: float


class Uploads:
    """The files that wait to be read. Their reader deletes them, which frees room.

    Gradio would name a file's folder after its content, so two visitors with the same file would share a path that the
    first reader deletes.
    """

    def __init__(self, largest: int = MAX_FILE_BYTES, budget: Budget | None = None) -> None:
        """A file has at most `largest` bytes, and a form `most`; one always has room in the default `budget`."""
        self.largest, self.most = largest, largest + FORM
        self.budget = budget or Budget(*(max(most, self.most) for most in MOST_KEPT))
        self.kept: list[Kept] = []

    async def answer(self, scope: Scope, receive: Receive, client: str, announced: int) -> Response:
        """Store an upload and return its path in Gradio's JSON form. Raises HTTPException for a refusal.

        `announced` is the length of the request, 0 if unknown.
        """
        blocks, folder = scope["app"].get_blocks(), Path(scope["app"].uploaded_file_dir)
        self.clear(blocks)
        expected = announced or self.most
        if (status := self.budget.exceeded(client, expected)) is not None:
            whose = "your address" if status == HTTPStatus.TOO_MANY_REQUESTS else "all visitors"
            raise HTTPException(status, f"The other uploads of {whose} leave no room; use them, or try later.")
        with self.budget.held(client, expected):
            file = await received(scope, receive, folder, self.largest)
        self.kept.append(Kept(file, file.stat().st_size, client, time.monotonic()))
        self.budget.add(client, self.kept[-1].size)
        blocks.upload_file_set.add(str(file))
        return JSONResponse([str(file)])

    def clear(self, blocks: gr.Blocks) -> None:
        """Drop the files that were read, and delete those unread for `AGE` seconds."""
        for file in list(self.kept):
            if file.path.is_file() and time.monotonic() - file.since <= AGE:
                continue
            shutil.rmtree(file.path.parent, ignore_errors=True)
            self.kept.remove(file)
            self.budget.add(file.client, -file.size)
            blocks.upload_file_set.discard(str(file.path))


async def received(scope: Scope, receive: Receive, folder: Path, largest: int) -> Path:
    """Store a form's file of at most `largest` bytes in a new folder within `folder`, and return its path."""
    try:
        with anyio.fail_after(SECONDS):
            form = await Request(scope, counted(receive, largest + FORM)).form(max_files=1, max_fields=1)
    except TimeoutError:
        raise too_slow(SECONDS) from None
    except ClientDisconnect:  # nobody receives the response
        raise HTTPException(HTTPStatus.BAD_REQUEST, "The client left.") from None
    except OSError as error:  # a large file is spooled to the disk meanwhile
        raise not_stored(error) from error
    try:
        file = form.get("files")
        if not isinstance(file, UploadFile):
            raise HTTPException(HTTPStatus.BAD_REQUEST, "The form has no file called files.")
        if (file.size or 0) > largest:
            raise too_large(largest)
        name = strip_invalid_filename_characters(Path(file.filename or "").name)
        path = folder / secrets.token_hex(16) / (name if name.strip(".") else "file")
        await anyio.to_thread.run_sync(store, file.file, path)
        return path
    finally:
        await form.close()


def store(source: Any, path: Path) -> None:
    """Copy a file to `path`, in a new folder. Raises HTTPException if it cannot be written."""
    try:
        path.parent.mkdir(parents=True)
        with path.open("wb") as target:
            shutil.copyfileobj(source, target)
    except OSError as error:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise not_stored(error) from error


def not_stored(error: OSError) -> HTTPException:
    """Return the refusal of a file that cannot be written, as on a full disk."""
    line = f"The file cannot be stored here ({error.strerror or error}); try again later."
    return HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, line)


def finished() -> Response:
    """Return the answer to a request for upload progress: done, since files are small."""
    return Response('data: {"msg": "done"}\n\n', media_type="text/event-stream")
