"""Evaluation tasks as values, what their units read, and all tasks by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cse.evaluation import Scores, Search, Unit
    from cse.evaluation.token_bias import EncodeIds, StaticEmbeddings, Tokenise

TASKS = ("sts", "transfer", "few-shot", "clustering", "retrieval", "geometry")
LOGISTIC = "logistic"


@dataclass(frozen=True)
class TokenAccess:
    """An encoder's tokenizer, its encoding of token ids, and its word embeddings.

    `tokenise` returns the ids of texts inside the encoder's template, without special tokens; `encode_ids` returns
    (N, d) vectors of N such lists.
    """

    tokenise: Tokenise
    encode_ids: EncodeIds
    static: StaticEmbeddings


@dataclass(frozen=True)
class TaskData:
    """Inputs of a task's units: its data `folder`, and options of single tasks.

    `tokenised`: a folder with SentEval's tokenised text (STS, geometry); `details`: scores of subsets too (STS);
    `sentences`: a text file (geometry); `search`: exact vector search (retrieval); `tokens`: None for an encoder
    without tokens; `classifier`: one of `transfer.CLASSIFIERS`; `smooth` and `expand`: neighbours that `search` mixes
    with documents and queries (retrieval); the prompts are the model's, as an index records them (retrieval).
    """

    folder: Path
    tokenised: Path | None = None
    details: bool = False
    sentences: Path | None = None
    search: Search | None = None
    tokens: TokenAccess | None = None
    classifier: str = LOGISTIC
    smooth: int = 0
    expand: int = 0
    query_prompt: str | None = None
    document_prompt: str | None = None


@dataclass(frozen=True)
class Repeats:
    """Repeated runs whose mean is a score: `count` runs of `what`; `deviations` maps scores to their deviations."""

    count: int
    what: str
    deviations: Mapping[str, str]


@dataclass(frozen=True)
class Task:
    """An evaluation task; `units` returns its units by name, or raises ValueError if `folder` lacks its `layout`.

    `shown` are the score columns of its tables, the main score first, headed by their unit unless `unit_headings` is
    False. The papers average the main score over `sets`, whose numbers of pairs are `pairs` if fixed. `options` are
    the command's options that apply to it. `figures` maps each figure to the unit it is drawn from, None for all;
    `points` are the scores that only figures and comparisons need. `token_units` are skipped for an encoder without
    tokens and if files of `layout` are missing. It reads the data of the task `data_of`, its own if empty.

    A task that `ranks` documents for queries encodes them with the model's prompts for these.

    `title` and `summary` are shown to readers; the scores in `lower` are better if lower; `repeats` are the runs within
    one evaluation.
    """

    name: str
    units: Callable[[TaskData], dict[str, Unit]]
    layout: str
    shown: tuple[str, ...]
    title: str
    summary: str
    sets: tuple[str, ...] = ()
    pairs: Mapping[str, int] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    figures: Mapping[str, str | None] = field(default_factory=dict)
    points: tuple[str, ...] = ()
    token_units: tuple[str, ...] = ()
    unit_headings: bool = True
    data_of: str = ""
    lower: tuple[str, ...] = ()
    repeats: Repeats | None = None
    ranks: bool = False

    @property
    def main(self) -> str:
        """The score that is averaged and compared with published numbers."""
        return self.shown[0]

    @property
    def folder(self) -> str:
        """The name of its data folder, within a folder of all tasks' data."""
        return self.data_of or self.name

    def average(self, scores: Mapping[str, Scores]) -> float | None:
        """The papers' average of the main score over the sets; None if the task has no sets or some are missing."""
        if not self.sets or not all(name in scores for name in self.sets):
            return None
        return round(sum(scores[name][self.main] for name in self.sets) / len(self.sets), 2)


def find_task(name: str) -> Task:
    """Return the task of a name, importing its module. Raises ValueError, with the choices, for an unknown name."""
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}; choose from {', '.join(TASKS)}")
    return import_module(f"cse.evaluation.{name.replace('-', '_')}").TASK


def tasks_with(option: str) -> list[str]:
    """Names of the tasks that have an option."""
    return [name for name in TASKS if option in find_task(name).options]
