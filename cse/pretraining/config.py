"""A pretraining run as values: its request, settings, learning-rate schedule, and the records it writes as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, final

from cse.storage.writing import file_digest
from cse.text.sources import Table, source_of

if TYPE_CHECKING:
    from typing import NotRequired

NEW_VOCABULARY = 12_000
MODEL_FOLDER = "model"  # of a run's output


@dataclass(frozen=True)
class PretrainConfig:
    """Settings that decide the result; those of a new model's shape are unused with an `init`.

    `vocabulary` is the number of word pieces of a new model (None: `NEW_VOCABULARY`); an `init` keeps its own. `tokens`
    of the whole run and `batch_tokens` of a step include special tokens. The rows of a batch have one of the `lengths`
    (tokens), drawn uniformly. `accumulate` is the number of micro-batches of a step; it changes a step's memory, not
    the result. `warmup` is a share of the steps. The lowest `frozen_layers` of an `init` are fixed, and so are its
    embeddings, which a tied decoder shares; if all are, only the head learns. `blend_share` is the weight of
    `PretrainRequest.blend` in the average that training starts from, or a weight for the embeddings and one for each
    layer, `start_share` that of the `init` in the result,
    below the head (`cse.pretraining.model.average_in`). `untied` gives a new model a decoder of its own (PromptBERT's
    Table 12), which starts as a copy of the word embeddings.
    """

    vocabulary: int | None = None
    layers: int = 4
    hidden: int = 256
    heads: int = 4
    positions: int = 256
    tokens: int = 30_000_000
    batch_tokens: int = 4096
    accumulate: int = 1
    lengths: tuple[int, ...] = (16, 32, 64, 128)
    learning_rate: float = 1e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    frozen_layers: int = 0
    blend_share: float | tuple[float, ...] = 0.5
    start_share: float = 0.0
    untied: bool = False
    seed: int = 42

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        return max(1, self.tokens // self.batch_tokens)


@dataclass(frozen=True)
class PretrainRequest:
    """A pretraining run: text files `corpora`, one sentence a line, to a model in the folder `output / MODEL_FOLDER`.

    A table among the `corpora` gives the texts of its `column`, by default the one that its name shows.
    `init` is a backbone to continue from, named as in `cse.load`, or None for a new model; a BERT saved without a
    masked-LM head gets a new one. `blend` is an encoder of the same shape and vocabulary, averaged into `init` first,
    below the head. `resume` continues a killed run from its last evaluation, `overwrite` starts it again.
    Every `eval_every` steps the model is validated on held-out text and the state is saved. `precision`: auto, no or
    bf16 (`cse.training.state.start_accelerator`).
    """

    corpora: Sequence[Path]
    output: Path
    config: PretrainConfig = field(default_factory=PretrainConfig)
    init: str | None = None
    blend: str | None = None
    resume: bool = False
    overwrite: bool = False
    eval_every: int = 500
    precision: str = "auto"
    column: str | None = None

    def recipe(self) -> dict[str, object]:
        """Everything that decides the result, as JSON values: `config` and the names of `init`, `blend` and corpora."""
        start = {"init": _portable(self.init), "blend": _portable(self.blend)}
        column = {} if self.column is None else {"column": self.column}  # older recipes have none
        recipe = {**asdict(self.config), **start, "corpora": [path.name for path in self.corpora], **column}
        return json.loads(json.dumps(recipe))

    def source(self) -> dict[str, object]:
        """Everything the tokenised corpus in `output` depends on, as JSON values; files by name and digest, tables by
        their column, too.
        """
        texts = [
            [path.name, file_digest(path) if path.is_file() else "", *([self.column] if is_table(path) else [])]
            for path in self.corpora
        ]
        return {"texts": texts, "vocabulary": self.config.vocabulary, "init": self.init}


def is_table(corpus: Path) -> bool:
    """True for a file that is read as a table, not as lines. Raises ValueError for a workbook."""
    return isinstance(source_of(corpus), Table)


def _portable(name: str | None) -> str | None:
    """A model's name without its absolute path; that of a run's model keeps the run's name."""
    if name is None or not (path := Path(name)).is_absolute():
        return name
    return f"{path.parent.name}/{path.name}" if path.name == MODEL_FOLDER else path.name


def learning_rate(config: PretrainConfig, step: int) -> float:
    """Linear warm-up, then linear decay to zero at the last step."""
    warm = max(1, round(config.warmup * config.steps))
    return config.learning_rate * min((step + 1) / warm, (config.steps - step) / max(1, config.steps - warm))


class HeldOutScores(TypedDict):
    """Masked language modelling on held-out text: loss in nats, accuracy in [0, 1]."""

    held_out_loss: float
    held_out_accuracy: float


@final
class CurveEntry(HeldOutScores):
    """An evaluation after `step` steps over `tokens` tokens: `loss` of that step (nats) and the speed so far."""

    step: int
    tokens: int
    loss: float
    tokens_per_second: int


@final
class ResumeNote(TypedDict):
    """The report that a resumed run has no saved state and starts again at `step` 0."""

    step: int
    note: str


LogWriter = Callable[[CurveEntry | ResumeNote], None]


class PretrainingState(TypedDict):
    """A run after `step` steps and `seconds`, as in `state/meta.json`; `recipe` is that of `PretrainRequest.recipe`."""

    step: int
    curve: list[CurveEntry]
    recipe: dict[str, object]
    seconds: float


class PretrainingRecord(PretrainingState):
    """A finished run, as in a model folder's `pretraining.json`.

    `before` is the record of the model that the run continued from, or None; `device` is torch's name and `torch` its
    version. `averaged` has the scores of the saved model if weights of its start were averaged in.
    """

    before: NotRequired[PretrainingRecord | None]
    averaged: NotRequired[HeldOutScores]
    device: str
    model: dict[str, Any]
    torch: str
