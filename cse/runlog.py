"""The log of a training run: a JSON line per step, held by one run at a time and cut back where a run resumes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import IO

LOG = "train_log.jsonl"


def open_log(work: Path, step: int, main_process: bool) -> IO[str]:
    """The run's log, what was written after `step` removed; only one of several processes keeps it."""
    if not main_process:
        return Path(os.devnull).open("a")
    path = work / LOG
    if path.exists():
        with path.open() as earlier:
            _lock(earlier)
    if step == 0:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    path.write_text("".join(line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step))
    log = path.open("a")
    _lock(log)
    return log


def _lock(log: IO[str]) -> None:
    """Hold the log until it is closed, or raise ValueError where another run holds it; not on Windows."""
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ValueError(f"{Path(log.name).parent}: another run is writing there; give another --output") from error
