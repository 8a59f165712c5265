"""Results files of evaluations, and their tables: a line per model, with its published row below if there is one."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from cse.evaluation.metrics import over_seeds, seeds_differ
from cse.evaluation.published import published
from cse.evaluation.tasks import LOGISTIC
from cse.files.checksums import check_digest, with_digest
from cse.files.writing import file_digest, write_json
from cse.models.fitted_texts import fitted_note

if TYPE_CHECKING:
    from cse.evaluation import Scores
    from cse.evaluation.tasks import Task

LIBRARIES = ("numpy", "scikit-learn", "scipy", "torch", "transformers")
RECORD_KEYS = ("model", "fingerprint", "scores")  # of a model's record
OUTPUT_CURE = "give another `json_output` or pass `overwrite`"
DAMAGE_CURE = f"copy it again or remove its digest, or {OUTPUT_CURE}"


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


class Provenance(TypedDict):
    """The date of a run (ISO 8601), and the versions of Python and of the libraries that affect scores."""

    date: str
    versions: dict[str, str]


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
        for name, default in (("classifier", LOGISTIC), ("smooth", 0), ("expand", 0)):
            if value["protocol"][name] == default:
                del value["protocol"][name]
        for record in value["models"].values():
            for name in ("family", "start"):
                if not record[name]:
                    del record[name]
        return value if self.comparisons else {key: item for key, item in value.items() if key != "comparisons"}


def provenance() -> Provenance:
    """The provenance of a run that starts now."""
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
        lacking = [label for label, record in value["models"].items() if not {*RECORD_KEYS} <= record.keys()]
        read = {} if lacking else {label: ModelRecord(**record) for label, record in value["models"].items()}
        results = Results(
            value["task"], Protocol(**value["protocol"]), value.get("command", ""), read, value.get("comparisons", [])
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a results file ({error}); {OUTPUT_CURE}") from error
    if lacking:
        raise ValueError(f"{path}: the record of {lacking[0]} lacks {' or '.join(RECORD_KEYS)}; {OUTPUT_CURE}")
    check_digest(value, path, DAMAGE_CURE)
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


def save_results(path: Path, results: Results) -> None:
    """Write `results` and their digest to `path` atomically. Raises OSError if that fails."""
    write_json(path, with_digest(results.to_json()))


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
        if task.sets and (row := published(task.name, record.key)):
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
    units = {unit for record in models.values() for unit in record.scores}
    absent = [name for name in task.sets if name not in units]
    lines = [f"no files for {', '.join(absent)}: no average over the papers' sets"] if absent else []
    lines += [
        f"{label}, {unit}: {fitted_note(scores['fitted_texts'], scores['texts'])}; it may do worse on others"
        for label, record in models.items() for unit, scores in record.scores.items() if "fitted_texts" in scores
    ]  # fmt: skip
    sizes = {(unit, one["pairs"]) for m in models.values() for unit, one in m.scores.items() if unit in task.pairs}
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
    """Lines with mean and deviation of models that differ in the seed only, and differences between such groups."""
    groups: dict[str, list[float]] = {}
    for members in seed_groups(models):
        seeds = {models[label].seed: task.average(models[label].scores) for label in members}
        runs = [run for run in seeds.values() if run is not None]
        if len(runs) == len(seeds) > 1:
            groups[", ".join(members)] = runs
    figures = {label: over_seeds(runs) for label, runs in groups.items()}
    return [
        *(f"over {f.count} seeds: {f.value:.2f} +- {f.deviation:.2f}  ({label})" for label, f in figures.items()),
        *(f"  {a} minus {b}: {seeds_differ(groups[a], groups[b])}" for a, b in combinations(groups, 2)),
    ]
