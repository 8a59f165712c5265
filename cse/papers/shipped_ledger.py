"""The ledger of the bundled models: their scores, from the results files, compared with published rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse.benchmark.published import BASE, ROWS
from cse.benchmark.scoreboard import AVERAGE
from cse.errors import as_called
from cse.evaluation.significance import Sample
from cse.papers.ledger_entry import LedgerEntry, compared

if TYPE_CHECKING:
    from cse.benchmark.published import PublishedRow
    from cse.benchmark.results import Protocol
    from cse.benchmark.scoreboard import Row, Scoreboard


def shipped_ledger(board: Scoreboard) -> list[LedgerEntry]:
    """An entry for each published average of the task that has a counterpart among the board's models.

    Counterparts have the same method or pooling; the papers' are on BERT-base. A number that a paper repeats in
    another table is listed once. A board without an average has no entries.
    """
    if not board.columns or board.columns[0].unit != AVERAGE:
        return []
    found: dict[tuple[str, float | None], LedgerEntry] = {}
    for label, row in board.rows.items():
        for published in ROWS:
            if is_counterpart(published, row, board.task.name):
                found.setdefault((label, published.average), entry(board, row, published))
    return list(found.values())


def is_counterpart(published: PublishedRow, row: Row, task: str) -> bool:
    """True if the row has the method or pooling of the published one, on another backbone."""
    reading = (row.record.key or "").partition(" ")[2]
    own = published.task == task and published.key == f"{BASE} {reading}" and published.average is not None
    return own and not (published.copied or published.checkpoint or published.supervised or published.prefix)


def entry(board: Scoreboard, row: Row, published: PublishedRow) -> LedgerEntry:
    """The published row with the command of the results file, compared with the row's mean."""
    figure = row.figures[0]
    own = None if figure is None else compared(Sample(figure.deviation, figure.count), figure.value, published)
    title = f"{published.name} ({published.paper}, table {published.table})"
    source = "; ".join(filter(None, [published.source, missing_options(published, board.results.protocol)]))
    return LedgerEntry(
        title, published.average, published.deviation, published.seeds, published.backbone, published.task, source,
        copied=False, commands=(as_called(board.results.command),), backbone=(row.record.key or "").partition(" ")[0],
        seeds=row.seeds, note=None if own else "no number to compare", comparison=own,
    )  # fmt: skip


def missing_options(published: PublishedRow, protocol: Protocol) -> str:
    """A note on options of the published evaluation that the bundled one lacks, or an empty string."""
    lacking = "--final-period" in published.evaluate and not protocol.final_period
    return "published with a full stop added to texts that lack one" if lacking else ""
