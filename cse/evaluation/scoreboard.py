"""Scoreboards: a folder of results files as one table per task, with the best of each column and ties within noise.

`TASK.json` has the models of a table. Other files of the same task and protocol add seeds to them: records of one
`group`, which differ in their seed only, become one row with mean and deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cse.evaluation.metrics import Figure, margin, over_seeds
from cse.evaluation.results import ModelRecord, Results, ScoreColumn, columns, read_results, seed_groups
from cse.evaluation.tasks import TASKS, find_task
from cse.methods.catalogue import UNTRAINED

if TYPE_CHECKING:
    from cse.evaluation import Scores
    from cse.evaluation.tasks import Task

AVERAGE = "average"


@dataclass(frozen=True)
class Verdict:
    """Labels of the `best` rows of a column, of rows `alike` (within the noise of the best), and of rows `apart`.

    A row is in neither if the noise is unknown.
    """

    best: tuple[str, ...]
    alike: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A model's `figures`, one per column or None, each the mean over `seeds` if there are several.

    `seeds` is empty for models not trained here. `average` is the record's own, of its one seed. `start` has the
    figures of the same model before its first training step, and is empty if those were not scored.
    """

    record: ModelRecord
    figures: tuple[Figure | None, ...]
    seeds: tuple[int, ...] = ()
    average: float | None = None
    start: tuple[Figure | None, ...] = ()

    @property
    def pooling(self) -> str | None:
        """The pooling of an untrained backbone; None for a trained model."""
        reading = (self.record.key or "").rpartition(" ")[2].partition("+")[0]
        own = self.record.group is None and self.record.family is None
        return reading if own and reading in UNTRAINED else None


@dataclass(frozen=True)
class Scoreboard:
    """A task's table: a row per label, a verdict per column."""

    task: Task
    results: Results
    columns: tuple[ScoreColumn, ...]
    rows: Mapping[str, Row]
    verdicts: tuple[Verdict, ...]

    @property
    def strongest(self) -> str | None:
        """The label of the untrained reading with the best figure in the first column; None unless several have one."""
        sign = -1 if self.columns and self.columns[0].score in self.task.lower else 1
        values = {
            label: sign * figure.value
            for label, row in self.rows.items()
            if row.pooling and (figure := row.figures[0]) is not None
        }
        return max(values, key=lambda label: values[label]) if len(values) > 1 else None


def read_scoreboards(folder: Path) -> dict[str, Scoreboard]:
    """The scoreboards of the results files in `folder` by task, in the tasks' order. Raises as `read_results` does."""
    read = {path.stem: read_results(path) for path in sorted(folder.glob("*.json"))}
    return {name: scoreboard(read[name], list(read.values())) for name in TASKS if name in read}


def scoreboard(results: Results, others: Sequence[Results] = ()) -> Scoreboard:
    """The scoreboard of `results`; those of `others` with the same task and protocol add their seeds."""
    task = find_task(results.task)
    deviations = task.repeats.deviations.values() if task.repeats else ()
    shown = [column for column in columns(task, results.models) if column.score not in deviations]
    if any(task.average(record.scores) is not None for record in results.models.values()):
        shown.insert(0, ScoreColumn(AVERAGE, task.main, AVERAGE))
    alike = [other for other in (results, *others) if (other.task, other.protocol) == (results.task, results.protocol)]
    pool = [record for other in alike for record in other.models.values()]
    rows = {label: _row(task, results.models[label], pool, shown) for label, *_ in seed_groups(results.models)}
    verdicts = [
        _verdict({label: row.figures[number] for label, row in rows.items()}, lower=column.score in task.lower)
        for number, column in enumerate(shown)
    ]
    return Scoreboard(task, results, tuple(shown), rows, tuple(verdicts))


def _row(task: Task, record: ModelRecord, pool: Sequence[ModelRecord], shown: list[ScoreColumn]) -> Row:
    group = [other for other in pool if other.group == record.group] if record.group else []
    seeded = [(other.seed, other) for other in (*group, record) if other.seed is not None]
    by_seed = {seed: other.scores for seed, other in seeded if not other.start}
    starts = {seed: other.scores for seed, other in seeded if other.start}
    runs = [by_seed[seed] for seed in sorted(by_seed)] or [record.scores]
    figures = tuple(_figure(task, column, runs) for column in shown)
    start = tuple(_figure(task, column, [starts[seed] for seed in sorted(starts)]) for column in shown if starts)
    return Row(record, figures, tuple(sorted(by_seed)), task.average(record.scores), start)


def _figure(task: Task, column: ScoreColumn, runs: Sequence[Mapping[str, Scores]]) -> Figure | None:
    """The mean over the runs that have the column's score, with the deviation; None if there are none."""
    numbers = [(task.average(scores) if column.unit == AVERAGE else column.of(scores), scores) for scores in runs]
    scored = [(number, scores) for number, scores in numbers if number is not None]
    if not scored:
        return None
    figure = over_seeds([number for number, _ in scored])
    if len(scored) == 1 and task.repeats:
        deviation = scored[0][1].get(column.unit, {}).get(task.repeats.deviations.get(column.score, ""))
        return Figure(figure.value, deviation, 1 if deviation is None else task.repeats.count)
    return figure


def _verdict(figures: Mapping[str, Figure | None], *, lower: bool) -> Verdict:
    known = {label: figure for label, figure in figures.items() if figure is not None}
    top = (min if lower else max)(figure.value for figure in known.values())
    best = tuple(label for label, figure in known.items() if figure.value == top)
    first = known[best[0]]
    sides: dict[bool, list[str]] = {True: [], False: []}
    for label, figure in known.items():
        noise = margin(first, figure)
        if label not in best and noise is not None:
            sides[abs(figure.value - top) <= noise].append(label)
    return Verdict(best, tuple(sides[True]), tuple(sides[False]))
