"""Transfer: accuracy x 100 of a linear classifier on frozen vectors, on SentEval's seven sets (its "test" protocol).

Each set is a folder of its name; its files determine the protocol:

- `all.tsv` (MR CR SUBJ MPQA): nested cross-validation, the mean accuracy of 10 outer folds; inside each, 10 folds of
  its training part choose the L2 strength.
- `train.tsv` `dev.tsv` `test.tsv` (SST2): trained on train, strength chosen on dev, scored on test.
- `train.tsv` `test.tsv` (TREC MRPC): strength chosen by 10 folds of train, trained on all of train, scored on test.
  MRPC's lines have two sentences, its features are [|u - v|; u * v], and F1 is reported too.

Folds are stratified and shuffled with SentEval's seed 1111. A row is a tuple of the label, as written in the file, and
the texts.

Few-shot transfer is the accuracy of a classifier that sees 16 labelled texts per class (ConPVP Figure 7) of the same
sets. Ten draws, seeds 0 to 9, are taken from the training split and scored on the test split; a set without splits is
scored on all rows not drawn. The paper does not name its classifier; here it is transfer's logistic regression with
C = 1, as 16 labels are too few to select C.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.corpus.dialect import TEXT_NAMES
from cse.corpus.lines import text_lines
from cse.evaluation.metrics import numbered
from cse.evaluation.tasks import LOGISTIC, Repeats, Task, TaskData

if TYPE_CHECKING:
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import Pipeline

    from cse.evaluation import Encode, Scores, Unit

LabelledRow = tuple[str, ...]
Part = tuple[np.ndarray, np.ndarray]  # (N, d) features, (N,) labels
SEED = 1111  # SentEval's
WHOLE_FILES, SPLIT_FILES = ("all.tsv",), ("train.tsv", "test.tsv")
SETS = {
    "MR": WHOLE_FILES, "CR": WHOLE_FILES, "SUBJ": WHOLE_FILES, "MPQA": WHOLE_FILES,
    "SST2": ("train.tsv", "dev.tsv", "test.tsv"), "TREC": SPLIT_FILES, "MRPC": SPLIT_FILES,
}  # fmt: skip
LAYOUT = ", ".join(f"{name}/{{{','.join(files)}}}" for name, files in SETS.items())
PAIRED = ("MRPC",)
PARAPHRASE = "1"  # the label MRPC's F1 is of
FOLDS, INNER_FOLDS = 10, 10
SHOTS, DRAWS = 16, range(10)  # labelled texts per class, seeds of the draws


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
            f"{path}: label {label!r} has {count} of {least} required rows; add some, or remove it, as a header"
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
    texts, numbers = numbered([text for row in rows for text in row[1:]])
    vectors = encode(texts)[numbers]
    if len(vectors) == len(rows):
        return vectors
    first, second = vectors[::2], vectors[1::2]
    return np.hstack([np.abs(first - second), first * second])


def stratified(count: int) -> StratifiedKFold:
    """SentEval's `count` folds: stratified and shuffled with its seed."""
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(count, shuffle=True, random_state=SEED)


class Logistic:
    """Logistic regression of scikit-learn, which chooses the strength of its penalty.

    It has SentEval's hypotheses, a linear layer under a softmax, but is solved to convergence and needs no seed.
    Features are standardised with the mean and deviation of the training rows, so that a penalty means the same for
    vectors of any length. Of equally good strengths the one with the strongest penalty is taken.
    """

    strengths = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # scikit-learn's C

    @staticmethod
    def pipeline(strength: float = 1.0) -> Pipeline:
        """The unfitted steps with C = `strength`."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))

    def by_folds(self, train: Part, test: np.ndarray, folds: int) -> np.ndarray:
        """The labels (N,) of `test` (N, d); cross-validation on `train` chooses the strength."""
        from sklearn.model_selection import GridSearchCV

        grid = {"logisticregression__C": self.strengths}
        search = GridSearchCV(self.pipeline(), grid, cv=stratified(folds), error_score="raise")
        return search.fit(*train).predict(test)

    def on_dev(self, train: Part, dev: Part, test: np.ndarray) -> np.ndarray:
        """The labels (N,) of `test` (N, d) by the classifier trained on `train` that is best on `dev`."""
        fitted = [self.pipeline(strength).fit(*train) for strength in self.strengths]
        return max(fitted, key=lambda model: model.score(*dev)).predict(test)


RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8  # Adam's
BATCH_ROWS = 64
EPOCHS, MAX_EPOCHS = 4, 200  # between evaluations, and in all
TENACITY = 5  # evaluations without a new best, in all
HELD_OUT_SHARE = 0.05


class SentEval:
    """SentEval's own classifier: the same layer, trained by early-stopped Adam with L2 as weight decay.

    Settings of its "test" protocol: learning rate 1e-3, batches of 64, an evaluation on held-out rows every 4 epochs,
    at most 200 epochs; the weights of the best evaluation are kept. After 5 evaluations without a new best in all, the
    next one ends the training: SentEval never resets this counter. With the strength chosen by folds, the layer is
    trained again on 95 % of the rows, the rest held out. Every layer starts from seed 1111 and draws the same numbers
    as PyTorch and NumPy in SentEval: another draw changes MRPC by half a point. All strengths use the same draws, so
    they are trained together.
    """

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


CLASSIFIERS: dict[str, Logistic | SentEval] = {LOGISTIC: Logistic(), "senteval": SentEval()}


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


def _score(name: str, paths: Sequence[Path], classifier: Logistic | SentEval, encode: Encode) -> Scores:
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
