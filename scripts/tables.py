"""Tables of evaluation results on stdout: a model a line, the published row beneath where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from scripts.cli import log

if TYPE_CHECKING:
    from cse.benchmark.results import ModelRecord

TASKS = ("sts", "transfer", "few-shot", "clustering", "retrieval", "geometry")
SHORT = {"spearman": "", "accuracy": "", "deviation": "+-", "subset_mean": "subsets"}


def columns(task: str, models: Mapping[str, ModelRecord]) -> list[tuple[str, str]]:
    """(set, score) of every column, in the order of the first model that has it."""
    from cse.benchmark.tables import SHOWN

    names = dict.fromkeys(name for record in models.values() for name in record.scores)
    has = {name: {key for record in models.values() for key in record.scores.get(name, ())} for name in names}
    return [(name, key) for name in names for key in SHOWN[task] if key in has[name]]


def print_scores(task: str, models: Mapping[str, ModelRecord]) -> None:
    """The table; sets of the papers' that are missing are named on stderr, and nothing is averaged without them."""
    from cse.benchmark.published import SETS, published
    from cse.benchmark.tables import MAIN, average

    shown = columns(task, models)
    if absent := [name for name in SETS.get(task, ()) if name not in {name for name, _ in shown}]:
        log(f"no files for {', '.join(absent)}: no average over the papers' sets")
    lines = [("", [_heading(task, *column) for column in shown], "average" if task in SETS else "")]
    for label, record in models.items():
        scores = record.scores
        cells = [_cell(scores.get(name, {}).get(key)) for name, key in shown]
        lines.append((label, cells, _cell(average(task, scores)) if task in SETS else ""))
        row = published(task, record.key) if task in SETS else None
        if row:
            cells = [_cell(row.values.get(name)) if key == MAIN[task] else "" for name, key in shown]
            spread = f" +-{row.deviation}" if row.deviation else ""
            where = ", ".join(filter(None, [f"{row.paper} table {row.table}", row.evaluate, row.source]))
            lines.append((f"  published ({where})", cells, f"{_cell(row.average)}{spread}"))
    _print(lines)
    _log_other_sizes(task, models)
    if task == "geometry":
        _print_ladders(models)


def _log_other_sizes(task: str, models: Mapping[str, ModelRecord]) -> None:
    """Name the STS tasks that hold another number of pairs than the papers scored."""
    from cse.evaluation.sts import PAIRS

    found = {(name, one["pairs"]) for m in models.values() for name, one in m.scores.items() if "pairs" in one}
    for name, pairs in sorted(found) if task == "sts" else ():
        if pairs != PAIRS[name]:
            log(f"{name} has {pairs} pairs here, {PAIRS[name]} in the papers: not the same task")


def _heading(task: str, name: str, key: str) -> str:
    label = SHORT.get(key, key)
    return key if task == "geometry" else f"{name} {label}".strip()


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if abs(value) >= 1 else f"{value:.4g}"


def _print(lines: list[tuple[str, list[str], str]]) -> None:
    width = max(len(label) for label, _, _ in lines)
    sizes = [max(map(len, cells)) + 2 for cells in zip(*((*cells, last) for _, cells, last in lines), strict=True)]
    for label, cells, last in lines:
        row = (f"{cell:>{size}}" for cell, size in zip((*cells, last), sizes, strict=True))
        typer.echo(f"{label:<{width}}{''.join(row)}".rstrip())


def _print_ladders(models: Mapping[str, ModelRecord]) -> None:
    """PromptBERT's Table 3 for every model with tokens: averages of static embeddings as biased tokens are removed."""
    lines: list[tuple[str, list[str], str]] = []
    for label, record in models.items():
        rungs = {k: v["average"] for k, v in record.scores.get("static-bias", {}).items() if "average" in v}
        if rungs and not lines:
            lines.append(("static embeddings", list(rungs), ""))
        if rungs:
            lines.append((label, [_cell(value) for value in rungs.values()], ""))
    if lines:
        typer.echo("")
        _print(lines)


def print_seeds(task: str, models: Mapping[str, ModelRecord]) -> None:
    """Mean and deviation of models that differ in the seed alone, and whether two such groups differ."""
    from cse.benchmark.significance import over_seeds, seed_groups, seeds_differ
    from cse.benchmark.tables import average

    groups: dict[str, list[float]] = {}
    for members in seed_groups({name: record.group for name, record in models.items()}).values():
        seeds = {models[name].seed: average(task, models[name].scores) for name in members}
        runs = [run for run in seeds.values() if run is not None]
        if len(runs) == len(seeds) > 1:
            groups[", ".join(members)] = runs
    for label, runs in groups.items():
        mean, deviation = over_seeds(runs)
        typer.echo(f"over {len(runs)} seeds: {mean:.2f} +- {deviation:.2f}  ({label})")
    names = list(groups)
    for first, second in ((a, b) for number, a in enumerate(names) for b in names[number + 1 :]):
        typer.echo(f"  {first} minus {second}: {seeds_differ(groups[first], groups[second])}")


def comparisons(models: Mapping[str, ModelRecord]) -> list[str]:
    """The first model against every other on the same STS pairs, with the bootstrap's 95 % interval.

    Raises ValueError where two models share no task.
    """
    import numpy as np

    from cse.benchmark.significance import SAMPLES, paired_bootstrap

    (first, record), *others = models.items()
    lines = []
    for other, compared in others:
        pairs = {}
        for name in (name for name in record.scores if name in compared.scores):
            ours, theirs = record.scores[name], compared.scores[name]
            pairs[name] = (np.array(ours["cosines"]), np.array(theirs["cosines"]), np.array(ours["grades"]))
        if not pairs:
            raise ValueError(f"{first} and {other} share no task to be compared on")
        difference = paired_bootstrap(pairs)
        lines.append(f"{first} minus {other}, {len(pairs)} tasks, {SAMPLES} bootstrap samples: {difference}")
    return lines
