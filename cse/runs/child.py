"""Commands as processes that end with the one that started them, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from threading import Thread
from typing import Any

BOUND = "CSE_ENDS_WITH_PARENT"  # in the environment of such a process


def start_command(
    words: Sequence[str], environment: Mapping[str, str] = os.environ, **options: Any
) -> subprocess.Popen[str]:
    """Start a command by its words after `cse`; `options` are those of `Popen`. Raises OSError if the system cannot.

    Its stdin is a pipe that nobody writes to. The system closes it when this process ends, even by SIGKILL.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "cse.commands", *words], env={**environment, BOUND: "1"}, stdin=subprocess.PIPE,
        text=True, **options,
    )  # fmt: skip


def end_with_parent() -> None:
    """If `start_command` started this process, end it, and its own children, when its parent has ended."""
    if os.environ.pop(BOUND, None):
        Thread(target=_end_at_eof, name="parent", daemon=True).start()


def _end_at_eof() -> None:
    while os.read(0, 1):
        pass
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():  # else the group is that of the parent's shell
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
