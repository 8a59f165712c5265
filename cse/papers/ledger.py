"""The ledger of a reproduction: each published row, the commands that reproduce it, and their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cse.benchmark.results import provenance
from cse.errors import command_line
from cse.evaluation.tasks import find_task
from cse.papers.ledger_entry import LedgerEntry, judged
from cse.papers.obtained import obtained
from cse.papers.reproduction import run_command
from cse.storage.weights import available
from cse.storage.writing import write_file, write_json

if TYPE_CHECKING:
    from cse.benchmark.published import PublishedRow
    from cse.papers.reproduction import Plan

HEADINGS = ("row", "published", "obtained", "difference", "backbone, seeds", "published on, source")


def reproduce(rows: Sequence[PublishedRow], plan: Plan, report: Callable[[str], None]) -> list[LedgerEntry]:
    """Reproduce a table's rows one by one and return their entries; the ledger in `plan.output` is updated after each.

    `report` gets a line for each row and each command. Raises as `fill_in` and `write_ledger` do.
    """
    entries: list[LedgerEntry] = []
    for number, row in enumerate(rows, start=1):
        what = "copied, not run" if row.copied else f"published {row.average}"
        report(f"{number}/{len(rows)} {row.name}: {what}")
        entries.append(fill_in(row, plan, report))
        write_ledger(plan.output / f"{row.paper}-{row.table}", row.paper, row.table, entries)
    return entries


def fill_in(row: PublishedRow, plan: Plan, report: Callable[[str], None]) -> LedgerEntry:
    """Run a row's commands that are not done, passing each to `report`, and return its ledger entry.

    Raises ValueError if a command fails, and as `obtained` does.
    """
    commands = plan.commands(row)
    entry = LedgerEntry(
        row.name, row.average, row.deviation, row.seeds, row.backbone, row.task, row.source, row.copied,
        tuple(command_line(*words) for words in commands),
    )  # fmt: skip
    if row.copied:
        return entry
    if row.checkpoint and not available(row.backbone):
        return replace(entry, backbone=row.backbone, note="needs the model hub, or the checkpoint in its cache")
    for command in commands:
        run_command(command, plan, row, report)
    runs = tuple(obtained(row, plan, seed) for seed in plan.runs(row))
    seeds = tuple(plan.seeds) if row.method else ()
    entry = replace(entry, backbone=plan.backbone_of(row), seeds=seeds, runs=runs)
    whole = [run for run in runs if run is not None]
    if len(whole) < len(runs) or not whole:
        return replace(entry, note=_why_none(row))
    return replace(entry, comparison=judged(whole, row))


def _why_none(row: PublishedRow) -> str:
    if find_task(row.task).sets or row.read:
        return "no number to compare: sets are missing"
    return "no number to compare: it is a picture"


def read_ledger(path: Path) -> list[LedgerEntry]:
    """The entries of a ledger file. Raises ValueError, naming the file, if it is not a ledger."""
    try:
        return [LedgerEntry.from_json(value) for value in json.loads(path.read_text(encoding="utf-8"))["rows"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a ledger ({error}); move it away or give another `output`") from error


def write_ledger(stem: Path, paper: str, table: str, entries: Sequence[LedgerEntry]) -> None:
    """Write `stem.json` and `stem.md`; earlier rows that are not in `entries` are kept.

    Raises ValueError if `stem.json` exists and is not a ledger.
    """
    path = stem.with_name(f"{stem.name}.json")
    earlier = read_ledger(path) if path.is_file() else []
    fresh = {entry.row: entry for entry in entries}
    kept = [fresh.pop(entry.row, entry) for entry in earlier] + list(fresh.values())
    rows = [entry.to_json() for entry in kept]
    write_json(path, {"paper": paper, "table": table, **provenance(), "rows": rows})
    text = "\n".join(markdown(kept)) + "\n"
    write_file(stem.with_name(f"{stem.name}.md"), lambda fresh: fresh.write_text(text, encoding="utf-8"))


def markdown(entries: Sequence[LedgerEntry]) -> list[str]:
    """The ledger as a Markdown table, line by line."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    return [*lines, *map(_line, entries)]


def _line(entry: LedgerEntry) -> str:
    published = _spread(entry.published, entry.published_deviation)
    if entry.copied:
        return f"| {entry.row} | {published} | copied, not run | | | {entry.source} |"
    found, difference, compared = entry.note or "-", "", entry.comparison
    if compared is not None:
        found = _spread(compared.mean, compared.deviation)
        if compared.difference is not None:
            difference = f"{compared.difference:+.2f} {compared.verdict or ''}".strip()
    seeds = " ".join(map(str, entry.seeds)) or "untrained"
    origin = ", ".join(filter(None, [entry.published_on, entry.source]))
    return f"| {entry.row} | {published} | {found} | {difference} | {entry.backbone}, {seeds} | {origin} |"


def _spread(value: float | None, deviation: float | None) -> str:
    return "" if value is None else f"{value:g}" + (f" ± {deviation:g}" if deviation else "")
