"""One training of a visitor: its folder, its process, and what is known of it so far."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from cse.adaptation.choice import PROJECTION, START, UNMEASURED
from cse.adaptation.workspace import CANDIDATE, MARK_FILE, REPORT
from cse.app.models.models import error_line
from cse.app.models.visitors import Client
from cse.app.training.archive import add_export, write_archive
from cse.app.training.process import CommandProcess
from cse.app.training.request import ADAPT, MODEL, Made, TrainingRequest, steps_of
from cse.app.training.rules import CLOSED
from cse.files.writing import partial_folder, read_json
from cse.training.listing import RunRecord, read_run

log = logging.getLogger(__name__)
POLL = 1.0  # seconds between two looks at the process
GRACE = 120.0  # seconds beyond its minutes, in which an adaptation ends by itself
PATIENCE = 20.0  # seconds in which an interrupted process ends by itself
INSIDE = "training"  # the folder of the run within that of an unfinished adaptation
JUDGE = "Compare the two on your own texts, by votes, before you use it."
TO_JUDGE = "to judge"
ASKED = "training takes about "  # the command's line before the stage of minutes


@dataclass(frozen=True)
class Progress:
    """Steps taken and those of the whole run (0: unknown yet), losses and guard's scores by step, and the first score.

    `rate` is the time of a step in seconds; `stages` are the finished ones of an adaptation.
    """

    step: int = 0
    steps: int = 0
    losses: Sequence[tuple[int, float]] = ()
    scores: Sequence[tuple[int, float]] = ()
    start: float | None = None
    rate: float | None = None
    stages: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float | None:
        """The seconds of the steps to come, or None if unknown."""
        return None if self.rate is None or not self.steps else self.rate * (self.steps - self.step)

    @property
    def answered(self) -> bool:
        """True if an adaptation has a first answer."""
        return PROJECTION in self.stages


def read_progress(folder: Path) -> Progress:
    """Return the progress in the folder of a training."""
    output = folder / MODEL
    work = partial_folder(output)
    stages: Mapping[str, Any] = {}
    with suppress(ValueError, OSError, KeyError):
        stages = read_json(work / MARK_FILE)["stages"]
    for place in (work, work / INSIDE, partial_folder(work / INSIDE), output):
        with suppress(ValueError, OSError):  # not begun, replaced at this moment, or damaged: the command says so
            run = read_run(place, place.name)
            if run.log:
                return progress_of(run, stages)
    return Progress(stages=stages)


def progress_of(run: RunRecord, stages: Mapping[str, Any]) -> Progress:
    """Return the progress of a run."""
    losses = [(entry["step"], entry["loss"]) for entry in run.log]
    scores = [(entry["step"], entry["dev"]) for entry in run.log if entry.get("dev") is not None]
    examples, size, epochs, most = (run.settings.get(key) for key in ("examples", "batch_size", "epochs", "max_steps"))
    steps = steps_of(examples, size, epochs, most) if examples and size and epochs else 0
    rate = None if run.seconds is None else run.seconds / len(run.log)
    return Progress(losses[-1][0], steps, losses, scores, run.dev.get("start"), rate, stages)


@dataclass(frozen=True)
class Outcome:
    """`sentence` is the one verdict; an adaptation has a `report` of its candidates on both axes."""

    sentence: str
    models: Sequence[Made]
    report: Mapping[str, Any] | None = None


def outcome_of(request: TrainingRequest, folder: Path) -> Outcome:
    """Return the outcome in the folder of a finished training. Raises ArtefactError if it is damaged."""
    output = folder / MODEL
    if request.method == ADAPT:
        report = read_json(output / REPORT)
        result = [] if report["decision"] == START else [Made(request.name, output)]
        judged = [Made(f"{request.name}, {TO_JUDGE}", output / CANDIDATE)] if report["candidate"] else []
        return Outcome(report["verdict"], [*result, *judged], report)
    run = read_run(output, MODEL)
    return Outcome(conclusion(run.dev), [Made(request.name, run.path)])


def conclusion(dev: Mapping[str, Any]) -> str:
    """Return what is known of a model trained as published: whether it collapsed, and nothing of better or worse."""
    start, best = dev.get("start"), dev.get("best")
    if start is None or best is None:
        return f"{UNMEASURED} Trained to the last step. {JUDGE}"
    guard = f"the guard's score is {best:.1f} at best, {start:.1f} before training"
    if best <= start:
        return f"{UNMEASURED} No better by the guard: {guard}. Keep the start, or judge both on your texts."
    return f"{UNMEASURED} The run did not collapse: {guard}. {JUDGE}"


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
            if left and self.request.method == ADAPT:  # whatever ended it, the best so far is kept
                again = self._watched(self.request.words(finish=True), finishing=True)
                failure = failure or again
            if self._published:  # a published model is whole, whatever ended the process
                ended = "" if self._stopping.is_set() or not left else failure
                self.failure, self.state = self._finish() or ended, State.FINISHED
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
                reason = "" if finishing else self._reason_to_end()
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
