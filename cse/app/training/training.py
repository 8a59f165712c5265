"""One training of a visitor: its folder, its process, and what is known of it so far."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from threading import Event, Lock, Thread

from cse.app.models.models import error_line
from cse.app.models.visitors import Client
from cse.app.training.archive import add_export, write_archive
from cse.app.training.outcome import Made, Outcome, outcome_of
from cse.app.training.process import CommandProcess
from cse.app.training.progress import Progress, read_progress
from cse.app.training.request import ADAPT, MODEL, TrainingRequest
from cse.app.training.rules import CLOSED

log = logging.getLogger(__name__)
POLL = 1.0  # seconds between two looks at the process
GRACE = 120.0  # seconds beyond its minutes, in which an adaptation ends by itself
PATIENCE = 20.0  # seconds in which an interrupted process ends by itself
ASKED = "training takes about "  # the command's line before the stage of minutes


class State(str, Enum):
    """States of a training."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    FINISHED = "finished"


class Training:
    """A training in a private `folder`; `progress`, `failure` and `outcome` are the newest known."""

    def __init__(self, request: TrainingRequest, folder: Path, most_bytes: int) -> None:
        """Write the texts. Raises OSError if it cannot."""
        self.request, self.folder = request, folder
        self.state, self.failure, self.seconds = State.STOPPED, "", 0.0
        self.lines: Sequence[str] = ()
        self.progress = Progress()
        self.outcome: Outcome | None = None
        self.process: CommandProcess | None = None
        self.continued = False  # the visitor has seen the first answer, and wants the stage of minutes
        self.used = 0.0  # by the clock of `Trainings`
        self.rules = CLOSED  # of its start, as the client
        self.client: Client | None = None
        self._most_bytes, self._lock = most_bytes, Lock()
        self._stopping, self._deleting = Event(), Event()
        self._thread: Thread | None = None
        request.write_texts(folder)
        (folder / "temporary").mkdir()

    @property
    def running(self) -> bool:
        """True while its process works."""
        return self.state is State.RUNNING

    @property
    def stopping(self) -> bool:
        """True if it was told to end, and has not yet."""
        return self.running and self._stopping.is_set()

    @property
    def asks(self) -> str:
        """The command's line on what the stage of minutes takes and may add, until the visitor has answered it."""
        said = next((line for line in reversed(self.lines) if line.startswith(ASKED)), "")
        waits = self.running and self.progress.answered and not (self.continued or self.stopping)
        return said if waits else ""

    @property
    def _published(self) -> bool:
        """True if the command has published its result, which it does in one step."""
        return (self.folder / MODEL).is_dir()

    def begin(self) -> None:
        """Start the process."""
        self.state = State.RUNNING
        self._thread = Thread(target=self._run, name="training", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the process soon; an adaptation that has a first answer ends with the best so far."""
        self._stopping.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the process; return True if it has ended."""
        if self._thread is not None:
            self._thread.join(seconds)
        return not self.running

    def delete(self) -> None:
        """End the process at once and delete the folder."""
        self._deleting.set()
        while self.running:
            if self.process is not None:
                self.process.end(0)
            self.wait(POLL / 10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def archive(self, made: Made) -> Path:
        """Return a .zip of a model that it made, written at the first call. Raises OSError if it cannot."""
        target = self.folder / f"{self.request.slug if made.folder.name == MODEL else made.folder.name}.zip"
        with self._lock:
            if not target.is_file():
                write_archive(made.folder, target, target.stem)
        return target

    def _run(self) -> None:
        try:
            failure = self._watched(self.request.words())
            left = not self._published and self.progress.answered and not self._deleting.is_set()
            if self._stopping.is_set() and left and self.request.method == ADAPT:
                failure = self._watched(self.request.words(finish=True), finishing=True)
            if self._published:  # a published model is whole, whatever ended the process
                self.failure, self.state = self._finish(), State.FINISHED
            elif self._stopping.is_set() or self._deleting.is_set():
                self.state = State.STOPPED
            else:
                self.failure, self.state = failure, State.FAILED
        except Exception as error:  # the thread has no caller to raise to
            if not isinstance(error, (ValueError, OSError)):
                log.exception("a training failed")
            self.failure, self.state = error_line(error), State.FAILED

    def _watched(self, words: Sequence[str], *, finishing: bool = False) -> str:
        """Run a command to its end, and return why it failed; empty if it did not."""
        began, earlier = time.monotonic(), self.seconds
        process, reason, interrupted = self._start(words), "", 0.0
        try:
            while not process.ended(POLL):
                self.seconds, self.lines = earlier + time.monotonic() - began, tuple(process.lines)
                self.progress = read_progress(self.folder)
                reason = self._reason_to_end()
                if self._stopping.is_set() and not finishing and not interrupted:
                    process.interrupt()
                    interrupted = time.monotonic()
                late = interrupted and time.monotonic() - interrupted > PATIENCE
                if reason or late or self._deleting.is_set():
                    process.end()
        finally:
            process.end()
        if not self._published:
            self.progress = read_progress(self.folder)
        return error_line(ValueError(reason or process.failure)) if reason or process.failure else ""

    def _start(self, words: Sequence[str]) -> CommandProcess:
        self.process = CommandProcess(words, self.folder)
        return self.process

    def _reason_to_end(self) -> str:
        """Return why the process has to end now; empty if it may go on."""
        if self.seconds > 60 * self.request.minutes + GRACE:
            return f"It took longer than the {self.request.minutes:g} minutes that it was given; give fewer texts."
        if size_of(self.folder) > self._most_bytes:
            return f"It wrote more than the {self._most_bytes / 1e9:.1f} GB that a run may take on this server."
        return ""

    def _finish(self) -> str:
        """Set the outcome, and return why the model could not be exported; empty if it could."""
        outcome, failure = outcome_of(self.request, self.folder), ""
        if outcome.models:
            try:
                add_export(outcome.models[0].folder, self.folder, self._start)
            except (ValueError, OSError) as error:
                failure = error_line(error)
        self.outcome = outcome
        return failure


def size_of(folder: Path) -> int:
    """Return the bytes of the files in a folder, those that vanish meanwhile left out."""
    total = 0
    for place, _, names in os.walk(folder):  # passes over folders that vanish
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total
