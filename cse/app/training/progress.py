"""The progress of a training, read from the files that it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse.app.training.request import MODEL, steps_of
from cse.files.writing import partial_folder
from cse.training.listing import RunRecord, read_run

INSIDE = "training"  # the folder of the run within that of an unfinished adaptation
BEST = "best"  # the folder of the best checkpoint so far, within that of an unfinished run

Point = tuple[int, float]  # a step and a value


@dataclass(frozen=True)
class Progress:
    """Steps taken and those of the whole run (0: unknown yet), losses and guard's scores by step, and the first score.

    `rate` is the time of a step in seconds, `best` the folder of the best checkpoint so far.
    """

    step: int = 0
    steps: int = 0
    losses: Sequence[Point] = ()
    scores: Sequence[Point] = ()
    start: float | None = None
    rate: float | None = None
    best: Path | None = None

    @property
    def seconds_left(self) -> float | None:
        """The seconds of the steps to come, or None if unknown."""
        return None if self.rate is None or not self.steps else self.rate * (self.steps - self.step)


def read_progress(folder: Path) -> Progress | None:
    """Return the progress in the folder of a training, or None if there is none to be read now."""
    output = folder / MODEL
    work = partial_folder(output)
    for place in (work, work / INSIDE, partial_folder(work / INSIDE), output):
        with suppress(ValueError, OSError):  # not begun, replaced at this moment, or damaged: the command says so
            found = read_run(place, place.name)
            if found.log:
                return progress_of(found)
    return None


def progress_of(run: RunRecord) -> Progress:
    """Return the progress of a run."""
    losses = [(entry["step"], entry["loss"]) for entry in run.log]
    scores = [(entry["step"], entry["dev"]) for entry in run.log if entry.get("dev") is not None]
    seconds, best = run.seconds, run.path / BEST
    return Progress(
        losses[-1][0], steps_in(run.settings), losses, scores, run.dev.get("start"),
        None if seconds is None else seconds / len(run.log), best if best.is_dir() else None,
    )  # fmt: skip


def steps_in(settings: Mapping[str, Any]) -> int:
    """Return the steps of a whole run by its recorded settings; 0 if they do not say."""
    examples, size, epochs, most = (settings.get(name) for name in ("examples", "batch_size", "epochs", "max_steps"))
    return steps_of(examples, size, epochs, most) if examples and size and epochs else 0
