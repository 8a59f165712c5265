"""The reproduction ledger on the page: published scores and those of the shipped models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse.app.drawing import html
from cse.app.models.models import Failure

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.evaluation.ledger import LedgerEntry

HEADS = ("Published row", "Published", "Obtained here", "Difference", "On", "Remarks")
READING = (
    "What the papers published beside what the bundled models obtained on the same task, from the shipped results. The "
    "papers' backbone is far larger, so a gap is expected; the command reproduce makes the same table with any "
    "backbone."
)


def ledger_entries(state: AppState) -> list[LedgerEntry]:
    """Return the entries of all boards. Raises ValueError if the shipped results cannot be read."""
    from cse.evaluation.ledger import shipped_ledger

    if isinstance(state.boards, Failure):
        raise ValueError(state.boards.reason)
    return [entry for board in state.boards.values() for entry in shipped_ledger(board)]


def ledger_html(state: AppState) -> str:
    """Return the table; empty without entries."""
    entries = [] if isinstance(state.boards, Failure) else ledger_entries(state)
    if not entries:
        return ""
    table = html.headed(HEADS, map(entry_html, entries), "Reproduction ledger", "cse-table cse-moves")
    return (
        f'<section class="cse-board"><h2 id="results-ledger">Reproduction ledger</h2><p>{READING}</p>'
        f"{html.fold('Table of the ledger', table)}</section>"
    )


def entry_html(entry: LedgerEntry) -> str:
    """Return a row: both scores, their difference, the backbones and remarks."""
    compared = entry.comparison
    seeds = f", seeds {', '.join(map(str, entry.seeds))}" if entry.seeds else ""
    cells = (
        spread(entry.published, entry.published_deviation),
        html.escape(entry.note or "") if compared is None else spread(compared.mean, compared.deviation),
        "" if compared is None or compared.difference is None else difference(compared.difference, compared.verdict),
        html.escape(f"{entry.published_on}; here {entry.backbone}{seeds}"),
        html.escape(entry.source),
    )
    return html.row(cells, html.escape(entry.row))


def spread(value: float | None, deviation: float | None) -> str:
    """Format a mean and its standard deviation."""
    return "" if value is None else f"{value:.2f}" + (f" <small>± {deviation:.2f}</small>" if deviation else "")


def difference(value: float, verdict: str | None) -> str:
    """Format a difference and its verdict, which needs several runs."""
    return f"{value:+.2f} <small>{verdict or 'single runs: it may be chance'}</small>"
