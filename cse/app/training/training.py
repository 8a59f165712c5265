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
from cse.app.training.changes import Changes, Comparison
from cse.app.training.outcome import Made, Outcome, outcome_of
from cse.app.training.process import CommandProcess
from cse.app.training.progress import Progress, read_progress
from cse.app.training.request import MODEL, TrainingRequest
from cse.app.training.rules import CLOSED
from cse.files.writing import partial_folder

log = logging.getLogger(__name__)
POLL = 1.0  # seconds between two looks at the process
GRACE = 120.0  # seconds beyond its minutes, in which an adaptation ends by itself


class State(str, Enum):
    """States of a training."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    FINISHED = "finished"


class Training:
    """A training in a private `folder`; `progress`, `changes`, `failure` and `outcome` are the newest known."""

    def __init__(self, request: TrainingRequest, folder: Path, most_bytes: int, expected: float | None = None) -> None:
        """Write the texts; `expected` are the seconds that it is estimated to take. Raises OSError if it cannot."""
        self.request, self.folder, self.expected = request, folder, expected
        self.state, self.failure, self.seconds = State.STOPPED, "", 0.0
        self.lines: Sequence[str] = ()
        self.progress, self.changes = Progress(), Changes()
        self.outcome: Outcome | None = None
        self.process: CommandProcess | None = None
        self.used = 0.0  # by the clock of `Trainings`
        self.rules = CLOSED  # of its start, as the client
        self.client: Client | None = None
        self._most_bytes, self._stopping, self._lock = most_bytes, Event(), Lock()
        self._comparison = Comparison.of(request.start, request.texts, request.labels)
        self._compared = 0  # time of the checkpoint that `changes` are of
        self._thread: Thread | None = None
        request.write_texts(folder)
        (folder / "temporary").mkdir()

    @property
    def running(self) -> bool:
        """True while its process works."""
        return self.state is State.RUNNING

    @property
    def resumable(self) -> bool:
        """True if it was stopped, or failed, before its time was over or after its model was published."""
        in_time = self.seconds <= 60 * self.request.minutes + GRACE
        return self.state in (State.STOPPED, State.FAILED) and (in_time or self._published)

    @property
    def _published(self) -> bool:
        """True if the command has published its result, which it does in one step."""
        return (self.folder / MODEL).is_dir()

    def begin(self) -> None:
        """Start the process, or continue what an earlier one left. Raises ValueError if it runs or is over."""
        with self._lock:
            if self.state is State.FINISHED:
                raise ValueError("This training is finished: its outcome is on this page. Start another one.")
            if not self.resumable:
                raise ValueError("This training runs already, or its time is over; start another one.")
            begun = partial_folder(self.folder / MODEL).exists()
            self._stopping.clear()
            self.state, self.failure = State.RUNNING, ""
        words = [*self.request.words(), *(["--resume"] if begun else [])]
        self._thread = Thread(target=self._run, args=(words,), name="training", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the process soon; the training can be resumed."""
        self._stopping.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the process; return True if it has ended."""
        if self._thread is not None:
            self._thread.join(seconds)
        return not self.running

    def delete(self) -> None:
        """End the process at once and delete the folder."""
        self.stop()
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

    def _run(self, words: list[str]) -> None:
        try:
            failure = "" if self._published else self._watched(words)
            if self._published or not failure:  # a published model is whole, whatever ended the process
                self.failure, self.state = self._finish(), State.FINISHED
            elif self._stopping.is_set():
                self.state = State.STOPPED
            else:
                self.failure, self.state = failure, State.FAILED
        except Exception as error:  # the thread has no caller to raise to
            if not isinstance(error, (ValueError, OSError)):
                log.exception("a training failed")
            self.failure, self.state = error_line(error), State.FAILED

    def _watched(self, words: Sequence[str]) -> str:
        """Run a command to its end, and return why it failed; empty if it did not."""
        began, earlier = time.monotonic(), self.seconds
        process, reason = self._start(words), ""
        try:
            while not process.ended(POLL):
                self.seconds, self.lines = earlier + time.monotonic() - began, tuple(process.lines)
                self._look()
                reason = self._reason_to_end()
                if reason or self._stopping.is_set():
                    process.end()
        finally:
            process.end()
        self._look()
        return error_line(ValueError(reason or process.failure)) if reason or process.failure else ""

    def _start(self, words: Sequence[str]) -> CommandProcess:
        self.process = CommandProcess(words, self.folder)
        return self.process

    def _look(self) -> None:
        """Read the progress, and compare the best checkpoint with the start if there is a new one."""
        self.progress = read_progress(self.folder) or self.progress
        best = self.progress.best
        with suppress(ValueError, OSError):  # replaced or published at this moment
            if best is not None and (written := best.stat().st_mtime_ns) != self._compared:
                self.changes, self._compared = self._comparison.with_model(best), written

    def _reason_to_end(self) -> str:
        """Return why the process has to end now; empty if it may go on."""
        if self.seconds > 60 * self.request.minutes + GRACE:
            return f"It took longer than the {self.request.minutes:g} minutes that it was given; give fewer texts."
        if size_of(self.folder) > self._most_bytes:
            return f"It wrote more than the {self._most_bytes / 1e9:.1f} GB that a run may take on this server."
        return ""

    def _finish(self) -> str:
        """Set the outcome, and return why the model could not be compared, or exported; empty if it could."""
        outcome, failure = outcome_of(self.request, self.folder, None), ""
        if outcome.models:
            folder = outcome.models[0].folder
            try:
                self.changes = self._comparison.with_model(folder)
                add_export(folder, self.folder, self._start)
            except (ValueError, OSError) as error:
                failure = error_line(error)
        self.outcome = outcome_of(self.request, self.folder, self.changes)
        return failure


def size_of(folder: Path) -> int:
    """Return the bytes of the files in a folder, those that vanish meanwhile left out."""
    total = 0
    for place, _, names in os.walk(folder):  # passes over folders that vanish
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total
