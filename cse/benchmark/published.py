"""The papers' own numbers, one row of `published.tsv` each, with their sources. Only facts stand there.

A row is found by paper and table, or by what it is a row of: its `key`, which the benchmark makes of an encoder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cse.evaluation.tasks import find_task

FILE = Path(__file__).with_name("published.tsv")
PAPERS = ("promptbert", "dcpcse", "conpvp", "published")  # the last: what checkpoints on the hub score
BASE = "bert-base-uncased"
SETS = {name: find_task(name).sets for name in ("sts", "transfer", "clustering")}  # in the papers' order
YES, WITHIN = "yes", " > "


@dataclass(frozen=True)
class PublishedRow:
    """One published row: `values` by set (x 100), their `average`, and its `deviation` over `seeds` runs.

    `key` is what the row is of, as the benchmark makes it of an encoder: backbone and pooling or method. A row with a
    `method` is trained, `supervised` or not, with a `prefix` length where the row varies it; `evaluate` are the options
    of `evaluate` that it needs; `read` is the way to the number in its results where that is not the task's
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
        """The options of `train` beyond method and backbone."""
        prefix = [] if self.prefix is None else ["--prefix", str(self.prefix)]
        return [*(["--supervised"] if self.supervised else []), *prefix]


def read_rows(path: Path = FILE) -> tuple[PublishedRow, ...]:
    """The rows of the table. Its `numbers` are those of the sets in the papers' order and their average, or this alone.

    Raises ValueError, naming the line, where a cell is missing or the sets have other numbers.
    """
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, start=2):
        try:
            found.append(_row(dict(zip(header.split("\t"), line.split("\t"), strict=True))))
        except ValueError as error:
            raise ValueError(f"{path.name}, line {number}: {error}") from error
    return tuple(found)


def _row(cells: dict[str, str]) -> PublishedRow:
    *values, average = map(float, cells["numbers"].split()) if cells["numbers"] else (None,)
    sets = SETS.get(cells["task"], SETS["sts"])  # geometry averages over the STS tasks too
    return PublishedRow(
        paper=cells["paper"], table=cells["table"], name=cells["name"], key=cells["key"], task=cells["task"],
        average=average, values=dict(zip(sets, values, strict=True)) if values else {},
        deviation=float(cells["deviation"]) if cells["deviation"] else None, seeds=int(cells["seeds"] or 1),
        method=cells["method"] or None, supervised=cells["supervised"] == YES,
        prefix=int(cells["prefix"]) if cells["prefix"] else None, evaluate=cells["evaluate"],
        read=tuple(cells["read"].split(WITHIN)) if cells["read"] else (), copied=cells["copied"] == YES,
        checkpoint=cells["checkpoint"] == YES, source=cells["source"],
    )  # fmt: skip


ROWS = read_rows()
TEMPLATES = {row.name: row.average for row in ROWS if row.task == "templates"}  # PromptBERT's Table 4, STS-B dev


def rows(paper: str, table: str) -> list[PublishedRow]:
    """The rows of a table. Raises ValueError, with the choices, for an unknown paper or table."""
    check_paper(paper)
    found = [row for row in ROWS if row.paper == paper and row.table == table]
    if not found:
        tables = {row.table for row in ROWS if row.paper == paper}
        known = sorted(tables, key=table_order)
        raise ValueError(f"{paper} has no table {table!r} here; choose from {', '.join(known)}")
    return found


def check_paper(paper: str) -> None:
    """Raise ValueError, with the choices, for an unknown paper."""
    if paper not in PAPERS:
        raise ValueError(f"unknown paper {paper!r}; choose from {', '.join(PAPERS)}")


def table_order(name: str) -> tuple[bool, int, str]:
    """What tables are sorted by: their numbers, then the figures."""
    return not name.isdigit(), len(name), name


def published(task: str, key: str | None) -> PublishedRow | None:
    """The first published row of a task for a `key`."""
    return next((row for row in ROWS if row.task == task and row.key == key), None)
