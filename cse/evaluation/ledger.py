"""The ledger of the bundled models: their scores, from the results files, compared with published rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.errors import as_called, command_line
from cse.evaluation.metrics import Figure, margin, over_seeds
from cse.evaluation.published import BASE, ROWS
from cse.evaluation.reproduction import obtained, run_command
from cse.evaluation.results import provenance
from cse.evaluation.scoreboard import AVERAGE
from cse.evaluation.tasks import find_task
from cse.files.weights import available
from cse.files.writing import write_file, write_json

if TYPE_CHECKING:
    from cse.evaluation.published import PublishedRow
    from cse.evaluation.reproduction import Plan
    from cse.evaluation.scoreboard import Scoreboard


@dataclass(frozen=True)
class Comparison:
    """The runs of a row compared with the published number.

    `mean` and standard `deviation` (None for one run) of the runs, `difference` of the mean from the published number
    (None if there is none), and the `verdict` on it (None if the noise is unknown).
    """

    mean: float
    deviation: float | None = None
    difference: float | None = None
    verdict: str | None = None


COMPARED = tuple(Comparison.__dataclass_fields__)


@dataclass(frozen=True)
class LedgerEntry:
    """One row of a ledger: the published number, the `commands` that reproduce it, and their results.

    `published_on` is the paper's backbone, `backbone` the one used here. `runs` are the numbers by seed, or the single
    number of an untrained row; None where there is no number, then `note` says why and there is no `comparison`, as for
    a published checkpoint that is not available. A `copied` row has neither commands nor results.
    """

    row: str
    published: float | None
    published_deviation: float | None
    published_seeds: int
    published_on: str
    task: str
    source: str
    copied: bool
    commands: tuple[str, ...] = ()
    backbone: str | None = None
    seeds: tuple[int, ...] = ()
    runs: tuple[float | None, ...] = ()
    note: str | None = None
    comparison: Comparison | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON object of a row in a ledger file, with the comparison's numbers at the top level."""
        value = asdict(self)
        comparison = value.pop("comparison") or {}
        if self.note is None:
            del value["note"]
        if self.copied:
            value = {key: item for key, item in value.items() if key not in ("backbone", "seeds", "runs")}
        return value | {key: item for key, item in comparison.items() if item is not None or key == "deviation"}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LedgerEntry:
        """The entry of a row's JSON object. Raises TypeError for one that lacks a key or has an unknown one."""
        items: dict[str, Any] = {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}
        compared = {key: items.pop(key) for key in COMPARED if key in items}
        return cls(**items, comparison=Comparison(**compared) if compared else None)


def judged(figure: Figure, row: PublishedRow) -> Comparison:
    """Compare the figure of runs with a published row: mean, deviation, difference, and a verdict from its interval.

    Without several runs on either side the noise is unknown, and there is no verdict.
    """
    digits = 4 if abs(figure.value) < 1 else 2  # cosines are not percentages
    deviation = None if figure.deviation is None else round(figure.deviation, digits)
    if row.average is None:
        return Comparison(round(figure.value, digits), deviation)
    difference = figure.value - row.average
    noise = margin(figure, Figure(row.average, row.deviation, row.seeds))
    verdict = None if noise is None else "inside the noise" if abs(difference) <= noise else "a difference"
    return Comparison(round(figure.value, digits), deviation, round(difference, digits), verdict)


def shipped_ledger(board: Scoreboard) -> list[LedgerEntry]:
    """An entry for each published average of the task that has a counterpart among the board's models.

    Counterparts have the same method or pooling; the papers' are on BERT-base. A number that a paper repeats in
    another table is listed once. A board without an average has no entries.
    """
    if not board.columns or board.columns[0].unit != AVERAGE:
        return []
    entries: dict[tuple[str, float | None], LedgerEntry] = {}
    protocol, command = board.results.protocol, as_called(board.results.command)
    for label, row in board.rows.items():
        backbone, _, reading = (row.record.key or "").partition(" ")
        for published in ROWS:
            own = published.task == board.task.name and published.key == f"{BASE} {reading}"
            foreign = published.copied or published.checkpoint or published.supervised or published.prefix
            if not own or foreign or published.average is None or (label, published.average) in entries:
                continue
            source = published.source
            if "--final-period" in published.evaluate and not protocol.final_period:
                source = "; ".join(filter(None, [source, "published with a full stop added to texts that lack one"]))
            comparison = None if row.figures[0] is None else judged(row.figures[0], published)
            entries[label, published.average] = LedgerEntry(
                f"{published.name} ({published.paper}, table {published.table})", published.average,
                published.deviation, published.seeds, published.backbone, published.task, source, copied=False,
                commands=(command,), backbone=backbone, seeds=row.seeds,
                note=None if comparison else "no number to compare", comparison=comparison,
            )  # fmt: skip
    return list(entries.values())


HEADINGS = ("row", "published", "obtained", "difference", "backbone, seeds", "published on, source")


def reproduce(rows: Sequence[PublishedRow], plan: Plan, report: Callable[[str], None]) -> list[LedgerEntry]:
    """Reproduce a table's rows one by one and return their entries; the ledger in `plan.output` is updated after each.

    `report` gets a line for each row and each command. Raises ValueError if a command fails, and as `obtained` and
    `write_ledger` do.
    """
    entries: list[LedgerEntry] = []
    for number, row in enumerate(rows, start=1):
        report(f"{number}/{len(rows)} {row.name}: {'copied, not run' if row.copied else f'published {row.average}'}")
        entries.append(_reproduced(row, plan, report))
        write_ledger(plan.output / f"{row.paper}-{row.table}", row.paper, row.table, entries)
    return entries


def _reproduced(row: PublishedRow, plan: Plan, report: Callable[[str], None]) -> LedgerEntry:
    """Run a row's commands that are not done, passing each to `report`, and return its ledger entry."""
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
        reason = "sets are missing" if find_task(row.task).sets or row.read else "it is a picture"
        return replace(entry, note=f"no number to compare: {reason}")
    return replace(entry, comparison=judged(over_seeds(whole), row))


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
    for entry in entries:
        published = _spread(entry.published, entry.published_deviation)
        if entry.copied:
            lines.append(f"| {entry.row} | {published} | copied, not run | | | {entry.source} |")
            continue
        obtained, difference, compared = entry.note or "-", "", entry.comparison
        if compared is not None:
            obtained = _spread(compared.mean, compared.deviation)
            if compared.difference is not None:
                difference = f"{compared.difference:+.2f} {compared.verdict or ''}".strip()
        backbone = f"{entry.backbone}, {' '.join(map(str, entry.seeds)) or 'untrained'}"
        origin = ", ".join(filter(None, [entry.published_on, entry.source]))
        lines.append(f"| {entry.row} | {published} | {obtained} | {difference} | {backbone} | {origin} |")
    return lines


def _spread(value: float | None, deviation: float | None) -> str:
    return "" if value is None else f"{value:g}" + (f" ± {deviation:g}" if deviation else "")
