"""Transfer: accuracy x 100 of a linear classifier on frozen vectors, on SentEval's seven sets (its "test" protocol).

Each set is a folder of its name; its files determine the protocol:

- `all.tsv` (MR CR SUBJ MPQA): nested cross-validation, the mean accuracy of 10 outer folds; inside each, 10 folds of
  its training part choose the L2 strength.
- `train.tsv` `dev.tsv` `test.tsv` (SST2): trained on train, strength chosen on dev, scored on test.
- `train.tsv` `test.tsv` (TREC MRPC): strength chosen by 10 folds of train, trained on all of train, scored on test.
  MRPC's lines have two sentences, its features are [|u - v|; u * v], and F1 is reported too.

Folds are stratified and shuffled with SentEval's seed 1111.

Few-shot transfer is the accuracy of a classifier that sees 16 labelled texts per class (ConPVP Figure 7) of the same
sets. Ten draws, seeds 0 to 9, are taken from the training split and scored on the test split; a set without splits is
scored on all rows not drawn. The paper does not name its classifier; here it is transfer's logistic regression with
C = 1, as 16 labels are too few to select C.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.evaluation.classification import (
    Classifier,
    LabelledRow,
    Logistic,
    SentEval,
    check_counts,
    check_known,
    features,
    labelled_rows,
    labels,
    stratified,
)
from cse.evaluation.tasks import LOGISTIC, Repeats, Task, TaskData

if TYPE_CHECKING:
    from cse.evaluation import Encode, Scores, Unit

WHOLE_FILES, SPLIT_FILES = ("all.tsv",), ("train.tsv", "test.tsv")
SETS = {
    "MR": WHOLE_FILES, "CR": WHOLE_FILES, "SUBJ": WHOLE_FILES, "MPQA": WHOLE_FILES,
    "SST2": ("train.tsv", "dev.tsv", "test.tsv"), "TREC": SPLIT_FILES, "MRPC": SPLIT_FILES,
}  # fmt: skip
LAYOUT = ", ".join(f"{name}/{{{','.join(files)}}}" for name, files in SETS.items())
PAIRED = ("MRPC",)
PARAPHRASE = "1"  # the label MRPC's F1 is of
FOLDS, INNER_FOLDS = 10, 10
CLASSIFIERS: dict[str, Classifier] = {LOGISTIC: Logistic(), "senteval": SentEval()}
SHOTS, DRAWS = 16, range(10)  # labelled texts per class, seeds of the draws


def units(data: TaskData) -> dict[str, Unit]:
    """Return a unit for each set in the folder: {"accuracy"}, MRPC's {"accuracy", "f1"}; percent, two decimals.

    A unit encodes each distinct text of its set in one call. Raises ValueError for an unknown classifier, and if the
    folder has no known set or an incomplete one; a unit raises as `labelled_rows` does, and if a label has too few
    rows for the folds.
    """
    if data.classifier not in CLASSIFIERS:
        raise ValueError(f"unknown `classifier` {data.classifier!r}; choose from {', '.join(CLASSIFIERS)}")
    classifier = CLASSIFIERS[data.classifier]
    return {name: partial(_score, name, paths, classifier) for name, paths in set_files(data.folder).items()}


def few_shot_units(data: TaskData) -> dict[str, Unit]:
    """Return a unit for each set in the folder: {"accuracy": mean, "deviation": sample, "runs": per seed}.

    Percent, two decimals. A unit encodes the texts that any seed draws or scores in one call, each distinct one once.
    Raises ValueError as `set_files` does; a unit also if a label has too few rows to draw.
    """
    return {name: partial(_few_shot_score, name, paths) for name, paths in set_files(data.folder).items()}


def set_files(folder: Path) -> dict[str, list[Path]]:
    """The files of each set in `folder`, in the order of `SETS`.

    Raises ValueError if there is no set, or if only some files of a set exist.
    """
    sets: dict[str, list[Path]] = {}
    for name, files in SETS.items():
        paths = [folder / name / file for file in files]
        absent = [path.name for path in paths if not path.is_file()]
        if absent and len(absent) < len(paths):
            raise ValueError(f"{folder / name}: no {', '.join(absent)}; {name} needs {', '.join(files)}")
        if not absent:
            sets[name] = paths
    if not sets:
        raise ValueError(f"{folder}: no transfer set in it; give the folder that contains any of {LAYOUT}")
    return sets


def read_set(name: str, path: Path) -> list[LabelledRow]:
    """Rows of one file of the set `name`: (label, text), or (label, text, text) for MRPC, whose labels must be 0 and 1.

    Raises ValueError as `labelled_rows` does, and, naming the file, if MRPC has another label.
    """
    rows = labelled_rows(path, texts=2 if name in PAIRED else 1)
    if name in PAIRED and (strange := {row[0] for row in rows} - {"0", PARAPHRASE}):
        raise ValueError(f"{path}: label {min(strange)!r}; {name} has 0 and, for a paraphrase, {PARAPHRASE}")
    return rows


def _score(name: str, paths: Sequence[Path], classifier: Classifier, encode: Encode) -> Scores:
    from sklearn.metrics import f1_score

    files = [read_set(name, path) for path in paths]
    least = (FOLDS + 2, FOLDS, 1)[len(files) - 1]  # so that an outer fold leaves enough for the inner ones
    check_counts(paths[0], files[0], least)
    for path, file_rows in zip(paths[1:], files[1:], strict=True):
        check_known(path, file_rows, files[0])
    ends = np.cumsum([len(file_rows) for file_rows in files])[:-1]
    vectors = np.split(features(encode, [row for file_rows in files for row in file_rows]), ends)
    (rows, names), *others = zip(vectors, map(labels, files), strict=True)
    if not others:  # the mean over the outer folds, each with the strength chosen by its own inner folds
        folds = [
            classifier.by_folds((rows[train], names[train]), rows[test], INNER_FOLDS) == names[test]
            for train, test in stratified(FOLDS).split(rows, names)
        ]
        return {"accuracy": round(100 * float(np.mean([right.mean() for right in folds])), 2)}
    *dev, (test, gold) = others
    train = (rows, names)
    predicted = classifier.on_dev(train, dev[0], test) if dev else classifier.by_folds(train, test, FOLDS)
    scores = {"accuracy": round(100 * float((predicted == gold).mean()), 2)}
    if name in PAIRED:
        scores["f1"] = round(100 * float(f1_score(gold, predicted, pos_label=PARAPHRASE)), 2)
    return scores


def drawn(names: np.ndarray, seed: int) -> np.ndarray:
    """(classes x 16,) row numbers into labels `names` (N,): 16 of each label without replacement, by `seed`."""
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [rng.choice(np.flatnonzero(names == name), SHOTS, replace=False) for name in np.unique(names)]
    )


def _few_shot_score(name: str, paths: Sequence[Path], encode: Encode) -> Scores:
    train = read_set(name, paths[0])
    test = read_set(name, paths[-1]) if len(paths) > 1 else []
    check_counts(paths[0], train, SHOTS if test else SHOTS + 1)
    check_known(paths[-1], test, train)
    draws = [drawn(labels(train), seed) for seed in DRAWS]
    tested = np.arange(len(train), len(train) + len(test))
    scored = [tested if test else np.setdiff1d(np.arange(len(train)), draw) for draw in draws]
    rows = [*train, *test]
    used = np.unique(np.concatenate([*draws, *scored]))  # SST2 has 67,349 rows to train on, of which 320 are drawn
    vectors, gold = features(encode, [rows[row] for row in used]), labels([rows[row] for row in used])
    runs = []
    for draw, rest in zip(draws, scored, strict=True):
        learned, left = np.searchsorted(used, draw), np.searchsorted(used, rest)
        fitted = Logistic.pipeline().fit(vectors[learned], gold[learned])
        runs.append(100 * float(fitted.score(vectors[left], gold[left])))
    return {
        "accuracy": round(float(np.mean(runs)), 2),
        "deviation": round(float(np.std(runs, ddof=1)), 2),
        "runs": [round(run, 2) for run in runs],
    }


TASK = Task(
    name="transfer",
    units=units,
    layout=LAYOUT,
    shown=("accuracy", "f1"),
    title="Transfer",
    summary="A linear classifier on frozen vectors, under SentEval's splits.",
    sets=tuple(SETS),
    options=("final_period", "classifier"),
)
FEW_SHOT = Task(
    name="few-shot",
    units=few_shot_units,
    layout=LAYOUT,
    data_of="transfer",
    shown=("accuracy", "deviation"),
    title="Few-shot transfer",
    summary="A linear classifier on frozen vectors that has seen 16 labelled texts per class.",
    repeats=Repeats(len(DRAWS), f"draws of {SHOTS} labelled texts per class", {"accuracy": "deviation"}),
    options=("final_period", "figures"),
    figures={"few-shot": None},
)
