"""SentEval's own classifier for transfer: one linear layer under a softmax, early-stopped Adam, L2 as weight decay.

Settings of its "test" protocol: learning rate 1e-3, batches of 64, an evaluation on held-out rows every 4 epochs, at
most 200 epochs; the weights of the best evaluation are kept. After 5 evaluations without a new best in all, the next
one ends the training: SentEval never resets this counter. With the strength chosen by folds, the layer is trained again
on 95 % of the rows, the rest held out.

Every layer starts from seed 1111 and draws the same numbers as PyTorch and NumPy in SentEval: another draw changes MRPC
by half a point. All strengths use the same draws, so they are trained together, as rows of one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cse.evaluation.classification import SEED, Part, stratified

STRENGTHS = (1e-5, 1e-4, 1e-3, 1e-2)
RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8
BATCH_ROWS = 64
EPOCHS, MAX_EPOCHS = 4, 200  # between evaluations, and in all
TENACITY = 5  # evaluations without a new best, in all
HELD_OUT_SHARE = 0.05


@dataclass
class Layers:
    """K layers of C classes over d features, one per strength: `weights` (K, C, d + 1), each class's bias last.

    `first` and `second` are Adam's moments, of the same shape; `steps` counts its updates.
    """

    weights: np.ndarray
    strengths: np.ndarray  # (K, 1, 1)
    first: np.ndarray
    second: np.ndarray
    steps: int = 0

    @classmethod
    def start(cls, strengths: Sequence[float], classes: int, inputs: int) -> Layers:
        """Return equal weights for every strength, those of PyTorch's linear layer, uniform within 1 / sqrt(d)."""
        drawn = np.random.RandomState(SEED).randint(0, 2**32, classes * (inputs + 1), dtype=np.uint32)
        uniform = (drawn % 2**24).astype(np.float32) * np.float32(2**-24)  # PyTorch's: the low bits of MT19937
        uniform = (uniform * 2 - 1) * np.float32(inputs**-0.5)
        first = np.hstack([uniform[:-classes].reshape(classes, inputs), uniform[-classes:, None]])  # biases come last
        weights = np.stack([first] * len(strengths))
        decay = np.array(strengths, np.float32)[:, None, None]
        return cls(weights, decay, np.zeros_like(weights), np.zeros_like(weights))

    def logits(self, rows: np.ndarray) -> np.ndarray:
        """(n, K, C) logits of rows (n, d + 1) whose last entry is 1."""
        count, classes, width = self.weights.shape
        return (rows @ self.weights.reshape(-1, width).T).reshape(-1, count, classes)

    def learn(self, rows: np.ndarray, one_hot: np.ndarray) -> None:
        """Take one Adam step on the mean cross-entropy of a batch; `one_hot` (n, C) is the one-hot class."""
        logits = self.logits(rows)
        probabilities = np.exp(logits - logits.max(-1, keepdims=True))
        probabilities /= probabilities.sum(-1, keepdims=True)
        errors = (probabilities - one_hot[:, None]).reshape(len(rows), -1)
        gradient = (errors.T @ rows / len(rows)).reshape(self.weights.shape) + self.strengths * self.weights
        self.steps += 1
        self.first += (1 - BETAS[0]) * (gradient - self.first)
        self.second += (1 - BETAS[1]) * (gradient * gradient - self.second)
        corrections = [1 - beta**self.steps for beta in BETAS]  # Adam's bias correction
        self.weights -= RATE / corrections[0] * self.first / (np.sqrt(self.second) / corrections[1] ** 0.5 + EPSILON)


def chosen_by_folds(train: Part, test: np.ndarray, folds: int) -> np.ndarray:
    """(N,) labels predicted for the rows of `test`; cross-validation on `train` chooses the strength."""
    rows, names = train
    scores = [
        fit((rows[inside], names[inside]), (rows[outside], names[outside]))[1]
        for inside, outside in stratified(folds).split(rows, names)
    ]
    chosen = STRENGTHS[int((100 * np.mean(scores, 0)).round(2).argmax())]  # rounded as in SentEval; first of ties
    weights, _ = fit(train, None, (chosen,))
    return predicted(weights[0], test, np.unique(names))


def chosen_on_dev(train: Part, dev: Part, test: np.ndarray) -> np.ndarray:
    """(N,) labels predicted for the rows of `test` by the layer trained on `train` that is best on `dev`."""
    weights, scores = fit(train, dev)
    return predicted(weights[scores.argmax()], test, np.unique(train[1]))


def fit(train: Part, held: Part | None, strengths: Sequence[float] = STRENGTHS) -> tuple[np.ndarray, np.ndarray]:
    """The weights (K, C, d + 1) of each strength's best evaluation, and its accuracy (K,) on the rows of `held`.

    If `held` is None, 5 % of `train` are held out.
    """
    rng, known = np.random.RandomState(SEED), np.unique(train[1])
    if held is None:
        outside, inside = np.split(rng.permutation(len(train[0])), [max(1, int(HELD_OUT_SHARE * len(train[0])))])
        train, held = ((train[0][inside], train[1][inside]), (train[0][outside], train[1][outside]))
    rows, tested = with_ones(train[0]), with_ones(held[0])
    one_hot = (train[1][:, None] == known).astype(np.float32)
    layers = Layers.start(strengths, len(known), train[0].shape[1])
    best, weights = np.full(len(strengths), -1.0), layers.weights.copy()
    failures, active = np.zeros(len(strengths), int), np.ones(len(strengths), bool)
    for _ in range(0, MAX_EPOCHS + 1, EPOCHS):
        for _ in range(EPOCHS):
            order = rng.permutation(len(rows))
            for start in range(0, len(rows), BATCH_ROWS):
                batch = order[start : start + BATCH_ROWS]
                layers.learn(rows[batch], one_hot[batch])
        accuracy = (known[layers.logits(tested).argmax(-1)] == held[1][:, None]).mean(0)  # (K,)
        better = active & (accuracy > best)
        best[better], weights[better] = accuracy[better], layers.weights[better]
        active &= better | (failures < TENACITY)
        failures += ~better
        if not active.any():
            break
    return weights, best


def predicted(weights: np.ndarray, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """(n,) labels predicted by one layer (C, d + 1) for rows (n, d)."""
    return classes[(with_ones(rows) @ weights.T).argmax(-1)]


def with_ones(rows: np.ndarray) -> np.ndarray:
    """(n, d + 1) float32: rows (n, d) with a last column of ones, for the bias."""
    return np.hstack([rows, np.ones((len(rows), 1))]).astype(np.float32)
