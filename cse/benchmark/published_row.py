"""What a published row is: which paper and table it stands in, what it is a row of, and its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cse.evaluation.tasks import find_task

PAPERS = ("promptbert", "dcpcse", "conpvp", "published")  # the last: what checkpoints on the hub score
BASE, CASED, LARGE = "bert-base-uncased", "bert-base-cased", "bert-large-uncased"
ROBERTA, ROBERTA_LARGE = "roberta-base", "roberta-large"
SENTEVAL = "--classifier senteval"
SETS = {name: find_task(name).sets for name in ("sts", "transfer", "clustering")}  # in the papers' order


@dataclass(frozen=True)
class PublishedRow:
    """One published row: `values` by set (x 100), their `average`, and its `deviation` over `seeds` runs.

    `key` is what the row is of, as the benchmark makes it of an encoder: backbone and pooling or method. A row with a
    `method` is trained, `supervised` or not, with a `prefix` length where the row varies it; `evaluate` are the options
    of `scripts.evaluate` that it needs; `read` is the way to the number in its results where that is not the task's
    average. `copied` marks what no command here makes: the paper took it from elsewhere, or it needs something that is
    not here; `source` says where it stands, and what is odd about it. A `checkpoint` is read as published; its hub id
    is in the place of the backbone.
    """

    paper: str
    table: str
    name: str
    key: str
    task: str
    average: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    deviation: float | None = None
    seeds: int = 1
    method: str | None = None
    supervised: bool = False
    prefix: int | None = None
    evaluate: str = ""
    read: tuple[str, ...] = ()
    copied: bool = False
    checkpoint: bool = False
    source: str = ""

    @property
    def backbone(self) -> str:
        """The backbone it was published on."""
        return self.key.partition(" ")[0]

    @property
    def reading(self) -> str:
        """The pooling, method or family by which the backbone is read; empty for word vectors."""
        return self.key.partition(" ")[2]

    @property
    def train_options(self) -> list[str]:
        """The options of `scripts.train` beyond method and backbone."""
        prefix = [] if self.prefix is None else ["--prefix", str(self.prefix)]
        return [*(["--supervised"] if self.supervised else []), *prefix]


def published_row(
    table: str, name: str, key: str, numbers: str | float | None = None, task: str = "sts", **more: Any
) -> PublishedRow:
    """A row from the numbers of its sets in the papers' order, the average last, or from the average alone."""
    values = [] if numbers is None else [float(number) for number in str(numbers).split()]
    average = values.pop() if values else None
    # geometry averages over the STS tasks too
    sets = dict(zip(SETS.get(task, SETS["sts"]), values, strict=True)) if values else {}
    return PublishedRow(table=table, name=name, key=key, task=task, average=average, values=sets, **more)
