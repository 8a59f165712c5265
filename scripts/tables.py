"""Tables of evaluation results on stdout: a model a line, the published row beneath where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from scripts.cli import log

TASKS = ("sts", "transfer", "few-shot", "clustering", "retrieval", "geometry")
# What a task shows of each set, in this order; a set that lacks a score leaves its place out.
SHOWN = {
    "sts": ("spearman", "pearson", "subset_mean"),
    "transfer": ("accuracy", "f1"),
    "few-shot": ("accuracy", "deviation"),
    "clustering": ("accuracy", "nmi"),
    "retrieval": ("ndcg@10", "mrr@10", "recall@10", "recall@100"),
    "geometry": ("anisotropy", "alignment", "uniformity", "separation", "K=0", "K=100"),
}
MAIN = {task: keys[0] for task, keys in SHOWN.items()}
SHORT = {"spearman": "", "accuracy": "", "deviation": "+-", "subset_mean": "subsets"}


def columns(task: str, models: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(set, score) of every column, in the order of the first model that has it."""
    names = dict.fromkeys(name for record in models.values() for name in record["scores"])
    has = {name: {key for record in models.values() for key in record["scores"].get(name, ())} for name in names}
    return [(name, key) for name in names for key in SHOWN[task] if key in has[name]]


def average(task: str, scores: Mapping[str, Any]) -> float | None:
    """The papers' average of a task's main score over its sets; None where sets are missing or it has no average."""
    from cse.evaluation.published import SETS

    if task not in SETS or not all(name in scores for name in SETS[task]):
        return None
    return round(sum(scores[name][MAIN[task]] for name in SETS[task]) / len(SETS[task]), 2)


def print_scores(task: str, models: Mapping[str, Any]) -> None:
    """The table; sets of the papers' that are missing are named on stderr, and nothing is averaged without them."""
    from cse.evaluation.published import SETS, published

    shown = columns(task, models)
    if absent := [name for name in SETS.get(task, ()) if name not in {name for name, _ in shown}]:
        log(f"no files for {', '.join(absent)}: no average over the papers' sets")
    lines = [("", [_heading(task, *column) for column in shown], "average" if task in SETS else "")]
    for label, record in models.items():
        scores = record["scores"]
        cells = [_cell(scores.get(name, {}).get(key)) for name, key in shown]
        lines.append((label, cells, _cell(average(task, scores)) if task in SETS else ""))
        if row := published(task, record["key"]):
            cells = [_cell(row.values.get(name)) if key == MAIN[task] else "" for name, key in shown]
            spread = f" +-{row.deviation}" if row.deviation else ""
            lines.append((f"  published ({row.paper} table {row.table})", cells, f"{_cell(row.average)}{spread}"))
    _print(lines)
    if task == "geometry":
        _print_ladders(models)


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


def _print_ladders(models: Mapping[str, Any]) -> None:
    """PromptBERT's Table 3 for every model with tokens: averages of static embeddings as biased tokens are removed."""
    lines: list[tuple[str, list[str], str]] = []
    for label, record in models.items():
        rungs = {k: v["average"] for k, v in record["scores"].get("static-bias", {}).items() if "average" in v}
        if rungs and not lines:
            lines.append(("static embeddings", list(rungs), ""))
        if rungs:
            lines.append((label, [_cell(value) for value in rungs.values()], ""))
    if lines:
        typer.echo("")
        _print(lines)


def print_seeds(task: str, models: Mapping[str, Any]) -> None:
    """Mean and deviation of models that differ in the seed alone, and whether two such groups differ."""
    from cse.evaluation.comparison import over_seeds, seed_groups, seeds_differ

    groups: dict[str, list[float]] = {}
    for members in seed_groups(models).values():
        runs = [run for name in members if (run := average(task, models[name]["scores"])) is not None]
        if len(runs) == len(members) > 1:
            groups[", ".join(members)] = runs
    for label, runs in groups.items():
        mean, deviation = over_seeds(runs)
        typer.echo(f"over {len(runs)} seeds: {mean:.2f} +- {deviation:.2f}  ({label})")
    names = list(groups)
    for first, second in ((a, b) for number, a in enumerate(names) for b in names[number + 1 :]):
        typer.echo(f"  {first} minus {second}: {seeds_differ(groups[first], groups[second])}")


def print_comparisons(models: Mapping[str, Any]) -> None:
    """The first model against every other on the same STS pairs, with the bootstrap's 95 % interval."""
    import numpy as np

    from cse.evaluation.comparison import SAMPLES, paired_bootstrap

    (first, record), *others = models.items()
    for other, compared in others:
        shared = [name for name in record["scores"] if name in compared["scores"]]
        pairs = {}
        for name in shared:
            ours, theirs = record["scores"][name], compared["scores"][name]
            pairs[name] = (np.array(ours["cosines"]), np.array(theirs["cosines"]), np.array(ours["grades"]))
        difference = paired_bootstrap(pairs)
        typer.echo(f"{first} minus {other}, {len(pairs)} tasks, {SAMPLES} bootstrap samples: {difference}")
