"""Semantic textual similarity: Spearman correlation x 100 of cosines with human grades.

SentEval's "all" protocol, as in the papers: a task's subsets are concatenated and ranked together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.corpus.supervised import scored_pairs
from cse.evaluation.metrics import correlation, correlation_or_none, mean_or_none, pair_cosines
from cse.evaluation.tasks import Task, TaskData

if TYPE_CHECKING:
    from cse.evaluation import Encode, Scores, Unit

SETS = {
    "STS12": "STS12/*.tsv",
    "STS13": "STS13/*.tsv",
    "STS14": "STS14/*.tsv",
    "STS15": "STS15/*.tsv",
    "STS16": "STS16/*.tsv",
    "STS-B": "STSB/test.tsv",
    "SICK-R": "SICK/test.tsv",
}
PUBLISHED = {"STS-B": "STSB/sts-test.csv", "SICK-R": "SICK/SICK_test_annotated.txt"}  # names of the published files
PAIRS = {"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186, "STS-B": 1379, "SICK-R": 4927}
LAYOUT = ", ".join(SETS.values())


def units(data: TaskData) -> dict[str, Unit]:
    """Return a unit for each of the seven tasks in the folder; `tokenised` replaces the tasks that it contains.

    A unit returns `spearman` and, with `details`, `pearson`, each subset's Spearman and their mean `subset_mean`.
    """
    paths_of = sources(data)
    return {name: partial(score, paths=paths, details=data.details) for name, paths in paths_of.items()}


def sources(data: TaskData) -> dict[str, list[Path]]:
    """The files of each task, from `tokenised` if it has the task, otherwise from the folder.

    `tokenised` is for SentEval's tokenised, lower-cased text, which the papers scored. Raises ValueError if the folder
    or `tokenised` has none of the seven.
    """
    folders = [data.folder, *([data.tokenised] if data.tokenised else [])]
    for folder in folders:
        if not files(folder):
            raise ValueError(f"{folder}: no STS files; the layout is {LAYOUT}")
    paths_of = {task: paths for folder in folders for task, paths in files(folder).items()}
    return {task: paths_of[task] for task in SETS if task in paths_of}


def files(folder: Path) -> dict[str, list[Path]]:
    """The files in `folder` of each of the seven tasks."""
    paths_of = {
        task: sorted(folder.glob(pattern)) or sorted(folder.glob(PUBLISHED.get(task, pattern)))
        for task, pattern in SETS.items()
    }
    return {task: paths for task, paths in paths_of.items() if paths}


def score(encode: Encode, paths: Sequence[Path], details: bool = False) -> Scores:
    """Scores of one task, whose files are its subsets, with the cosines (N,) and grades (N,) for comparisons.

    A subset without a correlation, and then the mean, is None. Raises ValueError if the task has no correlation.
    """
    subsets = {path.stem: scored_pairs(path) for path in paths}
    pairs = [pair for subset in subsets.values() for pair in subset]
    cosines = pair_cosines(encode, pairs)
    grades = np.array([grade for grade, _, _ in pairs])
    spearman = correlation(cosines, grades, str(paths[0].parent))
    scores: Scores = {"spearman": round(spearman, 2), "pairs": len(pairs)}
    if details:
        scores["pearson"] = round(correlation(cosines, grades, ranked=False), 2)
        ends = np.cumsum([len(subset) for subset in subsets.values()])[:-1]
        parts = zip(subsets, np.split(cosines, ends), np.split(grades, ends), strict=True)
        scores["subsets"] = {name: correlation_or_none(cosine, grade) for name, cosine, grade in parts}
        if len(subsets) > 1:
            scores["subset_mean"] = mean_or_none(list(scores["subsets"].values()))
    return {**scores, "cosines": [round(float(value), 6) for value in cosines], "grades": grades.tolist()}


def with_final_period(text: str) -> str:
    """Append a full stop unless the text ends in a full stop, question mark or quote (PromptBERT, test time)."""
    return text if not text or text[-1] in ".?\"'" else f"{text}."


TASK = Task(
    name="sts",
    units=units,
    layout=LAYOUT,
    shown=("spearman", "pearson", "subset_mean"),
    title="Semantic textual similarity",
    summary="Spearman correlation of cosines with human grades; the subsets of a task are ranked together.",
    sets=tuple(SETS),
    pairs=PAIRS,
    options=("tokenised", "details", "final_period", "compare"),
    points=("cosines", "grades"),
)
