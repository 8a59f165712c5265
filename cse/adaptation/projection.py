"""One linear layer fitted on the vectors of a user's texts: towards their neighbours, or principal components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cse.vectors import nearest_others, unit_rows

# Fewer dimensions gain more where labels are few and coarse, and lose where they are many (docs/own-text.md).
COMPONENTS, PER_COMPONENT = 192, 4  # the most that are kept by default; texts that each of them needs
LEAST_WITH_NEIGHBOURS = 1000  # texts; with fewer, neighbours share too few labels (docs/own-text.md)
NEIGHBOURS = 5  # of a text, from that many texts on
OWN_SHARE, RIDGE = 0.5, 0.01  # of a text in its target; of the mean variance
BLOCK = 4096  # rows at a time in float64


@dataclass(frozen=True)
class Projection:
    """The `mean` (d,) that is subtracted from vectors, and the `components` (k, d) that then multiply them, in float64.

    `explained` is the share of the variance of the layer's outputs that the components keep.
    """

    mean: np.ndarray
    components: np.ndarray
    explained: float

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The weight (k, d) and bias (k,) of the linear layer, float32, by the names of a head."""
        bias = -(self.components @ self.mean)
        return {"0.weight": self.components.astype(np.float32), "0.bias": bias.astype(np.float32)}

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Return the (N, k) float32 projections of vectors (N, d), as the layer computes them."""
        weight, bias = self.arrays.values()
        return vectors.astype(np.float32) @ weight.T + bias


def default_components(count: int, width: int) -> int:
    """Return how many components are kept: the least of half the width, 192 and a quarter of the texts."""
    return max(1, min(COMPONENTS, width // 2, count // PER_COMPONENT))


def fit_projection(vectors: np.ndarray, components: int | None = None, neighbours: int | None = None) -> Projection:
    """Return the projection that suits vectors (N, d), on `default_components` unless `components` are given.

    With `neighbours` it moves each vector towards so many others: by default five from 1,000 texts on, else none. The
    target of a text is the mean of its own centred unit vector and the mean of those of its nearest others
    (database-side augmentation, Arandjelović and Zisserman 2012, with equal weights); the layer is the ridge regression
    of the targets on the centred vectors (Hoerl and Kennard 1970). Without, the layer only centres. Its outputs are
    then projected on their first principal components (Jolliffe 2002, chapter 2), each with the sign that makes the
    largest number of its row positive. Nothing is divided by the variances: whitening made neighbours worse on all
    texts that were tried. Raises ValueError unless 1 <= components <= N and d, for vectors that are not finite, and for
    equal ones.
    """
    count, width = vectors.shape
    components = default_components(count, width) if components is None else components
    if type(components) is not int or components < 1:
        raise ValueError(f"components is {components!r}; give a whole number of at least 1")
    if components > count:
        raise ValueError(
            f"components is {components}, but there are {count} texts; give fewer components or more texts"
        )
    if components > width:
        raise ValueError(
            f"components is {components}, but the model's vectors have {width} numbers; give at most {width}"
        )
    if not np.isfinite(vectors).all():
        raise ValueError("vectors are not finite; the model's weights may be damaged")
    mean = vectors.mean(axis=0, dtype=np.float64)
    scatter = _product(vectors, vectors, mean, mean)
    if np.trace(scatter) <= count * np.square(mean).sum() * np.finfo(np.float32).eps ** 2:
        raise ValueError("all texts have the same vector; give different texts")
    layer = np.eye(width)  # (d, d)
    if neighbours is None:
        neighbours = NEIGHBOURS if count >= LEAST_WITH_NEIGHBOURS else 0
    if neighbours:
        targets = _targets(vectors - mean.astype(np.float32), neighbours)
        ridge = RIDGE * np.trace(scatter) / width * layer
        layer = np.linalg.solve(scatter + ridge, _product(vectors, targets, mean, 0.0))
    variances, turns = np.linalg.eigh(layer.T @ scatter @ layer)  # of the outputs, ascending
    chosen = (layer @ turns).T[::-1][:components]
    largest = np.abs(chosen).argmax(axis=1)
    signs = np.sign(np.take_along_axis(chosen, largest[:, None], axis=1))
    return Projection(mean, chosen * signs, float(variances[::-1][:components].sum() / variances.clip(0).sum()))


def _targets(centred: np.ndarray, neighbours: int) -> np.ndarray:
    """Return the (N, d) means of each unit row and of the mean of its nearest others."""
    unit = unit_rows(centred)
    near, out = nearest_others(unit, neighbours), np.empty_like(unit)
    for start in range(0, len(unit), BLOCK):
        rows = slice(start, start + BLOCK)
        out[rows] = OWN_SHARE * unit[rows] + (1 - OWN_SHARE) * unit[near[rows]].mean(axis=1)
    return out


def _product(first: np.ndarray, second: np.ndarray, mean: np.ndarray, other: np.ndarray | float) -> np.ndarray:
    """Return (first - mean)^T (second - other), a (d, d) sum over rows in float64."""
    found = np.zeros((first.shape[1], second.shape[1]))
    for start in range(0, len(first), BLOCK):
        rows = slice(start, start + BLOCK)
        found += (first[rows].astype(np.float64) - mean).T @ (second[rows].astype(np.float64) - other)
    return found
