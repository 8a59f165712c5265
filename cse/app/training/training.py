"""One training of a visitor: its folder, its command as a process of its own, and what is known of it so far."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import time
import zipfile
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import cse
from cse.adaptation.choice import PROJECTION, START, UNMEASURED
from cse.adaptation.workspace import CANDIDATE, MARK_FILE, REPORT
from cse.app.html import printed
from cse.app.models.models import error_line, without_paths
from cse.app.training.request import ADAPT, MODEL, Made, TrainingRequest, steps_of
from cse.encoder.devices import without_bound
from cse.encoder.processes import start_command
from cse.errors import command_line
from cse.files.writing import partial_folder, read_json
from cse.training.listing import read_run

log = logging.getLogger(__name__)
ROOT = Path(cse.__file__).parents[1]
NICE = 10  # the page comes first
POLL = 1.0  # seconds between two looks at the process
GRACE = 120.0  # seconds beyond its minutes, in which an adaptation ends by itself
PATIENCE, KILL_PATIENCE = 20.0, 10.0  # seconds to end after an interrupt, and after a request to end
MAX_LINES, MAX_LINE = 50, 1_000  # kept of its messages; characters of one
BAR = "%|"  # in a line of a progress bar
INSIDE = "training"  # the folder of the run within that of an unfinished adaptation
JUDGE = "Compare the two on your own texts, by votes, before you use it."
TO_JUDGE = "to judge"
ASKED = "training takes about "  # the command's line before the stage of minutes


class CommandProcess:
    """A running `cse` command in a folder that also holds its temporary files; `lines` are its last messages.

    It has its own process group, and ends with this process. Its messages go through a pipe, so that a full disk hides
    none of them.
    """

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self.lines: deque[str] = deque(maxlen=MAX_LINES)
        self._process = start_command(
            words, environment(folder), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            errors="replace", start_new_session=True,
        )  # fmt: skip
        self.pid = self._process.pid
        with suppress(OSError, AttributeError):  # it has ended, or Windows
            os.setpriority(os.PRIO_PROCESS, self.pid, NICE)
        self._reader = Thread(target=self._read, name="training messages", daemon=True)
        self._reader.start()

    def ended(self, seconds: float) -> bool:
        """Wait up to `seconds`; return True if the process has ended and all its messages were read."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join(KILL_PATIENCE)
        return True

    def interrupt(self) -> None:
        """Ask the process to end with what it has, as Ctrl-C does."""
        with suppress(OSError):
            self._process.send_signal(signal.SIGINT)

    def end(self, patience: float = KILL_PATIENCE) -> None:
        """End the process and those that it started, by SIGKILL if it does not within the seconds of `patience`."""
        if self.ended(0):
            return
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            with suppress(OSError):
                os.killpg(self.pid, number) if hasattr(os, "killpg") else self._process.send_signal(number)
            if self.ended(patience):
                return

    @property
    def failure(self) -> str:
        """Why it failed, in a line; empty if it did not."""
        code = self._process.returncode
        if not code:
            return ""
        if code < 0:
            return f"The training process was killed (signal {-code}); the machine may lack memory."
        error = next((line for line in reversed(tuple(self.lines)) if line.startswith("Error: ")), "")
        return error.removeprefix("Error: ") or f"The training process ended with code {code}."

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as messages:
            for line in messages:
                if (text := line.strip()) and BAR not in text:
                    self.lines.append(text[:MAX_LINE])


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a command that finds this project, with temporary copies of texts in `folder`.

    The app's limit of compiled kernels is not in it, which suits texts of many lengths, not training.
    """
    known = {name: value for name, value in without_bound(os.environ).items() if name != "CSE_DEBUG"}
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    temporary = {name: str(folder / "temporary") for name in ("TMPDIR", "HF_DATASETS_CACHE")}
    return {**known, **temporary, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True)
class Progress:
    """Steps done and those of the whole run, 0 while they are unknown, and the finished `stages` of an adaptation."""

    step: int = 0
    steps: int = 0
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
    for run_folder in (work, work / INSIDE, partial_folder(work / INSIDE), output):
        with suppress(ValueError, OSError):  # not begun, replaced at this moment, or damaged: the command says so
            run = read_run(run_folder, run_folder.name)
            if not run.log:
                continue
            examples, size, epochs = (run.settings.get(key) for key in ("examples", "batch_size", "epochs"))
            max_steps = run.settings.get("max_steps")
            steps = steps_of(examples, size, epochs, max_steps) if examples and size and epochs else 0
            rate = None if run.seconds is None else run.seconds / len(run.log)
            return Progress(run.log[-1]["step"], steps, rate, stages)
    return Progress(stages=stages)


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
        judged = [Made(f"{request.name} ({TO_JUDGE})", output / CANDIDATE)] if report["candidate"] else []
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

    def __init__(self, request: TrainingRequest, folder: Path) -> None:
        self.request, self.folder = request, folder
        self.state, self.failure, self.seconds = State.STOPPED, "", 0.0
        self.lines: Sequence[str] = ()
        self.progress = Progress()
        self.outcome: Outcome | None = None
        self.process: CommandProcess | None = None
        self.commands = [request.command]  # which repeat it
        self.dial: float | None = None  # of the model that was made last by turning it
        self.continued = False  # the visitor has seen the first answer, and wants the stage of minutes
        self._stopping, self._deleting, self._lock = Event(), Event(), Lock()
        self._thread: Thread | None = None
        request.write_texts(folder)
        (folder / "temporary").mkdir()

    @property
    def running(self) -> bool:
        """True while its process works."""
        return self.state is State.RUNNING

    @property
    def stopping(self) -> bool:
        """True if it was told to end, also after that."""
        return self._stopping.is_set()

    @property
    def asks(self) -> str:
        """The command's line on what the stage of minutes takes and may add, until the visitor has answered it."""
        waits = self.running and self.progress.answered and not (self.continued or self.stopping)
        return next((line for line in reversed(self.lines) if line.startswith(ASKED)), "") if waits else ""

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

    def turn(self, model: Made, dial: float) -> None:
        """Put one of its models first at another dial, which is the `dial` from now on."""
        from cse.adaptation.adapt import turn

        made = Made(f"{self.request.name} at dial {printed('%g', dial)}", self.folder / f"dial{dial:g}")
        with self._lock:
            assert self.outcome is not None
            if not made.folder.is_dir():
                turn(model.folder, dial, made.folder)
            models = [made, *(other for other in self.outcome.models if other != made)]
            self.outcome, self.dial = replace(self.outcome, models=models), dial
        name = self.request.slug
        of = f"{name}/{CANDIDATE}" if model.folder.name == CANDIDATE else name
        words = command_line("adapt", of, "--dial", f"{dial:g}", "--output", f"{name}-{made.folder.name}")
        self.commands = [self.request.command, words]

    def archive(self, made: Made) -> Path:
        """Return a .zip of a model that it made, written at the first call, without other models within its folder."""
        target = self.folder / f"{self.request.slug}{'' if made.folder.name == MODEL else f'-{made.folder.name}'}.zip"
        partial = target.with_suffix(".writing")
        with self._lock:
            if target.is_file():
                return target
            try:
                with zipfile.ZipFile(partial, "w") as archive:  # weights do not compress
                    for path in sorted(made.folder.rglob("*")):
                        inside = path.relative_to(made.folder)
                        if path.is_file() and inside.parts[0] != CANDIDATE:
                            archive.write(path, f"{target.stem}/{inside.as_posix()}")
                return partial.replace(target)
            finally:
                partial.unlink(missing_ok=True)

    def _published(self) -> bool:  # which the command does in one step
        return (self.folder / MODEL).is_dir()

    def _run(self) -> None:
        try:
            failure = self._watched(self.request.words())
            left = not self._published() and self.progress.answered and not self._deleting.is_set()
            if left and self.request.method == ADAPT:  # whatever ended it, the best so far is kept
                again = self._watched(self.request.words(finish=True), finishing=True)
                failure = failure or again
            if self._published():  # a published model is whole, whatever ended the process
                self.outcome = outcome_of(self.request, self.folder)
                self.failure = "" if self._stopping.is_set() or not left else failure
                self.state = State.FINISHED
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
        process = self.process = CommandProcess(words, self.folder)
        reason, interrupted = "", 0.0
        try:
            while not process.ended(POLL):
                self.seconds = earlier + time.monotonic() - began
                start = self.request.start
                self.lines = [without_paths(line, start, Path(start).name) for line in tuple(process.lines)]
                self.progress = read_progress(self.folder)
                if not finishing:
                    if self.seconds > 60 * self.request.minutes + GRACE:
                        reason = f"It took longer than its {self.request.minutes:g} minutes; give fewer texts."
                    if self._stopping.is_set() and not interrupted:
                        # Python loses an interrupt that comes during some imports; before the first step or stage
                        # there is nothing to keep.
                        begun = self.progress.step or self.progress.stages
                        process.interrupt() if begun else process.end()
                        interrupted = time.monotonic()
                late = interrupted and time.monotonic() - interrupted > PATIENCE
                if reason or late or self._deleting.is_set():
                    process.end()
        finally:
            process.end()
        if not self._published():
            self.progress = read_progress(self.folder)
        return error_line(ValueError(reason or process.failure)) if reason or process.failure else ""


def how_to_open(model: Path) -> str:
    """Return how the unpacked .zip of a model is opened."""
    from cse.models.checkpoint import CHECKPOINT, read_checkpoint_config

    record = read_checkpoint_config(model) if CHECKPOINT.is_marked(model) else None
    reason = "" if record is None else record.reason or ("" if record.whole else "lacks its backbone")
    if reason:
        return f'Unpack it and open it with cse.load("FOLDER"). sentence-transformers cannot, as it {reason}.'
    return 'Unpack it and open it with SentenceTransformer("FOLDER") of sentence-transformers, or cse.load("FOLDER").'
