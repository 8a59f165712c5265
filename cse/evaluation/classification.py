"""Labelled texts (`label<TAB>text` or `label<TAB>text<TAB>text` files) and the linear classifiers of their vectors.

A row is a tuple of the label, as written in the file, and the texts. Logistic regression has SentEval's hypotheses,
a linear layer under a softmax, but is solved to convergence and needs no seed. Features are standardised with the mean
and deviation of the training rows, so that a penalty means the same for vectors of any length. Of equally good
strengths the one with the strongest penalty is taken.

SentEval's own classifier is the same layer, trained by early-stopped Adam with L2 as weight decay. Settings of its
"test" protocol: learning rate 1e-3, batches of 64, an evaluation on held-out rows every 4 epochs, at most 200 epochs;
the weights of the best evaluation are kept. After 5 evaluations without a new best in all, the next one ends the
training: SentEval never resets this counter. With the strength chosen by folds, the layer is trained again on 95 % of
the rows, the rest held out. Every layer starts from seed 1111 and draws the same numbers as PyTorch and NumPy in
SentEval: another draw changes MRPC by half a point. All strengths use the same draws, so they are trained together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from cse.corpus.dialect import TEXT_NAMES
from cse.corpus.lines import text_lines

if TYPE_CHECKING:
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import Pipeline

    from cse.evaluation import Encode

LabelledRow = tuple[str, ...]
Part = tuple[np.ndarray, np.ndarray]  # (N, d) features, (N,) labels
SEED = 1111  # SentEval's


def labelled_rows(path: Path, texts: int = 1) -> list[LabelledRow]:
    """Rows of one label and `texts` texts, all stripped, from a tab-separated file without a header; never empty.

    Empty lines are skipped, and as in training a first row that is a header: its last cell is "text" or "sentence".
    Raises ValueError naming file and line for a wrong column count and for an empty label or text, and naming the file
    if it is missing, holds no row or has only one label.
    """
    layout = "<TAB>".join(["label", *["text"] * texts])
    rows: list[LabelledRow] = []
    for number, line in enumerate(text_lines(path), start=1):
        row = tuple(cell.strip() for cell in line.split("\t"))
        if not any(row) or (not rows and len(row) == 1 + texts and row[-1].lower() in TEXT_NAMES):
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
    first, *second = (vectors[[number_of[text] for text in column]] for column in list(zip(*rows, strict=True))[1:])
    return np.hstack([np.abs(first - second[0]), first * second[0]]) if second else first


def stratified(count: int) -> StratifiedKFold:
    """SentEval's `count` folds: stratified and shuffled with its seed."""
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(count, shuffle=True, random_state=SEED)


class Classifier(Protocol):
    """A linear classifier that chooses the strength of its penalty, and predicts the labels (N,) of `test` (N, d)."""

    def by_folds(self, train: Part, test: np.ndarray, folds: int) -> np.ndarray:
        """Cross-validation on `train` chooses the strength."""

    def on_dev(self, train: Part, dev: Part, test: np.ndarray) -> np.ndarray:
        """The classifier trained on `train` that is best on `dev` predicts."""


class Logistic:
    """Standardisation and logistic regression, of scikit-learn."""

    strengths = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # scikit-learn's C

    @staticmethod
    def pipeline(strength: float = 1.0) -> Pipeline:
        """The unfitted steps with C = `strength`; 1 is scikit-learn's default."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))

    def by_folds(self, train: Part, test: np.ndarray, folds: int) -> np.ndarray:
        """Cross-validation on `train` chooses the strength."""
        from sklearn.model_selection import GridSearchCV

        grid = {"logisticregression__C": self.strengths}
        search = GridSearchCV(self.pipeline(), grid, cv=stratified(folds), error_score="raise")
        return search.fit(*train).predict(test)

    def on_dev(self, train: Part, dev: Part, test: np.ndarray) -> np.ndarray:
        """The classifier trained on `train` that is best on `dev` predicts."""
        fitted = [self.pipeline(strength).fit(*train) for strength in self.strengths]
        return max(fitted, key=lambda model: model.score(*dev)).predict(test)


RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8  # Adam's
BATCH_ROWS = 64
EPOCHS, MAX_EPOCHS = 4, 200  # between evaluations, and in all
TENACITY = 5  # evaluations without a new best, in all
HELD_OUT_SHARE = 0.05


class SentEval:
    """SentEval's early-stopped layer."""

    strengths = (1e-5, 1e-4, 1e-3, 1e-2)

    def by_folds(self, train: Part, test: np.ndarray, folds: int) -> np.ndarray:
        """Cross-validation on `train` chooses the strength."""
        rows, names = train
        scores = [
            self.fit((rows[inside], names[inside]), (rows[outside], names[outside]), self.strengths)[1]
            for inside, outside in stratified(folds).split(rows, names)
        ]
        strength = self.strengths[int((100 * np.mean(scores, 0)).round(2).argmax())]  # rounded as in SentEval
        weights, _ = self.fit(train, None, (strength,))
        return np.unique(names)[(_with_ones(test) @ weights[0].T).argmax(-1)]

    def on_dev(self, train: Part, dev: Part, test: np.ndarray) -> np.ndarray:
        """The layer trained on `train` that is best on `dev` predicts."""
        weights, scores = self.fit(train, dev, self.strengths)
        return np.unique(train[1])[(_with_ones(test) @ weights[scores.argmax()].T).argmax(-1)]

    def fit(self, train: Part, held: Part | None, strengths: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """The weights (K, C, d + 1) of each strength's best evaluation, and its accuracy (K,) on the rows of `held`.

        The last column of the weights are the biases. If `held` is None, 5 % of `train` are held out.
        """
        rng, known = np.random.RandomState(SEED), np.unique(train[1])
        if held is None:
            outside, inside = np.split(rng.permutation(len(train[0])), [max(1, int(HELD_OUT_SHARE * len(train[0])))])
            train, held = ((train[0][inside], train[1][inside]), (train[0][outside], train[1][outside]))
        rows, tested = _with_ones(train[0]), _with_ones(held[0])
        one_hot = (train[1][:, None] == known).astype(np.float32)
        weights = np.stack([_first_weights(len(known), train[0].shape[1])] * len(strengths))  # (K, C, d + 1)
        decay = np.array(strengths, np.float32)[:, None, None]
        moments, steps = np.zeros((2, *weights.shape), np.float32), 0
        best, kept = np.full(len(strengths), -1.0), weights.copy()
        failures, active = np.zeros(len(strengths), int), np.ones(len(strengths), bool)
        for _ in range(0, MAX_EPOCHS + 1, EPOCHS):
            for order in (rng.permutation(len(rows)) for _ in range(EPOCHS)):
                for batch in np.split(order, range(BATCH_ROWS, len(order), BATCH_ROWS)):
                    gradient = _gradient(weights, rows[batch], one_hot[batch]) + decay * weights
                    steps += 1
                    for moment, beta, power in zip(moments, BETAS, (gradient, gradient * gradient), strict=True):
                        moment += (1 - beta) * (power - moment)
                    first, second = (1 - beta**steps for beta in BETAS)  # Adam's bias correction
                    weights -= RATE / first * moments[0] / (np.sqrt(moments[1]) / second**0.5 + EPSILON)
            accuracy = (known[_logits(weights, tested).argmax(-1)] == held[1][:, None]).mean(0)  # (K,)
            better = active & (accuracy > best)
            best[better], kept[better] = accuracy[better], weights[better]
            active &= better | (failures < TENACITY)
            failures += ~better
            if not active.any():
                break
        return kept, best


def _first_weights(classes: int, inputs: int) -> np.ndarray:
    """(C, d + 1) weights of PyTorch's linear layer, uniform within 1 / sqrt(d), for a seed of 1111."""
    drawn = np.random.RandomState(SEED).randint(0, 2**32, classes * (inputs + 1), dtype=np.uint32)
    uniform = (drawn % 2**24).astype(np.float32) * np.float32(2**-24)  # PyTorch's: the low bits of MT19937
    uniform = (uniform * 2 - 1) * np.float32(inputs**-0.5)
    return np.hstack([uniform[:-classes].reshape(classes, inputs), uniform[-classes:, None]])  # biases come last


def _logits(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(n, K, C) logits of rows (n, d + 1) whose last entry is 1."""
    return (rows @ weights.reshape(-1, weights.shape[-1]).T).reshape(-1, *weights.shape[:2])


def _gradient(weights: np.ndarray, rows: np.ndarray, one_hot: np.ndarray) -> np.ndarray:
    """(K, C, d + 1) gradient of the mean cross-entropy of a batch; `one_hot` (n, C) is the one-hot class."""
    logits = _logits(weights, rows)
    probabilities = np.exp(logits - logits.max(-1, keepdims=True))
    probabilities /= probabilities.sum(-1, keepdims=True)
    errors = (probabilities - one_hot[:, None]).reshape(len(rows), -1)
    return (errors.T @ rows / len(rows)).reshape(weights.shape)


def _with_ones(rows: np.ndarray) -> np.ndarray:
    """(n, d + 1) float32: rows (n, d) with a last column of ones, for the bias."""
    return np.hstack([rows, np.ones((len(rows), 1))]).astype(np.float32)
