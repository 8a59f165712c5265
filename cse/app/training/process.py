"""A command of this project as a process of its own: its lines, its end, and why it ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

import cse
from cse.encoder.devices import without_bound
from cse.encoder.processes import start_command

ROOT = Path(cse.__file__).parents[1]
NICE = 10  # the page comes first
PATIENCE = 10.0  # seconds between the request to end and the kill
MOST_LINES, LONGEST = 50, 1_000  # kept of its messages; characters of one
BAR = "%|"  # in a line of a progress bar


class CommandProcess:
    """A running `cse` command in a folder that also holds its temporary files; `lines` are its last messages.

    It has its own process group, and ends with this process. Its messages go through a pipe, so that a full disk hides
    none of them.
    """

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        """Start the command. Raises OSError if the system cannot."""
        self.lines: deque[str] = deque(maxlen=MOST_LINES)
        self._process = start_command(
            words, environment(folder), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            errors="replace", start_new_session=True,
        )  # fmt: skip
        with suppress(OSError, AttributeError):  # it has ended, or Windows
            os.setpriority(os.PRIO_PROCESS, self._process.pid, NICE)
        self._reader = Thread(target=self._read, name="training messages", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ended(self, seconds: float) -> bool:
        """Wait up to `seconds`; return True if the process has ended and all its messages were read."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join(PATIENCE)
        return True

    def interrupt(self) -> None:
        """Ask the process to end with what it has, as Ctrl-C does."""
        with suppress(OSError):
            self._process.send_signal(signal.SIGINT)

    def end(self, patience: float = PATIENCE) -> None:
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
                    self.lines.append(text[:LONGEST])


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a command that finds this project, with temporary copies of texts in `folder`.

    The app's limit of compiled kernels is not in it, which suits texts of many lengths, not training.
    """
    known = {name: value for name, value in without_bound(os.environ).items() if name != "CSE_DEBUG"}
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    places = {name: str(folder / "temporary") for name in ("TMPDIR", "HF_DATASETS_CACHE")}
    return {**known, **places, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
