"""The progress bar of a run, on stderr of the main process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse.training.records import LogEntry


def main_process() -> bool:
    """False in all processes of an `accelerate launch` but the first."""
    return os.environ.get("RANK", "0") == "0"


def progress_options() -> dict[str, Any]:
    """Options of every tqdm bar: a line every 30 s unless stderr is a terminal or a notebook."""
    seen = sys.stderr.isatty() or "ipykernel" in sys.modules  # a notebook's stderr says that it is no terminal
    return {"dynamic_ncols": True, "mininterval": 0.2 if seen else 30.0, "disable": not main_process()}


@contextmanager
def step_bar(name: str, steps: int) -> Iterator[Callable[[LogEntry], None]]:
    """Show a bar in the block; the function that it gives moves the bar to the step of an entry, or clears its line.

    It does so for a note, which is printed in its place.
    """
    from tqdm import tqdm

    with tqdm(total=steps, unit="step", desc=name, **progress_options()) as bar:

        def show(entry: LogEntry) -> None:
            if "note" in entry:
                bar.clear()
                return
            shown = {"loss": f"{entry['loss']:.4f}", "sentences/s": entry["sentences_per_second"]}
            bar.set_postfix({**shown, "best_dev": entry["best"]}, refresh=False)
            bar.update(entry["step"] - bar.n)

        yield show
