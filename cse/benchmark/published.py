"""The papers' own numbers: every row this project can run, and rows that others' papers copied, each with its source.

A row is found by paper and table, or by what it is a row of: its `key`, which the benchmark makes of an encoder.
"""

from __future__ import annotations

from cse.benchmark.published_checkpoints import rows as checkpoints
from cse.benchmark.published_row import PAPERS, SETS, PublishedRow
from cse.benchmark.published_rows import GENERATED, PAPER_ROWS, TEMPLATES

ROWS = (*PAPER_ROWS, *checkpoints())

__all__ = [
    "GENERATED", "PAPERS", "ROWS", "SETS", "TEMPLATES", "PublishedRow", "check_paper", "published", "rows",
    "table_order",
]  # fmt: skip


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
