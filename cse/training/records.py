"""Records of a run: its state, the entries of its log, its summary, and the names of the files that hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

from cse.models.config import DevScores, TrainingRecord

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from cse.training.run import Run

Report = Callable[[int, int, str], None]


def silent(done: int, total: int, name: str) -> None:
    """Report nothing."""


# In the folder of an unfinished run: its mark, its saved state, and its texts as token ids, of which the name goes on.
RUN_FILE, STATE_FOLDER, TOKENS_FOLDER = "run.json", "state", "tokens"


class TrainingState(TypedDict):
    """A saved state without its tensors: steps done, recipe, seconds of training, dev scores.

    `log` is the digest of the training log so far, which the first versions did not record. With held-out texts
    `held_out` is their score before the first step, and `stopped` why the run ended early.
    """

    step: int
    recipe: dict[str, Any]
    seconds: float
    dev: DevScores
    log: NotRequired[str]
    held_out: NotRequired[dict[str, float]]
    stopped: NotRequired[str]


class TrainingSummary(DevScores):
    """The result of a finished run; `stopped` says why it ended early, if it did."""

    output: str
    steps: int
    seconds: float
    selection: str
    stopped: NotRequired[str]


class LogEntry(TypedDict, total=False):
    """The report of a step: `dev` if it was evaluated, `best` the best dev score so far. A `note` comes alone.

    The log has neither `best` nor `learning_rate`.
    """

    step: int
    loss: float
    learning_rate: float
    dev: float | None
    sentences_per_second: float
    best: float | None
    note: str


LogWriter = Callable[[LogEntry], None]


def training_record(run: Run, state: TrainingState) -> TrainingRecord:
    """The record of its training that a checkpoint keeps; the last score is not known yet, and is in the log."""
    settings = {key: value for key, value in state["recipe"].items() if key not in ("method", "backbone")}
    dev: DevScores = {**state["dev"]}
    dev.pop("last", None)
    return {"settings": settings, "selection": run.selection, "dev": dev}
