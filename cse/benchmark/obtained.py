"""What the runs of published rows gave: the number of each, and the figure of a whole table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.benchmark.reproduction import Plan
from cse.benchmark.results import read_results
from cse.benchmark.tables import average
from cse.benchmark.task_figures import draw, draw_sweep, draw_templates
from cse.evaluation.tasks import find_task

if TYPE_CHECKING:
    from cse.benchmark.published import PublishedRow


def obtained(row: PublishedRow, plan: Plan, seed: int | None) -> float | None:
    """The number of one run of a row; None where sets are missing."""
    if row.task == "templates":
        scores = json.loads(plan.template_scores.read_text())["templates"]
        return next((entry["score"] for entry in scores if entry["template"] == row.name), None)
    *_, record = read_results(plan.results(row, seed)).models.values()  # an earlier one is outdated
    if not row.read:
        return average(row.task, record.scores)
    value: Any = record.scores
    for key in row.read:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def draw_figure(rows: Sequence[PublishedRow], entries: Sequence[dict[str, Any]], plan: Plan) -> list[Path]:
    """Draw what a whole table shows, a figure of the papers' or PromptBERT's Table 4; the files' paths come back."""
    first, name = rows[0], Path(plan.backbone_of(rows[0])).name
    stem = plan.output / "figures" / f"{first.paper}-{first.table}"
    drawn: list[Path] = []
    runs = [[run for run in entry.get("runs", ()) if run is not None] for entry in entries]
    if first.task == "templates" and any(runs):
        scores = {row.name: found[0] for row, found in zip(rows, runs, strict=True) if found}
        drawn = [draw_templates(scores, name, stem.with_suffix(".png"))]
    elif (first.paper, first.table) == ("dcpcse", "figure-2") and any(runs):
        lengths = {int(row.train.split()[-1]): found for row, found in zip(rows, runs, strict=True) if found}
        drawn = [draw_sweep(lengths, f"{first.method} on {name}", stem.with_suffix(".png"))]
    elif first.task in ("few-shot", "geometry") and first.table.startswith("figure"):
        models = {
            f"{row.name} {seed or ''}".strip(): record
            for row in rows
            for seed in plan.runs(row)
            for record in list(read_results(plan.results(row, seed)).models.values())[-1:]
        }
        drawn = draw(find_task(first.task), models, stem)
    return drawn
