"""Experiment trackers that follow a run: TensorBoard, Weights & Biases and Trackio, through accelerate's classes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cse.errors import first_line

if TYPE_CHECKING:  # commands import this module, and start without PyTorch
    from accelerate.tracking import GeneralTracker

    from cse.training.records import LogEntry

TRACKERS = {"tensorboard": ("tensorboard", "tensorboardX"), "wandb": ("wandb",), "trackio": ("trackio",)}  # modules
TRACKER_PROJECT = "contrastive-sentence-embeddings"
TRACKED_VALUES = ("loss", "learning_rate", "sentences_per_second", "dev", "best")  # of a step's entry

Tracker: TypeAlias = "str | GeneralTracker"


def check_trackers(trackers: Sequence[Tracker]) -> None:
    """Raise ValueError for a name that is none of `TRACKERS`, or whose package is not installed."""
    for name in trackers:
        if not isinstance(name, str):
            if not all(callable(getattr(name, part, None)) for part in ("start", "log", "finish")):
                raise ValueError(f"`report_to` is {name!r:.60}; give {', '.join(TRACKERS)} or a tracker of accelerate")
        elif name not in TRACKERS:
            raise ValueError(f"`report_to` is {name!r}; choose from {', '.join(TRACKERS)}")
        elif not any(find_spec(module) for module in TRACKERS[name]):
            raise ValueError(f"`report_to` is {name}, which is not installed; run pip install {name}")


@contextmanager
def tracking(trackers: Sequence[Tracker], output: Path, settings: Mapping[str, Any]) -> Iterator[Callable[..., None]]:
    """Start the trackers for the block and yield a function that sends them the entry of a step.

    TensorBoard's files are in the folder `tensorboard/NAME` next to `output`; the others get a run of this name in the
    project of WANDB_PROJECT or TRACKIO_PROJECT, by default `TRACKER_PROJECT`. Raises ValueError if one cannot
    be started.
    """
    with ExitStack() as stack:
        started = []
        folder, name = output.absolute().parent, output.absolute().name
        for tracker in trackers:  # not by `Accelerator(log_with=...)`, which drops those that are not installed
            if isinstance(tracker, str):
                from accelerate.tracking import LOGGER_TYPE_TO_CLASS

                kind: Any = LOGGER_TYPE_TO_CLASS[tracker]
                project = os.environ.get(f"{tracker.upper()}_PROJECT", TRACKER_PROJECT)
                in_folder = tracker == "tensorboard"
                made = kind(name, logging_dir=folder / tracker) if in_folder else kind(project, name=name)
            else:
                made = tracker
            try:
                made.start()
            except Exception as error:  # each service has its own kinds
                raise ValueError(f"`report_to` {made.name}: cannot be started ({first_line(error)})") from error
            started.append(made)
            stack.callback(made.finish)
            made.store_init_configuration(dict(settings))

        def send(entry: LogEntry) -> None:
            values = {name: value for name, value in entry.items() if name in TRACKED_VALUES and value is not None}
            for running in started:
                running.log(values, step=entry["step"])

        yield send


def main_process() -> bool:
    """False in all processes of an `accelerate launch` but the first."""
    return os.environ.get("RANK", "0") == "0"


def progress_options() -> dict[str, Any]:
    """Options of every tqdm bar: a line every 30 s unless stderr is a terminal or a notebook."""
    seen = sys.stderr.isatty() or "ipykernel" in sys.modules  # a notebook's stderr says that it is no terminal
    return {"dynamic_ncols": True, "mininterval": 0.2 if seen else 30.0, "disable": not main_process()}


@contextmanager
def step_bar(name: str, steps: int) -> Iterator[Callable[[LogEntry], None]]:
    """Show a bar in the block and yield a function that moves it to the step of an entry.

    A note clears the line of the bar, where it is then printed.
    """
    from tqdm.auto import tqdm

    with tqdm(total=steps, unit="step", desc=name, **progress_options()) as bar:

        def show(entry: LogEntry) -> None:
            if "note" in entry:
                bar.clear()
                return
            shown = {"loss": f"{entry['loss']:.4f}", "sentences/s": entry["sentences_per_second"]}
            bar.set_postfix({**shown, "best_dev": entry["best"]}, refresh=False)
            bar.update(entry["step"] - bar.n)

        yield show
