"""Results files of evaluations, the papers' numbers, and tables of both: of one call, or of a folder of files."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cse.evaluation.metrics import Figure, margin, over_seeds, seeds_differ
from cse.evaluation.tasks import LOGISTIC, TASKS, find_task
from cse.files.checksums import check_digest
from cse.files.writing import file_digest
from cse.methods.catalogue import UNTRAINED
from cse.models.fitted_texts import fitted_note

if TYPE_CHECKING:
    from cse.evaluation import Scores
    from cse.evaluation.tasks import Task

PAPERS = ("promptbert", "dcpcse", "conpvp", "published")  # the last: scores of checkpoints on the hub
BASE = "bert-base-uncased"


@dataclass(frozen=True)
class PublishedRow:
    """One published row: `values` by set (x 100), their `average`, and its `deviation` over `seeds` runs.

    `key` is the backbone and the pooling or method, as the benchmark derives it from an encoder. A row with a `method`
    is trained, `supervised` or not, with a `prefix` length if the row varies it; `evaluate` are its options of the
    command `evaluate`; `read` is the path to its number in the results if that is not the task's average. `copied` rows
    cannot be reproduced here: the paper copied them, or something they need is missing; `source` names the source and
    any peculiarity. A `checkpoint` is used as published; its hub id replaces the backbone.
    """

    paper: str
    table: str
    name: str
    key: str
    task: str
    average: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    deviation: float | None = None
    seeds: int = 1
    method: str | None = None
    supervised: bool = False
    prefix: int | None = None
    evaluate: str = ""
    read: tuple[str, ...] = ()
    copied: bool = False
    checkpoint: bool = False
    source: str = ""

    @property
    def backbone(self) -> str:
        """The backbone of the row."""
        return self.key.partition(" ")[0]

    @property
    def reading(self) -> str:
        """The pooling, method or family; empty for word vectors."""
        return self.key.partition(" ")[2]

    @property
    def train_options(self) -> list[str]:
        """The options of `train` beyond method and backbone."""
        prefix = [] if self.prefix is None else ["--prefix", str(self.prefix)]
        return [*(["--supervised"] if self.supervised else []), *prefix]


CELLS: dict[str, Callable[[str], Any]] = {  # of `published.tsv`, where not texts; an empty one is the default
    "deviation": float, "seeds": int, "prefix": int, "read": lambda cell: tuple(cell.split(" > ")),
    **dict.fromkeys(("supervised", "copied", "checkpoint"), bool),
}  # fmt: skip


def _published_row(cells: Mapping[str, str]) -> PublishedRow:
    """A row of `published.tsv`; its `numbers` are those of the sets, in the papers' order, and the average, or this."""
    *values, average = map(float, cells["numbers"].split()) if cells["numbers"] else (None,)
    task = cells["task"] if cells["task"] in ("transfer", "clustering") else "sts"  # which geometry averages over too
    sets = dict(zip(find_task(task).sets, values, strict=True)) if values else {}
    filled = {name: cell for name, cell in cells.items() if cell and name != "numbers"}
    return PublishedRow(
        **{name: CELLS.get(name, str)(cell) for name, cell in filled.items()}, average=average, values=sets
    )


_header, *_lines = Path(__file__).with_name("published.tsv").read_text(encoding="utf-8").splitlines()
ROWS = tuple(_published_row(dict(zip(_header.split("\t"), line.split("\t"), strict=True))) for line in _lines)
TEMPLATES = {row.name: row.average for row in ROWS if row.task == "templates"}  # PromptBERT's Table 4, STS-B dev

LIBRARIES = ("numpy", "scikit-learn", "scipy", "torch", "transformers")
RECORD_KEYS = ("model", "fingerprint", "scores")  # of a model's record
OUTPUT_CURE = "give another `json_output` or pass `overwrite`"


@dataclass(frozen=True)
class Protocol:
    """Every option, other than the model, that affects a task's scores.

    `data` and `tokenised` are digests of folders (`cse.files.writing.file_digest`), `sentences` and `fit` are values
    of `name_and_checksum`; `points` is True if the scores for comparisons and figures are kept; `classifier` is
    transfer's, `smooth` and `expand` are retrieval's.
    """

    data: str
    tokenised: str | None = None
    details: bool = False
    final_period: bool = False
    sentences: str | None = None
    fit: str | None = None
    points: bool = False
    classifier: str = LOGISTIC
    smooth: int = 0
    expand: int = 0


@dataclass
class ModelRecord:
    """One model's scores by unit (set), and their provenance.

    `model` is the name it was opened by, `key` that of its published row; models of one `group` differ in their `seed`
    only, and both are None for models not trained here. `family` is that of a published checkpoint. `start`: the model
    before its first training step.
    """

    model: str
    fingerprint: str
    date: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    scores: dict[str, Scores] = field(default_factory=dict)
    group: str | None = None
    seed: int | None = None
    key: str | None = None
    family: str | None = None
    start: bool = False


@dataclass
class Results:
    """All scores of one task under one protocol: `models` by label, the `command` that was run, lines of comparisons.

    A label is the model's name, with its fingerprint if two models have the same name.
    """

    task: str
    protocol: Protocol
    command: str
    models: dict[str, ModelRecord] = field(default_factory=dict)
    comparisons: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The JSON object of a results file.

        `comparisons`, a model's `family` and `start`, and `classifier`, `smooth` and `expand` are omitted if they have
        their default.
        """
        value = asdict(self)
        optional = {"classifier": LOGISTIC, "smooth": 0, "expand": 0, "family": None, "start": False, "comparisons": []}
        for part in (value, value["protocol"], *value["models"].values()):
            for name in optional.keys() & part.keys():
                if part[name] == optional[name]:
                    del part[name]
        return value


def provenance() -> dict[str, Any]:
    """The `date` of a run that starts now (ISO 8601), and the `versions` of Python and the libraries behind scores."""
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return {"date": date.today().isoformat(), "versions": versions}


def name_and_checksum(path: Path | None) -> str | None:
    """A text's entry in a protocol: a file's name and checksum, a hub id unchanged, or None."""
    if path is None:
        return None
    return f"{path.name} {file_digest(path)}" if path.is_file() else str(path)


def read_results(path: Path) -> Results:
    """Read the results in `path`; fields missing in older files get their defaults.

    Raises ValueError, naming the file, if it is not a results file or is damaged.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if lacking := [label for label, record in value["models"].items() if not {*RECORD_KEYS} <= record.keys()]:
            raise ValueError(f"the record of {lacking[0]} lacks {' or '.join(RECORD_KEYS)}")
        models = {label: ModelRecord(**record) for label, record in value["models"].items()}
        results = Results(
            value["task"], Protocol(**value["protocol"]), value.get("command", ""), models, value.get("comparisons", [])
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a results file ({error}); {OUTPUT_CURE}") from error
    check_digest(value, path, f"copy it again or remove its digest, or {OUTPUT_CURE}")
    return results


def open_results(path: Path | None, fresh: Results) -> Results:
    """`fresh` with the scores that `path` already has for the same task and protocol.

    Raises ValueError if the file has another task or protocol, or is not a results file.
    """
    if path is None or not path.exists():
        return fresh
    earlier = read_results(path)
    if (earlier.task, earlier.protocol) != (fresh.task, fresh.protocol):
        raise ValueError(
            f"{path}: holds {earlier.task} under {asdict(earlier.protocol)}, not {fresh.task} under "
            f"{asdict(fresh.protocol)}; {OUTPUT_CURE}"
        )
    return replace(fresh, models=earlier.models)


HEADINGS = {"spearman": "", "accuracy": "", "deviation": "+-", "subset_mean": "subsets"}


class ScoreColumn(NamedTuple):
    """One score of one unit (set), and its heading."""

    unit: str
    score: str
    heading: str

    def of(self, scores: Mapping[str, Scores]) -> float | None:
        """A model's score, or None."""
        return scores.get(self.unit, {}).get(self.score)


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

    For geometry PromptBERT's Table 3 follows after an empty line: averaged static embeddings without biased tokens, for
    every model with tokens.
    """
    shown = columns(task, models)
    removal: list[tuple[str, ...]] = []
    lines = [("", *(column.heading for column in shown), "average" if task.sets else "")]
    for label, record in models.items():
        name = f"  before training ({label})" if record.start else label
        average = _cell(task.average(record.scores)) if task.sets else ""
        lines.append((name, *(_cell(column.of(record.scores)) for column in shown), average))
        row = next((row for row in ROWS if row.task == task.name and row.key == record.key), None)
        if task.sets and row is not None:
            cells = [_cell(row.values.get(column.unit)) if column.score == task.main else "" for column in shown]
            spread = f" +-{row.deviation}" if row.deviation else ""
            where = ", ".join(filter(None, [f"{row.paper} table {row.table}", row.evaluate, row.source]))
            lines.append((f"  published ({where})", *cells, f"{_cell(row.average)}{spread}"))
        averages = {k: v["average"] for k, v in record.scores.get("static-bias", {}).items() if "average" in v}
        if averages:
            removal += [] if removal else [("static embeddings", *averages)]
            removal.append((label, *map(_cell, averages.values())))
    return [*_aligned(lines), *(["", *_aligned(removal)] if removal else [])]


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if abs(value) >= 1 else f"{value:.4g}"


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    width, *widths = (max(map(len, cells)) for cells in zip(*lines, strict=True))
    return [
        f"{label:<{width}}{''.join(f'{cell:>{size + 2}}' for cell, size in zip(cells, widths, strict=True))}".rstrip()
        for label, *cells in lines
    ]


def warnings(task: Task, models: Mapping[str, ModelRecord]) -> list[str]:
    """Warnings: sets that are missing or have another number of pairs than in the papers, and texts fitted on."""
    scored = [(label, unit, scores) for label, record in models.items() for unit, scores in record.scores.items()]
    absent = [name for name in task.sets if name not in {unit for _, unit, _ in scored}]
    lines = [f"no files for {', '.join(absent)}: no average over the papers' sets"] if absent else []
    lines += [
        f"{label}, {unit}: {fitted_note(scores['fitted_texts'], scores['texts'])}; it may do worse on others"
        for label, unit, scores in scored if "fitted_texts" in scores
    ]  # fmt: skip
    sizes = {(unit, scores["pairs"]) for _, unit, scores in scored if unit in task.pairs}
    return lines + [
        f"{unit} has {pairs} pairs here, {task.pairs[unit]} in the papers: not the same task"
        for unit, pairs in sorted(sizes)
        if pairs != task.pairs[unit]
    ]


def seed_groups(models: Mapping[str, ModelRecord]) -> list[list[str]]:
    """Labels of models by group, starts left out; a group differs in the seed only, a model without one is its own."""
    members: dict[str, list[str]] = {}
    for label, record in models.items():
        if not record.start:
            members.setdefault(record.group or label, []).append(label)
    return list(members.values())


def seed_lines(task: Task, models: Mapping[str, ModelRecord]) -> list[str]:
    """Lines with mean and deviation of models that differ in the seed only, and differences between such groups.

    The number of a model is the papers' average, or the main score of the only set that was scored.
    """
    groups: dict[str, list[float]] = {}
    for members in seed_groups(models):
        seeds: dict[int | None, float | None] = {}
        for record in (models[label] for label in members):
            average = task.average(record.scores)
            if average is None and len(record.scores) == 1:
                (scores,) = record.scores.values()
                average = scores.get(task.main)
            seeds[record.seed] = average
        runs = [run for run in seeds.values() if run is not None]
        if len(runs) == len(seeds) > 1:
            groups[", ".join(members)] = runs
    figures = {label: over_seeds(runs) for label, runs in groups.items()}
    return [
        *(f"over {f.count} seeds: {f.value:.2f} +- {f.deviation:.2f}  ({label})" for label, f in figures.items()),
        *(f"  {a} minus {b}: {seeds_differ(groups[a], groups[b])}" for a, b in combinations(groups, 2)),
    ]


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

    `seeds` is empty for models not trained here. `start` has the figures of the same model before its first training
    step, and is empty if those were not scored.
    """

    record: ModelRecord
    figures: tuple[Figure | None, ...]
    seeds: tuple[int, ...] = ()
    start: tuple[Figure | None, ...] = ()

    @property
    def pooling(self) -> str | None:
        """The pooling of an untrained backbone; None for a trained model."""
        reading = (self.record.key or "").rpartition(" ")[2].partition("+")[0]
        own = self.record.group is None and self.record.family is None
        return reading if own and reading in UNTRAINED else None


@dataclass(frozen=True)
class Scoreboard:
    """A task's table: a row per label, with a figure per column."""

    task: Task
    results: Results
    columns: tuple[ScoreColumn, ...]
    rows: Mapping[str, Row]

    def verdict(self, number: int, labels: Collection[str] | None = None) -> Verdict:
        """The best of a column by its number among the rows of these labels, or all; none is best of one."""
        rows = self.rows if labels is None else {label: self.rows[label] for label in labels}
        known = {label: figure for label, row in rows.items() if (figure := row.figures[number]) is not None}
        if len(known) < 2:
            return Verdict(())
        lower = self.columns[number].score in self.task.lower
        top = (min if lower else max)(figure.value for figure in known.values())
        best = tuple(label for label, figure in known.items() if figure.value == top)
        # No seed moves an untrained model, but where a task repeats its scoring, as k-means is.
        still = [label for label, figure in known.items() if rows[label].pooling and figure.deviation is None]
        tried = {**known, **{label: replace(known[label], deviation=0.0) for label in still}}
        noise = {label: margin(tried[best[0]], figure) for label, figure in tried.items() if label not in best}
        tested = [(label, abs(known[label].value - top) <= half) for label, half in noise.items() if half is not None]
        alike, apart = (tuple(label for label, inside in tested if inside is side) for side in (True, False))
        return Verdict(best, alike, apart)

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
    """The scoreboards of the results files in `folder` by task, in the tasks' order. Raises as `read_results` does.

    `TASK.json` has the models of a table. Other files of the same task and protocol add seeds to them.
    """
    files = {path.stem: read_results(path) for path in sorted(folder.glob("*.json"))}
    return {name: scoreboard(files[name], list(files.values())) for name in TASKS if name in files}


def scoreboard(results: Results, others: Sequence[Results] = ()) -> Scoreboard:
    """The scoreboard of `results`; those of `others` with the same task and protocol add their seeds.

    Records of one `group`, which differ in their seed only, become one row with mean and deviation.
    """
    task = find_task(results.task)
    deviations = task.repeats.deviations.values() if task.repeats else ()
    shown = [column for column in columns(task, results.models) if column.score not in deviations]
    if any(task.average(record.scores) is not None for record in results.models.values()):
        shown.insert(0, ScoreColumn(AVERAGE, task.main, AVERAGE))
    same = [other for other in (results, *others) if (other.task, other.protocol) == (results.task, results.protocol)]
    pool = [record for other in same for record in other.models.values()]
    rows = {}
    for label, *_ in seed_groups(results.models):
        record = results.models[label]
        group = [other for other in pool if record.group and other.group == record.group]
        seeded = [(other.seed, other) for other in (*group, record) if other.seed is not None]
        by_seed, starts = ({s: other.scores for s, other in seeded if other.start == begun} for begun in (False, True))
        runs = [by_seed[seed] for seed in sorted(by_seed)] or [record.scores]
        figures = tuple(_figure(task, column, runs) for column in shown)
        before = [starts[seed] for seed in sorted(starts)]
        start = tuple(_figure(task, column, before) for column in shown if starts)
        rows[label] = Row(record, figures, tuple(sorted(by_seed)), start)
    return Scoreboard(task, results, tuple(shown), rows)


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
