"""Transfer: accuracy x 100 of a linear classifier on frozen vectors, on SentEval's seven sets (its "test" protocol).

Each set is a folder of its name; its files determine the protocol:

- `all.tsv` (MR CR SUBJ MPQA): nested cross-validation, the mean accuracy of 10 outer folds; inside each, 10 folds of
  its training part choose the L2 strength.
- `train.tsv` `dev.tsv` `test.tsv` (SST2): trained on train, strength chosen on dev, scored on test.
- `train.tsv` `test.tsv` (TREC MRPC): strength chosen by 10 folds of train, trained on all of train, scored on test.
  MRPC's lines have two sentences, its features are [|u - v|; u * v], and F1 is reported too.

Folds are stratified and shuffled with SentEval's seed 1111. `CLASSIFIERS` are modules that choose a strength and
predict: logistic regression (the default) and SentEval's own early-stopped layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.evaluation import classification, senteval_classifier
from cse.evaluation.classification import (
    LabelledRow,
    Part,
    check_counts,
    check_known,
    features,
    labelled_rows,
    labels,
    stratified,
)
from cse.evaluation.tasks import LOGISTIC, Task, TaskData

if TYPE_CHECKING:
    from types import ModuleType

    from cse.evaluation import Encode, Scores, Unit

WHOLE_FILES, SPLIT_FILES = ("all.tsv",), ("train.tsv", "test.tsv")
SETS = {
    "MR": WHOLE_FILES,
    "CR": WHOLE_FILES,
    "SUBJ": WHOLE_FILES,
    "MPQA": WHOLE_FILES,
    "SST2": ("train.tsv", "dev.tsv", "test.tsv"),
    "TREC": SPLIT_FILES,
    "MRPC": SPLIT_FILES,
}
LAYOUT = ", ".join(f"{name}/{{{','.join(files)}}}" for name, files in SETS.items())
PAIRED = ("MRPC",)
PARAPHRASE = "1"  # the label MRPC's F1 is of
FOLDS, INNER_FOLDS = 10, 10
CLASSIFIERS = {LOGISTIC: classification, "senteval": senteval_classifier}


def units(data: TaskData) -> dict[str, Unit]:
    """Return a unit for each set in the folder: {"accuracy"}, MRPC's {"accuracy", "f1"}; percent, two decimals.

    A unit encodes each distinct text of its set in one call. Raises ValueError for an unknown classifier, and if the
    folder has no known set or an incomplete one; a unit raises as `labelled_rows` does, and if a label has too few
    rows for the folds.
    """
    if data.classifier not in CLASSIFIERS:
        raise ValueError(f"unknown `classifier` {data.classifier!r}; choose from {', '.join(CLASSIFIERS)}")
    classifier = CLASSIFIERS[data.classifier]
    return {name: partial(_score, name, paths, classifier) for name, paths in found_sets(data.folder).items()}


def found_sets(folder: Path) -> dict[str, list[Path]]:
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


def nested(whole: Part, classifier: ModuleType) -> float:
    """Mean accuracy in [0, 1] of the outer folds, each with the strength chosen by its own inner folds."""
    rows, names = whole
    folds = [
        classifier.chosen_by_folds((rows[train], names[train]), rows[test], INNER_FOLDS) == names[test]
        for train, test in stratified(FOLDS).split(rows, names)
    ]
    return float(np.mean([right.mean() for right in folds]))


def _score(name: str, paths: Sequence[Path], classifier: ModuleType, encode: Encode) -> Scores:
    from sklearn.metrics import f1_score

    parts = _read(name, paths, encode)
    if len(parts) == 1:
        return {"accuracy": round(100 * nested(parts[0], classifier), 2)}
    train, *dev, (test, gold) = parts
    predicted = classifier.chosen_on_dev(train, *dev, test) if dev else classifier.chosen_by_folds(train, test, FOLDS)
    scores = {"accuracy": round(100 * float((predicted == gold).mean()), 2)}
    if name in PAIRED:
        scores["f1"] = round(100 * float(f1_score(gold, predicted, pos_label=PARAPHRASE)), 2)
    return scores


def _read(name: str, paths: Sequence[Path], encode: Encode) -> list[Part]:
    files = [read_set(name, path) for path in paths]
    least = (FOLDS + 2, FOLDS, 1)[len(files) - 1]  # so that an outer fold leaves enough for the inner ones
    check_counts(paths[0], files[0], least)
    for path, rows in zip(paths[1:], files[1:], strict=True):
        check_known(path, rows, files[0])
    vectors = features(encode, [row for rows in files for row in rows])
    ends = np.cumsum([len(rows) for rows in files])
    return [(vectors[end - len(rows) : end], labels(rows)) for end, rows in zip(ends, files, strict=True)]


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
