"""Training jobs: from a request and a recipe to a checkpoint folder and its result.

`cse.train` and the command `train` both take these steps: `JobOptions.check`, `assemble`, `run_job`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cse.encoding.encoder import Encoder
from cse.encoding.processes import together
from cse.engines.torch_encoder import TorchEncoder
from cse.models.card import openers
from cse.models.checkpoint import read_checkpoint_config
from cse.models.storage import Storage
from cse.runs.bar import main_process, step_bar
from cse.runs.recipe import Recipe
from cse.runs.tracking import Tracker, check_trackers, tracked_settings, tracking
from cse.training.loop import train
from cse.training.output import reserved_output
from cse.training.records import LogEntry
from cse.training.run import Run, TrainRequest, prepare

Note = Callable[[str], object]
Callback = Callable[[LogEntry], object]


@dataclass(frozen=True)
class JobOptions:
    """The checkpoint folder of a job, and how it is written: see `cse.training.loop.train`.

    `storage` and `precision` are by default the recipe's, or else float32 and auto; `report_to` are
    the trackers of `cse.runs.tracking`.
    """

    output: Path
    resume: bool = False
    overwrite: bool = False
    storage: str | None = None
    precision: str | None = None
    report_to: Sequence[Tracker] = ()

    def check(self) -> None:
        """Raise the errors that can be found before any data are read."""
        check_trackers(self.report_to)
        if main_process():
            with reserved_output(self.output, resume=self.resume, overwrite=self.overwrite):
                pass


@dataclass(frozen=True)
class TrainingResult:
    """A finished run: its checkpoint folder, optimiser steps, and seconds of training.

    `start`, `best` and `last` are Spearman x 100 on the dev pairs before the first step, at the best evaluation (after
    `best_step` steps) and at the last one; with held-out texts the concentration of `cse.training.held_out`. The folder
    holds the model that `selection` describes. `stopped` says why the run ended early, if it did.
    """

    output: str
    steps: int
    seconds: float
    start: float | None = None
    best: float | None = None
    best_step: int | None = None
    last: float | None = None
    selection: str | None = None
    stopped: str | None = None

    def load(self) -> Encoder:
        """Open the trained model, as `cse.load(result.output)` does."""
        from cse.models.loading import load

        return load(self.output)

    def known(self) -> dict[str, Any]:
        """The fields that are not None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def assemble(request: TrainRequest, recipe: Recipe, backbone: str | None, note: Note) -> tuple[TorchEncoder, Run]:
    """The encoder and the run of a request completed by a recipe. Raises as `prepare` and `Recipe.check` do."""
    completed = recipe.request(request, backbone)
    completed.preset("bert-base")  # refuses wrong settings, on any backbone, before data and backbone are read
    encoder, run = prepare(completed, note)
    recipe.check(encoder.method)
    return encoder, run


def run_job(
    encoder: TorchEncoder,
    run: Run,
    options: JobOptions,
    recipe: Recipe,
    *,
    note: Note,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
) -> TrainingResult:
    """Train the encoder and write its checkpoint; `note` gets lines for the user, `callbacks` the entry of each step.

    With `progress` a bar is on stderr. Only the main process calls the callbacks.
    """
    if not run.selects:
        note("no dev pairs: trains to the end and selects nothing")
    if run.held_out:
        note(f"{len(run.held_out)} texts are held out: they show a collapse, but a higher score is not proof of better")
    with ExitStack() as stack:
        show = stack.enter_context(step_bar(encoder.name, run.steps)) if progress else None
        called: list[Callback] = [show] if show else []
        with together():
            if main_process():
                followed = tracking(options.report_to, options.output, tracked_settings(encoder, run))
                called += [stack.enter_context(followed), *callbacks]

        def report(entry: LogEntry) -> None:
            if "note" in entry:
                if show:
                    show(entry)
                note(entry["note"])
                return
            for callback in called:
                callback(entry)

        summary = train(
            encoder, run, options.output, resume=options.resume, overwrite=options.overwrite,
            storage=Storage(options.storage or recipe.storage or "float32"),
            precision=options.precision or recipe.precision or "auto", report=report,
        )  # fmt: skip
    if main_process():
        note(f"{options.output}: {openers(read_checkpoint_config(options.output))}")
    if run.selects and summary["best"] <= summary["start"]:
        cure = "compare the two on your own texts" if run.held_out else "lower the learning rate or give more text"
        note(f"no evaluation beat the untrained start: {cure}")
    return TrainingResult(**summary)
