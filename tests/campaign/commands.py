"""A command of the project in a forked process that can be killed before its n-th change of a file.

It is forked from this process, so that what is imported here is not imported again for each command.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 120  # seconds that no command here needs
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = {f"os.{name}" for name in ("rename", "remove", "rmdir", "mkdir", "link", "symlink", "truncate", "chmod")}


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit `code`, None where it was killed, its texts, its calls that change a file."""

    code: int | None
    out: str
    err: str
    calls: int

    def refuses(self, *codes: int) -> bool:
        """Whether it ended with one of these codes and exactly one error line."""
        errors = [line for line in self.err.splitlines() if line.startswith("Error: ")]
        return self.code in codes and len(errors) == 1 and "Traceback" not in self.err

    def __str__(self) -> str:
        return f"exit code {self.code}, {self.err.strip()[-400:]}"


def run(words: Sequence[str], folder: Path, call: int | None = None, *, imported: bool = False) -> Ended:
    """How `python -m scripts.WORDS` ends in `folder`, killed before Python's `call` (from 0) that changes a file.

    What it imported is then `imported` here too, so that the next command need not. One that hangs ends by SIGALRM.
    """
    out, err, note = (folder.with_name(f".{folder.name}.{name}") for name in ("out", "err", "note"))
    note.write_text('{"calls": 0, "modules": []}')
    child = os.fork()
    if not child:
        _child(words, folder, (out, err), note, call)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    noted = json.loads(note.read_text())
    for name in [name for name in noted["modules"] if imported and name not in sys.modules]:
        with suppress(Exception):
            importlib.import_module(name)
    hung = code == -signal.SIGALRM
    return Ended(
        1 if hung else code if code >= 0 else None, out.read_text(), err.read_text(errors="replace"), noted["calls"]
    )


def must_run(words: Sequence[str], folder: Path) -> Ended:
    """Run a command that nothing disturbs. Raises ValueError where it fails."""
    ended = run(words, folder, imported=True)
    if ended.code:
        raise ValueError(f"{' '.join(words)} failed without a disturbance: {ended}")
    return ended


def _child(words: Sequence[str], folder: Path, streams: Sequence[Path], note: Path, fatal: int | None) -> None:
    """Run the command in the forked process and leave it."""
    code = 1
    try:
        signal.alarm(LIMIT)
        for number, path in ((0, Path(os.devnull)), *enumerate(streams, start=1)):
            opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY, 0o644)
            os.dup2(opened, number)
            os.close(opened)
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
            note.write_text(json.dumps({"calls": calls(), "modules": list(sys.modules)}))
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
