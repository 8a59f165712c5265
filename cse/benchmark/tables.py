"""Tables of evaluation results as lines of text: one line per model, with its published row below if there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from cse.benchmark.published import published
from cse.evaluation.significance import over_seeds, seed_groups, seeds_differ

if TYPE_CHECKING:
    from cse.benchmark.results import ModelRecord
    from cse.evaluation import Scores
    from cse.evaluation.tasks import Task

HEADINGS = {"spearman": "", "accuracy": "", "deviation": "+-", "subset_mean": "subsets"}


@dataclass(frozen=True)
class ScoreColumn:
    """One score of one unit (set), and its heading."""

    unit: str
    score: str
    heading: str

    def of(self, scores: Mapping[str, Scores]) -> float | None:
        """A model's score, or None."""
        return scores.get(self.unit, {}).get(self.score)


@dataclass(frozen=True)
class Line:
    """A printed line: its label, a cell for each column, and the average, which may be empty."""

    label: str
    cells: Sequence[str]
    average: str = ""


def columns(task: Task, models: Mapping[str, ModelRecord]) -> list[ScoreColumn]:
    """A column for each shown score that a unit of some model has, in order of first occurrence."""
    units = dict.fromkeys(unit for record in models.values() for unit in record.scores)
    has = {unit: {key for record in models.values() for key in record.scores.get(unit, ())} for unit in units}
    return [
        ScoreColumn(unit, key, f"{unit} {HEADINGS.get(key, key)}".strip() if task.unit_headings else key)
        for unit in units
        for key in task.shown
        if key in has[unit]
    ]


def table(task: Task, models: Mapping[str, ModelRecord]) -> list[str]:
    """The lines of the table: a model, its own start if it was scored, and its published row if there is one.

    For geometry the table of static embeddings follows after an empty line.
    """
    shown = columns(task, models)
    lines = [Line("", [column.heading for column in shown], "average" if task.sets else "")]
    for label, record in models.items():
        cells = [_cell(column.of(record.scores)) for column in shown]
        name = f"  before training ({label})" if record.start else label
        lines.append(Line(name, cells, _cell(task.average(record.scores)) if task.sets else ""))
        lines += _published(task, record.key, shown)
    removal = _removal_lines(models)
    return [*_aligned(lines), *(["", *_aligned(removal)] if removal else [])]


def warnings(task: Task, models: Mapping[str, ModelRecord]) -> list[str]:
    """Warnings that scores are not comparable with the papers': missing sets, sets with another number of pairs."""
    found = {unit for record in models.values() for unit in record.scores}
    absent = [name for name in task.sets if name not in found]
    lines = [f"no files for {', '.join(absent)}: no average over the papers' sets"] if absent else []
    sizes = {(unit, one["pairs"]) for m in models.values() for unit, one in m.scores.items() if unit in task.pairs}
    return lines + [
        f"{unit} has {pairs} pairs here, {task.pairs[unit]} in the papers: not the same task"
        for unit, pairs in sorted(sizes)
        if pairs != task.pairs[unit]
    ]


def seed_lines(task: Task, models: Mapping[str, ModelRecord]) -> list[str]:
    """Lines with mean and deviation of models that differ in the seed only, and differences between such groups."""
    groups: dict[str, list[float]] = {}
    for members in seed_groups({label: record.group for label, record in models.items() if not record.start}).values():
        seeds = {models[label].seed: task.average(models[label].scores) for label in members}
        runs = [run for run in seeds.values() if run is not None]
        if len(runs) == len(seeds) > 1:
            groups[", ".join(members)] = runs
    lines = []
    for label, runs in groups.items():
        mean, deviation = over_seeds(runs)
        lines.append(f"over {len(runs)} seeds: {mean:.2f} +- {deviation:.2f}  ({label})")
    return lines + [f"  {a} minus {b}: {seeds_differ(groups[a], groups[b])}" for a, b in combinations(groups, 2)]


def _published(task: Task, key: str | None, shown: Sequence[ScoreColumn]) -> list[Line]:
    row = published(task.name, key) if task.sets else None
    if row is None:
        return []
    cells = [_cell(row.values.get(column.unit)) if column.score == task.main else "" for column in shown]
    spread = f" +-{row.deviation}" if row.deviation else ""
    where = ", ".join(filter(None, [f"{row.paper} table {row.table}", row.evaluate, row.source]))
    return [Line(f"  published ({where})", cells, f"{_cell(row.average)}{spread}")]


def _removal_lines(models: Mapping[str, ModelRecord]) -> list[Line]:
    """PromptBERT's Table 3 for every model with tokens: averaged static embeddings without biased tokens."""
    lines: list[Line] = []
    for label, record in models.items():
        averages = {k: v["average"] for k, v in record.scores.get("static-bias", {}).items() if "average" in v}
        if averages and not lines:
            lines.append(Line("static embeddings", list(averages)))
        if averages:
            lines.append(Line(label, [_cell(value) for value in averages.values()]))
    return lines


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if abs(value) >= 1 else f"{value:.4g}"


def _aligned(lines: Sequence[Line]) -> list[str]:
    width = max(len(line.label) for line in lines)
    rows = [(*line.cells, line.average) for line in lines]
    sizes = [max(map(len, cells)) + 2 for cells in zip(*rows, strict=True)]
    aligned = ["".join(f"{cell:>{size}}" for cell, size in zip(row, sizes, strict=True)) for row in rows]
    return [f"{line.label:<{width}}{cells}".rstrip() for line, cells in zip(lines, aligned, strict=True)]
