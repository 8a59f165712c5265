"""Results of the runs of published rows: the number of each run, and the figure of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.benchmark.results import read_results
from cse.benchmark.task_figures import draw, draw_sweep, draw_templates
from cse.evaluation.tasks import find_task
from cse.papers.template_search import read_scores

if TYPE_CHECKING:
    from cse.benchmark.published import PublishedRow
    from cse.benchmark.results import ModelRecord
    from cse.papers.reproduction import Plan


def obtained(row: PublishedRow, plan: Plan, seed: int | None) -> float | None:
    """The number of one run of a row: the task's average, or the value at `row.read`; None if sets are missing.

    Raises ValueError if its results file is damaged or has no record of the run's model.
    """
    if row.task == "templates":
        return read_scores(plan.template_scores).scores.get(row.name)
    record = run_record(row, plan, seed)
    if not row.read:
        return find_task(row.task).average(record.scores)
    value: Any = record.scores
    for key in row.read:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def run_record(row: PublishedRow, plan: Plan, seed: int | None) -> ModelRecord:
    """The record of a run in its results file, which may also have outdated records.

    It is found by the model's name. If several records have this name (after the weights changed) or none (if the path
    was written differently), the model is opened and its fingerprint decides. Raises ValueError if it is missing.
    """
    from cse.benchmark.models import ModelSelection

    path, model, pooling = plan.results(row, seed), plan.model(row, seed), plan.pooling(row)
    records = list(read_results(path).models.values())
    named = [record for record in records if record.model == model]
    if len(named) == 1:
        return named[0]
    poolings, bare = [pooling] if pooling else [], "--bare" in row.evaluate.split()
    (candidate,) = ModelSelection([model], poolings, bare=bare).candidates()
    fingerprint = candidate.open().encoder.fingerprint
    found = next((record for record in records if record.fingerprint == fingerprint), None)
    if found is None:
        known = ", ".join(filter(None, [pooling, fingerprint]))
        raise ValueError(f"{path}: no record of {model} ({known}); delete it and run this again")
    return found


def draw_figure(rows: Sequence[PublishedRow], runs: Sequence[Sequence[float | None]], plan: Plan) -> list[Path]:
    """Draw a figure of the papers, or PromptBERT's Table 4, and return the paths; no paths for other tables.

    `runs` are the numbers of each row's runs; rows without a number are left out.
    """
    first, name = rows[0], Path(plan.backbone_of(rows[0])).name
    stem = plan.output / "figures" / f"{first.paper}-{first.table}"
    whole = [(row, found) for row, values in zip(rows, runs, strict=True) if (found := _present(values))]
    if first.task == "templates" and whole:
        scores = {row.name: found[0] for row, found in whole}
        return [draw_templates(scores, name, stem.with_suffix(".png"))]
    if first.prefix is not None and whole:  # DCPCSE's Figure 2
        lengths = {row.prefix: found for row, found in whole if row.prefix is not None}
        return [draw_sweep(lengths, f"{first.method} on {name}", stem.with_suffix(".png"))]
    if first.task in ("few-shot", "geometry") and first.table.startswith("figure"):
        labels = {f"{row.name} {seed or ''}".strip(): (row, seed) for row in rows for seed in plan.runs(row)}
        models = {label: run_record(row, plan, seed) for label, (row, seed) in labels.items()}
        return draw(find_task(first.task), models, stem)
    return []


def _present(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
