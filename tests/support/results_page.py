"""The tables of docs/results.md, rendered from the shipped results files, for the test that compares them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cse.evaluation.tasks import find_task
from cse.models.names import BUNDLED

Record = Mapping[str, Any]
STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
TRANSFER = ("MR", "CR", "SST2", "TREC", "MRPC")
CLUSTERING = ("agnews", "stackoverflow", "googlenews_TS", "googlenews_S")
RETRIEVAL = [(data, key) for data in ("cranfield", "quora") for key in ("ndcg@10", "mrr@10", "recall@10", "recall@100")]
SHIFTS = ("anisotropy", "alignment", "uniformity", "separation")
REMOVED = ("K=0", "K=20", "K=60", "K=100")
SEEDS = (42, 43, 44)
sts_average = find_task("sts").average  # as the app has it


def models(task: str) -> dict[str, Record]:
    """The records of a shipped results file by name."""
    return json.loads((BUNDLED / "results" / f"{task}.json").read_text())["models"]


def rows(task: str, cells: Callable[[Record], list[str]]) -> str:
    """A row per model of the file: untrained ones named by their pooling, and starts by their model."""
    found = []
    for name, record in models(task).items():
        said = f"untrained, {name.removeprefix('bundled-')}" if name.startswith("bundled-") else f"`{name}`"
        said = f"`{record['model']}` before training" if record.get("start") else said
        found.append(" | ".join([f"| {said}", *cells(record["scores"])]) + " |")
    return "\n".join(sorted(found, key=lambda row: row.startswith("| `")) if task == "sts" else found)


def spread(mean: float, deviation: float) -> str:
    return f"{mean:.2f} ± {deviation:.2f}"


def training(name: str) -> str:
    """The last cells of a method's row in the first table: STS averages of three seeds, their mean, learned numbers."""
    learned = json.loads((BUNDLED / name / "config.json").read_text())["learned_numbers"]
    runs = {
        record["seed"]: sts_average(record["scores"])
        for task in ("sts", "seeds")
        for record in models(task).values()
        if record["key"] == f"bundled {name}"
    }
    averages = [runs[seed] for seed in SEEDS]
    listed = ", ".join(f"{average:.2f}" for average in averages)
    return f"| {listed} | {spread(np.mean(averages), np.std(averages, ddof=1))} | {learned:,} |"


def transfer(scores: Record) -> list[str]:
    accuracies = [scores[data]["accuracy"] for data in TRANSFER]
    return [f"{value:.2f}" for value in (*accuracies, scores["MRPC"]["f1"], np.mean(accuracies))]


def geometry(scores: Record) -> list[str]:
    flat = {key: value for part in scores.values() for key, value in part.items()}
    return [f"{flat[key]:.3f}" for key in SHIFTS] + [f"{flat[key]:.2f}" for key in REMOVED]


TABLES: dict[str, Callable[[Record], list[str]]] = {
    "sts": lambda scores: [
        f"{value:.2f}" for value in (*(scores[task]["spearman"] for task in STS), sts_average(scores))
    ],
    "transfer": transfer,
    "few-shot": lambda scores: [
        spread(scores[data]["accuracy"], scores[data]["deviation"]) for data in TRANSFER if data in scores
    ],
    "clustering": lambda scores: [
        f"{spread(scores[data]['accuracy'], scores[data]['accuracy_deviation'])} / {scores[data]['nmi']:.2f}"
        for data in CLUSTERING
    ],
    "retrieval": lambda scores: [f"{scores[data][key]:.2f}" for data, key in RETRIEVAL],
    "geometry": geometry,
}
