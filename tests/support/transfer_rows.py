"""Transfer sets made by hand, and the accuracy of a regression on them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

Rows = list[tuple[str, ...]]


def write(folder: Path, name: str, **files: Rows) -> Path:
    (folder / name).mkdir(exist_ok=True)
    for file, rows in files.items():
        (folder / name / f"{file}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return folder


def numbers(texts: Sequence[str]) -> np.ndarray:
    """Vectors for texts that are numbers with blanks between."""
    return np.array([[float(word) for word in text.split()] for text in texts], np.float32)


def noisy(seed: int, count: int, texts: int = 1, size: int = 6) -> Rows:
    """Rows of "0" and "1" whose numbers hint at the label but overlap, with each dimension at its own scale."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        vectors = (rng.normal(size=(texts, size)) + 0.5 * (number % 2)) * np.logspace(-1, 1, size)
        rows.append((str(number % 2), *(" ".join(f"{x:.4f}" for x in vector) for vector in vectors)))
    return rows


def separable(count: int, names: str = "ab", texts: int = 1) -> Rows:
    """Rows whose first text points along the label's own axis; a second text is the origin, so |u - v| does too."""
    rows = []
    for number in range(count):
        label = number % len(names)
        axis = " ".join("10" if n == label else str(number % 7 / 7) for n in range(len(names)))
        rows.append((names[label], axis, " ".join("0" * len(names)))[: 1 + texts])
    return rows


def arrays(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    return numbers([row[1] for row in rows]), np.array([row[0] for row in rows])


def slow(train: tuple, test: tuple, strength: float) -> float:
    """Accuracy on `test` of a regression on `train`, both standardised by the mean and deviation of `train`."""
    (x, y), (z, gold) = train, test
    mean, deviation = x.mean(0), x.std(0)
    model = LogisticRegression(C=strength, max_iter=1000).fit((x - mean) / deviation, y)
    return float(np.mean(model.predict((z - mean) / deviation) == gold))
