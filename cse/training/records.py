"""Records of a run: its state, the entries of its log, its summary, and the names of the files that hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from cse.models.config import DevScores

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from cse.encoder.encoder import Encoder

Report = Callable[[int, int, str], None]


def silent(done: int, total: int, name: str) -> None:
    """Report nothing."""


# In the folder of an unfinished run: its mark, its saved state, and its texts as token ids, of which the name goes on.
RUN_FILE, STATE_FOLDER, TOKENS_FOLDER = "run.json", "state", "tokens"


class TrainingState(TypedDict):
    """A saved state without its tensors: steps done, recipe, seconds of training, dev scores.

    `log` is the digest of the training log so far, which the first versions did not record. With held-out texts
    `held_out` is their score before the first step, and `stopped` why the run ended early. `storage` is that of
    the best checkpoint.
    """

    step: int
    recipe: dict[str, Any]
    seconds: float
    dev: DevScores
    log: NotRequired[str]
    held_out: NotRequired[dict[str, float]]
    stopped: NotRequired[str]
    storage: NotRequired[str]


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
