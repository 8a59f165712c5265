"""The papers' numbers with their sources, one row of `published.tsv` each.

A row is found by paper and table, or by its `key`, which the benchmark derives from an encoder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cse.evaluation.tasks import find_task

PUBLISHED_FILE = Path(__file__).with_name("published.tsv")
PAPERS = ("promptbert", "dcpcse", "conpvp", "published")  # the last: scores of checkpoints on the hub
BASE = "bert-base-uncased"
SETS = {name: find_task(name).sets for name in ("sts", "transfer", "clustering")}  # in the papers' order
YES, WITHIN = "yes", " > "


@dataclass(frozen=True)
class PublishedRow:
    """One published row: `values` by set (x 100), their `average`, and its `deviation` over `seeds` runs.

    `key` is the backbone and the pooling or method, as the benchmark derives it from an encoder. A row with a `method`
    is trained, `supervised` or not, with a `prefix` length if the row varies it; `evaluate` are its options of the
    command `evaluate`; `read` is the path to its number in the results if that is not the task's average. `copied` rows
    cannot be reproduced here: the paper copied them, or something they need is missing; `source` names the source and
    any peculiarity. A `checkpoint` is used as published; its hub id replaces the backbone.
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
        """The backbone of the row."""
        return self.key.partition(" ")[0]

    @property
    def reading(self) -> str:
        """The pooling, method or family; empty for word vectors."""
        return self.key.partition(" ")[2]

    @property
    def train_options(self) -> list[str]:
        """The options of `train` beyond method and backbone."""
        prefix = [] if self.prefix is None else ["--prefix", str(self.prefix)]
        return [*(["--supervised"] if self.supervised else []), *prefix]


def read_rows(path: Path = PUBLISHED_FILE) -> tuple[PublishedRow, ...]:
    """The rows of the table; `numbers` are those of the sets, in the papers' order, and the average, or only this.

    Raises ValueError, naming the line, if a cell is missing or the numbers do not match the sets.
    """
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = []
    for number, line in enumerate(lines, start=2):
        try:
            cells = dict(zip(header.split("\t"), line.split("\t"), strict=True))
            *values, average = map(float, cells["numbers"].split()) if cells["numbers"] else (None,)
            sets = SETS.get(cells["task"], SETS["sts"])  # geometry averages over the STS tasks too
            row = PublishedRow(
                paper=cells["paper"], table=cells["table"], name=cells["name"], key=cells["key"], task=cells["task"],
                average=average, values=dict(zip(sets, values, strict=True)) if values else {},
                deviation=float(cells["deviation"]) if cells["deviation"] else None, seeds=int(cells["seeds"] or 1),
                method=cells["method"] or None, supervised=cells["supervised"] == YES,
                prefix=int(cells["prefix"]) if cells["prefix"] else None, evaluate=cells["evaluate"],
                read=tuple(cells["read"].split(WITHIN)) if cells["read"] else (), copied=cells["copied"] == YES,
                checkpoint=cells["checkpoint"] == YES, source=cells["source"],
            )  # fmt: skip
        except ValueError as error:
            raise ValueError(f"{path.name}, line {number}: {error}") from error
        rows.append(row)
    return tuple(rows)


ROWS = read_rows()
TEMPLATES = {row.name: row.average for row in ROWS if row.task == "templates"}  # PromptBERT's Table 4, STS-B dev


def rows(paper: str, table: str) -> list[PublishedRow]:
    """The rows of a table. Raises ValueError, with the choices, for an unknown paper or table."""
    check_paper(paper)
    selected = [row for row in ROWS if row.paper == paper and row.table == table]
    if not selected:
        tables = {row.table for row in ROWS if row.paper == paper}
        known = sorted(tables, key=table_order)
        raise ValueError(f"{paper} has no table {table!r} here; choose from {', '.join(known)}")
    return selected


def check_paper(paper: str) -> None:
    """Raise ValueError, with the choices, for an unknown paper."""
    if paper not in PAPERS:
        raise ValueError(f"unknown paper {paper!r}; choose from {', '.join(PAPERS)}")


def table_order(name: str) -> tuple[bool, int, str]:
    """Sort key of tables: by number, figures last."""
    return not name.isdigit(), len(name), name


def published(task: str, key: str | None) -> PublishedRow | None:
    """The first published row of a task for a `key`."""
    return next((row for row in ROWS if row.task == task and row.key == key), None)
