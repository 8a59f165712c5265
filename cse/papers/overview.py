"""Overview of the papers' tables and figures: reproducible, with their needs, or copied."""

from __future__ import annotations

from collections.abc import Sequence

from cse.benchmark.published import PAPERS, ROWS, PublishedRow, check_paper, table_order
from cse.evaluation.tasks import find_task
from cse.papers.listings import LISTINGS, WORDS

CHECKPOINTS = "published"  # rows of checkpoints, each its own backbone
DRAWING = "a drawing of the method, without numbers"
UNTIED = "runs here on small models: pretrain --untied, evaluate geometry --figures"
OTHERS = {
    WORDS: "runs here with --backbone bundled; needs bert-base-uncased",
    ("promptbert", "figure-2"): UNTIED,
    ("dcpcse", "figure-1"): DRAWING,
    ("conpvp", "figure-1"): "runs here: tokens --template",
    **{("conpvp", f"figure-{number}"): DRAWING for number in (2, 3)},
}


def overview() -> list[str]:
    """A line for each table and figure: paper, name, state."""
    return [f"{paper:<11} {table:<10} {state(paper, table)}" for paper, table in _known()]


def _known() -> list[tuple[str, str]]:
    """(paper, table) of every table and figure, in the papers' order."""
    found = {(row.paper, row.table) for row in ROWS} | LISTINGS.keys() | OTHERS.keys()
    return sorted(found, key=lambda each: (PAPERS.index(each[0]), *table_order(each[1])))


def state(paper: str, table: str) -> str:
    """The state of a table or figure: it runs here, with the needs of its rows, or it was copied."""
    if (paper, table) in LISTINGS:
        return "runs here: a listing of this project's constants"
    if (paper, table) in OTHERS:
        return OTHERS[paper, table]
    rows = [row for row in ROWS if (row.paper, row.table) == (paper, table)]
    running = [row for row in rows if not row.copied]
    if not running:
        return f"copied: {'; '.join(dict.fromkeys(row.source for row in rows))}"
    copied = f"; {len(rows) - len(running)} of {len(rows)} rows copied" if len(running) < len(rows) else ""
    anywhere = "" if paper == CHECKPOINTS else " with --backbone bundled"
    return f"runs here{anywhere}; needs {', '.join(needs(running))}{copied}"


def needs(rows: Sequence[PublishedRow]) -> list[str]:
    """The papers' backbones and the data that running the rows needs."""
    texts = ["--triplets" if row.supervised else "--train-data" for row in rows if row.method]
    folders = [find_task(row.task).folder if row.task != "templates" else "sts" for row in rows]
    dev = ["sts"] if texts else []  # trained rows are selected on STS-B dev
    return list(dict.fromkeys([*(row.backbone for row in rows), *folders, *dev, *texts]))


def check_known(paper: str, table: str) -> None:
    """Raise ValueError, with the choices or the state, for a paper or table that is unknown or not reproducible."""
    check_paper(paper)
    tables = [name for owner, name in _known() if owner == paper]
    if table not in tables:
        raise ValueError(f"{paper} has no table {table!r}; choose from {', '.join(tables)}")
    if (paper, table) in OTHERS and (paper, table) != WORDS:
        raise ValueError(f"{paper} {table}: {OTHERS[paper, table]}")
