"""The ledger of a reproduction: each published row, the project's own commands for it, and what they gave."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.benchmark.obtained import obtained
from cse.benchmark.reproduction import Plan, run_command
from cse.benchmark.results import provenance
from cse.files import write_json

if TYPE_CHECKING:
    from cse.benchmark.published import PublishedRow


def fill_in(row: PublishedRow, plan: Plan, report: Callable[[str], None]) -> dict[str, Any]:
    """Run what is not yet done of a row, each command given to `report`; its ledger entry comes back."""
    commands = plan.commands(row)
    for command in commands:
        run_command(command, plan, row, report)
    entry: dict[str, Any] = {
        "row": row.name, "published": row.average, "published_deviation": row.deviation, "published_seeds": row.seeds,
        "published_on": row.key.split()[0], "task": row.task, "source": row.source, "copied": row.copied,
        "commands": commands,
    }  # fmt: skip
    if row.copied:
        return entry
    runs = [obtained(row, plan, seed) for seed in plan.runs(row)]
    whole = [run for run in runs if run is not None]
    entry |= {"backbone": plan.backbone_of(row), "seeds": list(plan.seeds) if row.method else [], "runs": runs}
    if len(whole) < len(runs) or not whole:
        return {**entry, "note": "no number to compare: sets are missing"}
    return {**entry, **judged(whole, row)}


def judged(runs: Sequence[float], row: PublishedRow) -> dict[str, Any]:
    """Mean, deviation and difference of runs, and whether no difference lies inside its 95 % interval.

    Where neither side has several runs nothing can be said of noise, and nothing is.
    """
    from cse.benchmark.significance import Sample, margin, over_seeds

    mean, deviation = over_seeds(runs)
    digits = 4 if abs(mean) < 1 else 2  # cosines are not in percent
    found: dict[str, Any] = {"mean": round(mean, digits)}
    found["deviation"] = None if deviation is None else round(deviation, digits)
    if row.average is None:
        return found
    difference = mean - row.average
    found["difference"] = round(difference, digits)
    noise = margin(Sample(deviation, len(runs)), Sample(row.deviation, row.seeds))
    if noise is not None:
        found["verdict"] = "inside the noise" if abs(difference) <= noise else "a difference"
    return found


def write_ledger(stem: Path, paper: str, table: str, entries: Sequence[dict[str, Any]]) -> None:
    """Write `stem.json` and `stem.md`; rows of an earlier call that are not among `entries` stay."""
    path = stem.with_name(f"{stem.name}.json")
    earlier = json.loads(path.read_text())["rows"] if path.is_file() else []
    fresh = {entry["row"]: entry for entry in entries}
    kept = [fresh.pop(entry["row"], entry) for entry in earlier] + list(fresh.values())
    write_json(path, {"paper": paper, "table": table, **provenance(), "rows": kept})
    stem.with_name(f"{stem.name}.md").write_text("\n".join(markdown(kept)) + "\n")


def markdown(entries: Sequence[dict[str, Any]]) -> list[str]:
    """The ledger as a Markdown table."""
    head = ("row", "published", "obtained", "difference", "backbone, seeds", "published on, source")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for entry in entries:
        published = _spread(entry["published"], entry["published_deviation"])
        if entry["copied"]:
            lines.append(f"| {entry['row']} | {published} | copied, not run | | | {entry['source']} |")
            continue
        difference = f"{entry['difference']:+.2f} {entry.get('verdict', '')}".strip() if "difference" in entry else ""
        obtained = _spread(entry.get("mean"), entry.get("deviation")) or entry.get("note", "-")
        seeds = " ".join(map(str, entry["seeds"])) or "untrained"
        origin = ", ".join(filter(None, [entry["published_on"], entry["source"]]))
        setting = f"{entry['backbone']}, {seeds} | {origin}"
        lines.append(f"| {entry['row']} | {published} | {obtained} | {difference} | {setting} |")
    return lines


def _spread(value: float | None, deviation: float | None) -> str:
    return "" if value is None else f"{value:g}" + (f" ± {deviation:g}" if deviation else "")
