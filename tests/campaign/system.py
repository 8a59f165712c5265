"""A command of the project in a forked process that can be killed: at a time, or before its n-th change of a file.

It is forked from this process, so that what is imported here is not imported again for each of a thousand commands.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 120.0  # seconds that no command here needs
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = {f"os.{name}" for name in ("rename", "remove", "rmdir", "mkdir", "link", "symlink", "truncate", "chmod")}


@dataclass(frozen=True)
class Kill:
    """SIGKILL after `seconds`, or before Python's call number `call` (from 0) that changes a file."""

    seconds: float | None = None
    call: int | None = None

    def __str__(self) -> str:
        return f"before call {self.call}" if self.call is not None else f"after {self.seconds:.3f} s"


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit `code`, None where it was killed, its texts, time, calls and growth in MB."""

    code: int | None
    out: str
    err: str
    seconds: float
    calls: int
    hung: bool
    megabytes: float

    def refuses(self, *codes: int) -> bool:
        """Whether it ended with one of these codes and exactly one error line."""
        errors = [line for line in self.err.splitlines() if line.startswith("Error: ")]
        return self.code in codes and len(errors) == 1 and "Traceback" not in self.err

    def __str__(self) -> str:
        return f"exit code {self.code}, {self.seconds:.1f} s, {self.err.strip()[-400:]}"


def run(words: Sequence[str], folder: Path, kill: Kill | None = None, *, imported: bool = False) -> Ended:
    """How `python -m scripts.WORDS` ends in `folder`, killed after `LIMIT` seconds at the latest; in the main thread.

    What it imported is then `imported` here too, so that the next command need not.
    """
    harm = kill or Kill()
    out, err, note = (_beside(folder, name) for name in ("out", "err", "note"))
    note.write_text('{"calls": 0, "modules": []}')
    before, begun = _resident(), time.perf_counter()
    child = os.fork()
    if not child:
        _child(words, folder, (out, err), note, harm.call)
    with suppress(OSError):  # the child may have been quicker
        os.setpgid(child, child)
    with _killed_late(child, harm.seconds or LIMIT) as late:
        _, status, usage = os.wait4(child, 0)
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)  # processes that it started
    code, hung = os.waitstatus_to_exitcode(status), bool(late) and harm.seconds is None
    seconds, grown = time.perf_counter() - begun, usage.ru_maxrss / 1024 - before
    said, noted = err.read_text(errors="replace"), json.loads(note.read_text())
    for name in [each for each in noted["modules"] if imported and each not in sys.modules]:
        with suppress(Exception):
            importlib.import_module(name)
    return Ended(code if code >= 0 else None, out.read_text(), said, seconds, noted["calls"], hung, grown)


def must_run(words: Sequence[str], folder: Path) -> Ended:
    """Run a command that nothing disturbs. Raises ValueError where it fails."""
    ended = run(words, folder, imported=True)
    if ended.code:
        raise ValueError(f"{' '.join(words)} failed without a disturbance: {ended}")
    return ended


@contextmanager
def _killed_late(child: int, seconds: float) -> Iterator[list[int]]:
    """Kill a child that takes longer than so many seconds, and put its number into the list."""
    late: list[int] = []

    def kill(*_: Any) -> None:
        with suppress(ProcessLookupError):  # it ended at this moment
            os.kill(child, signal.SIGKILL)
            late.append(child)

    signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _child(words: Sequence[str], folder: Path, streams: Sequence[Path], note: Path, fatal: int | None) -> None:
    """Run the command in the forked process and leave it."""
    code = 1
    try:
        os.setpgid(0, 0)  # a group of its own, which is killed as one
        _redirect(streams)
        os.chdir(folder)
        sys.argv = [f"scripts.{words[0]}", *words[1:]]
        app = importlib.import_module(f"scripts.{words[0]}").app
        calls = _killed_before(fatal)
        app(list(words[1:]))
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
            whole = note.with_name(f"{note.name}.whole")  # a kill at this moment leaves the note as it was
            whole.write_text(json.dumps({"calls": calls(), "modules": list(sys.modules)}))
            whole.replace(note)
        os._exit(code)


def _killed_before(fatal: int | None) -> Callable[[], int]:
    """Kill this process before its call number `fatal` that changes a file; a function that counts them so far."""
    calls = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal calls
        if arguments[2] & WRITES if event == "open" else event in CHANGES:
            if calls == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            calls += 1

    sys.addaudithook(count)
    return lambda: calls


def _redirect(streams: Sequence[Path]) -> None:
    """Give an empty stdin, and two files for stdout and stderr."""
    for number, path in ((0, Path(os.devnull)), *enumerate(streams, start=1)):
        place = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY, 0o644)
        os.dup2(place, number)
        os.close(place)


def _beside(folder: Path, name: str) -> Path:
    return folder.with_name(f".{folder.name}.{name}")


def _resident() -> float:
    """Megabytes that this process, and so a fork of it, holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
