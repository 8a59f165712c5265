"""A command of the project in a process of its own that can be killed: at a time, or before its n-th system call.

The process is forked from this one, so that what is imported here is not imported for each of a thousand commands.
"""

from __future__ import annotations

import importlib
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.campaign.tracing import count_calls, may_trace, trace_me

LIMIT = 120.0  # seconds that no command here needs
EARLIEST = 1e-4


@dataclass(frozen=True)
class Disturbance:
    """What befalls a command: SIGKILL after `seconds` or before system call `call` (from 0), or no room for a file.

    `file_size` is the most bytes a file may get. `traced` counts the system calls that change a file, `modules` has
    the names of the imported modules written down.
    """

    seconds: float | None = None
    call: int | None = None
    file_size: int | None = None
    traced: bool = False
    modules: bool = False

    @property
    def shown(self) -> str:
        """The kill in words."""
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

    @property
    def error_lines(self) -> list[str]:
        """The lines of stderr that say what is wrong."""
        return [line for line in self.err.splitlines() if line.startswith("Error: ")]


def run(words: Sequence[str], folder: Path, disturbance: Disturbance | None = None) -> Ended:
    """How `python -m scripts.WORDS` ends in `folder`, killed after `LIMIT` seconds at the latest.

    Must be called in the main thread.
    """
    harm = disturbance or Disturbance()
    streams = _beside(folder, "out"), _beside(folder, "err")
    traced = (harm.traced or harm.call is not None) and may_trace()
    before = _resident()
    begun = time.perf_counter()
    child = os.fork()
    if not child:
        _child(words, folder, streams, harm, traced)
    with suppress(OSError):  # where the child was quicker
        os.setpgid(child, child)
    with _killed_late(child, LIMIT if harm.seconds is None else max(harm.seconds, EARLIEST)) as late:
        if traced:
            (status, usage), calls = count_calls(child, harm.call)
        else:
            (_, status, usage), calls = os.wait4(child, 0), 0
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)  # what it may have started
    code = os.waitstatus_to_exitcode(status)
    out, err = (path.read_text(errors="replace") for path in streams)
    hung, grown = bool(late) and harm.seconds is None, usage.ru_maxrss / 1024 - before
    return Ended(code if code >= 0 else None, out, err, time.perf_counter() - begun, calls, hung, grown)


@contextmanager
def _killed_late(child: int, seconds: float) -> Iterator[list[int]]:
    """Meanwhile a child that takes longer than so many seconds is killed, and its number is in the list."""
    late: list[int] = []

    def kill(*_: Any) -> None:
        with suppress(ProcessLookupError):  # which ended at this moment
            os.kill(child, signal.SIGKILL)
            late.append(child)

    signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _child(words: Sequence[str], folder: Path, streams: tuple[Path, Path], harm: Disturbance, traced: bool) -> None:
    """Run the command and leave, in the forked process."""
    code = 1
    try:
        os.setpgid(0, 0)  # a group of its own, which is waited for and killed as one
        _redirect(streams)
        os.chdir(folder)
        if harm.file_size is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (harm.file_size, harm.file_size))
        sys.argv = [f"scripts.{words[0]}", *words[1:]]
        app = importlib.import_module(f"scripts.{words[0]}").app
        if traced:
            trace_me()
        app(list(words[1:]))
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
            if harm.modules:
                _beside(folder, "modules").write_text("\n".join(list(sys.modules)))
        os._exit(code)


def _redirect(streams: Sequence[Path]) -> None:
    """Let stdin be empty, and stdout and stderr go to two files."""
    for number, path in ((0, Path(os.devnull)), *enumerate(streams, start=1)):
        place = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY, 0o644)
        os.dup2(place, number)
        os.close(place)


def warm_up(words: Sequence[str], folder: Path) -> Ended:
    """How a command ends that nothing disturbs; what it imported is imported here, so that the next ones need not."""
    ended = run(words, folder, Disturbance(modules=True))
    for name in _beside(folder, "modules").read_text().split():
        with suppress(Exception):
            importlib.import_module(name)
    return ended


def _beside(folder: Path, what: str) -> Path:
    return folder.with_name(f".{folder.name}.{what}")


def _resident() -> float:
    """Megabytes that this process, and so a fork of it, holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
