"""The progress of a training, read from the files that its command writes: finished stages, and steps as JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cse.adaptation.choice import PROJECTION
from cse.adaptation.workspace import MARK_FILE
from cse.app.training.request import MODEL, steps_of
from cse.files.writing import partial_folder, read_json
from cse.training.listing import RunRecord, read_run

INSIDE = "training"  # the folder of the run within that of an unfinished adaptation

Point = tuple[int, float]  # a step and a value


@dataclass(frozen=True)
class Progress:
    """Steps taken and those of the whole run (0: unknown yet), losses and guard's scores by step, and the first score.

    `rate` is the time of a step in seconds; `stages` are the finished ones of an adaptation.
    """

    step: int = 0
    steps: int = 0
    losses: Sequence[Point] = ()
    scores: Sequence[Point] = ()
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
