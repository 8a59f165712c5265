"""Few-shot transfer: accuracy x 100 of a classifier that sees 16 labelled texts per class (ConPVP Figure 7).

The transfer sets and their features are those of `cse.evaluation.transfer`. Ten draws, seeds 0 to 9, are taken from the
training split and scored on the test split; a set without splits is scored on all rows not drawn. The paper does not
name its classifier; here it is transfer's logistic regression with C = 1, as 16 labels are too few to select C.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.evaluation.classification import check_counts, check_known, classifier, features, labels
from cse.evaluation.tasks import Repeats, Task, TaskData
from cse.evaluation.transfer import LAYOUT, found_sets, read_set

if TYPE_CHECKING:
    from cse.evaluation import Encode, Scores, Unit

SHOTS = 16
SEEDS = range(10)


def units(data: TaskData) -> dict[str, Unit]:
    """Return a unit for each transfer set in the folder: {"accuracy": mean, "deviation": sample, "runs": per seed}.

    Percent, two decimals. A unit encodes the texts that any seed draws or scores in one call, each distinct one once.
    Raises ValueError as `transfer.found_sets` does; a unit also if a label has too few rows to draw.
    """
    return {name: partial(_score, name, paths) for name, paths in found_sets(data.folder).items()}


def drawn(names: np.ndarray, seed: int) -> np.ndarray:
    """(classes x 16,) row numbers into labels `names` (N,): 16 of each label without replacement, by `seed`."""
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [rng.choice(np.flatnonzero(names == name), SHOTS, replace=False) for name in np.unique(names)]
    )


def _score(name: str, paths: Sequence[Path], encode: Encode) -> Scores:
    train = read_set(name, paths[0])
    test = read_set(name, paths[-1]) if len(paths) > 1 else []
    check_counts(paths[0], train, SHOTS if test else SHOTS + 1)
    check_known(paths[-1], test, train)
    draws = [drawn(labels(train), seed) for seed in SEEDS]
    tested = np.arange(len(train), len(train) + len(test))
    scored = [tested if test else np.setdiff1d(np.arange(len(train)), draw) for draw in draws]

    rows = [*train, *test]
    used = np.unique(np.concatenate([*draws, *scored]))  # SST2 has 67,349 rows to train on, of which 320 are drawn
    vectors = features(encode, [rows[row] for row in used])
    gold = labels([rows[row] for row in used])
    runs = []
    for draw, rest in zip(
        np.searchsorted(used, draws), (np.searchsorted(used, remaining) for remaining in scored), strict=True
    ):
        fitted = classifier().fit(vectors[draw], gold[draw])
        runs.append(100 * float(fitted.score(vectors[rest], gold[rest])))
    return {
        "accuracy": round(float(np.mean(runs)), 2),
        "deviation": round(float(np.std(runs, ddof=1)), 2),
        "runs": [round(run, 2) for run in runs],
    }


TASK = Task(
    name="few-shot",
    units=units,
    layout=LAYOUT,
    data_of="transfer",
    shown=("accuracy", "deviation"),
    title="Few-shot transfer",
    summary="A linear classifier on frozen vectors that has seen 16 labelled texts per class.",
    repeats=Repeats(len(SEEDS), f"draws of {SHOTS} labelled texts per class", {"accuracy": "deviation"}),
    options=("final_period", "figures"),
    figures={"few-shot": None},
)
