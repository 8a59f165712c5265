"""Evaluation tasks as values, what their units read, and all tasks by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cse.evaluation import Scores, Search, Unit
    from cse.evaluation.token_bias import StaticEmbeddings
    from cse.evaluation.token_removal import EncodeIds, Tokenise

TASKS = ("sts", "transfer", "few-shot", "clustering", "retrieval", "geometry")
LOGISTIC = "logistic"


@dataclass(frozen=True)
class TokenAccess:
    """The tokens of an encoder: how it cuts sentences, what it makes of their ids, and its word embeddings.

    `tokenise` cuts texts as they stand in the encoder's template, without its special tokens; `encode_ids` gives
    (N, d) vectors of N such lists.
    """

    tokenise: Tokenise
    encode_ids: EncodeIds
    static: StaticEmbeddings


@dataclass(frozen=True)
class TaskData:
    """What the units of a task may read: its `folder`, and what single tasks take beside it.

    `tokenised`: a folder with SentEval's tokenised text (STS, geometry), `details`: scores of subsets too (STS);
    `sentences`: a file of them (geometry); `search`: exact vector search (retrieval); `tokens`: None for an encoder
    without tokens; `classifier`: one of `transfer.CLASSIFIERS`.
    """

    folder: Path
    tokenised: Path | None = None
    details: bool = False
    sentences: Path | None = None
    search: Search | None = None
    tokens: TokenAccess | None = None
    classifier: str = LOGISTIC


@dataclass(frozen=True)
class Repeats:
    """What scores are means of: `count` runs, `what` in words; `deviations` gives each such score its deviation."""

    count: int
    what: str
    deviations: Mapping[str, str]


@dataclass(frozen=True)
class Task:
    """An evaluation task; `units` gives its units by name and raises ValueError where `folder` has not its `layout`.

    `shown` are the score columns of its tables, the main score first, headed by their unit unless `unit_headings` is
    False. The papers average the main score over `sets`, whose numbers of pairs are `pairs` where they are fixed.
    `options` are what it takes beyond the model and the data. `figures` gives the unit that each of its
    figures is drawn from, None for all, and `points` the scores that only figures and comparisons need.
    `token_units` are left out for an encoder without tokens and where files of `layout` are missing. It reads the
    files of the task `data_of`, its own where that is empty.

    `title` and `summary` tell a reader what is scored and how; of the scores in `lower` less is better; `repeats` are
    the runs within one evaluation.
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

    @property
    def main(self) -> str:
        """The score that is averaged and compared with published numbers."""
        return self.shown[0]

    @property
    def folder(self) -> str:
        """The folder of its data beneath a folder with the data of all tasks."""
        return self.data_of or self.name

    def average(self, scores: Mapping[str, Scores]) -> float | None:
        """The papers' average of the main score over the sets; None where sets are missing or there is no average."""
        if not self.sets or not all(name in scores for name in self.sets):
            return None
        return round(sum(scores[name][self.main] for name in self.sets) / len(self.sets), 2)


def find_task(name: str) -> Task:
    """The task of a name. Raises ValueError, with the choices, for an unknown one."""
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}; choose from {', '.join(TASKS)}")
    return import_module(f"cse.evaluation.{name.replace('-', '_')}").TASK


def tasks_with(option: str) -> list[str]:
    """Names of the tasks that have an option."""
    return [name for name in TASKS if option in find_task(name).options]
