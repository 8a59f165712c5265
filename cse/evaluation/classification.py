"""Labelled texts (`label<TAB>text` or `label<TAB>text<TAB>text` files) and logistic regression on their vectors.

A row is a tuple of the label, as written in the file, and the texts. The regression has the hypotheses of SentEval, a
linear layer under a softmax, but is solved to convergence and needs no seed; SentEval's early-stopped Adam is in
`senteval_classifier`. Features are standardised with the mean and deviation of the training rows, so that a penalty
means the same for vectors of any length. Of equally good strengths the one with the strongest penalty is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.corpus.dialect import TEXT_NAMES
from cse.corpus.lines import text_lines

if TYPE_CHECKING:
    import numpy as np
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import Pipeline

    from cse.evaluation import Encode

LabelledRow = tuple[str, ...]
Part = tuple[np.ndarray, np.ndarray]  # (N, d) features, (N,) labels
SEED = 1111  # SentEval's
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # scikit-learn's C


def labelled_rows(path: Path, texts: int = 1) -> list[LabelledRow]:
    """Rows of one label and `texts` texts, all stripped, from a tab-separated file without a header; never empty.

    Empty lines are skipped, and as in training a first row that is a header: its last cell is "text" or "sentence".
    Raises ValueError naming file and line for a wrong column count and for an empty label or text, and naming the file
    if it is missing, holds no row or has only one label.
    """
    layout = "<TAB>".join(["label", *["text"] * texts])
    rows: list[LabelledRow] = []
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        row = tuple(cell.strip() for cell in line.split("\t"))
        if not rows and len(row) == 1 + texts and row[-1].lower() in TEXT_NAMES:
            continue
        if len(row) != 1 + texts:
            raise ValueError(f"{path}: line {number} has {len(row)} columns; give {layout}, tab-separated")
        if not all(row):
            missing = "text" if row[0] else "label"
            raise ValueError(f"{path}: line {number} has an empty {missing}; complete it or remove the line")
        rows.append(row)
    if len({row[0] for row in rows}) < 2:
        held = f"only label {rows[0][0]!r}" if rows else "no row"
        raise ValueError(f"{path}: {held} in it; give lines of {layout} with two labels or more")
    return rows


def labels(rows: Sequence[LabelledRow]) -> np.ndarray:
    """(N,) labels of the rows, as strings."""
    return np.array([row[0] for row in rows])


def check_counts(path: Path, rows: Sequence[LabelledRow], least: int) -> None:
    """Raise ValueError, naming file, label and count, if a label has fewer than `least` rows."""
    label, count = min(Counter(row[0] for row in rows).items(), key=lambda item: item[1])
    if count < least:
        raise ValueError(
            f"{path}: label {label!r} has {count} of {least} required rows; add some, or remove the label "
            "(a header line is read as a row)"
        )


def check_known(path: Path, rows: Sequence[LabelledRow], training: Sequence[LabelledRow]) -> None:
    """Raise ValueError, naming the file and the label, if a label of `rows` is not in `training`."""
    known = {row[0] for row in training}
    if unknown := next((row[0] for row in rows if row[0] not in known), None):
        raise ValueError(f"{path}: label {unknown!r} is not in the training data ({', '.join(sorted(known)[:9])})")


def features(encode: Encode, rows: Sequence[LabelledRow]) -> np.ndarray:
    """(N, d) vectors of rows with one text, (N, 2d) [|u - v|; u * v] of rows with two (SentEval's for MRPC).

    Calls `encode` once, with each distinct text once.
    """
    texts = list(dict.fromkeys(text for row in rows for text in row[1:]))
    number_of = {text: number for number, text in enumerate(texts)}
    vectors = encode(texts)
    views = [vectors[[number_of[text] for text in column]] for column in list(zip(*rows, strict=True))[1:]]
    if len(views) == 1:
        return views[0]
    first, second = views
    return np.hstack([np.abs(first - second), first * second])


def stratified(count: int) -> StratifiedKFold:
    """SentEval's `count` folds: stratified and shuffled with its seed."""
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(count, shuffle=True, random_state=SEED)


def classifier(strength: float = 1.0) -> Pipeline:
    """Unfitted standardisation and logistic regression with C = `strength`; 1 is scikit-learn's default."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))


def chosen_by_folds(train: Part, test: np.ndarray, folds: int) -> np.ndarray:
    """(N,) labels predicted for the rows of `test`; cross-validation on `train` chooses the strength."""
    from sklearn.model_selection import GridSearchCV

    grid = {"logisticregression__C": STRENGTHS}
    return GridSearchCV(classifier(), grid, cv=stratified(folds), error_score="raise").fit(*train).predict(test)


def chosen_on_dev(train: Part, dev: Part, test: np.ndarray) -> np.ndarray:
    """(N,) labels predicted for the rows of `test` by the classifier trained on `train` that is best on `dev`."""
    fitted = [classifier(strength).fit(*train) for strength in STRENGTHS]
    return max(fitted, key=lambda model: model.score(*dev)).predict(test)
