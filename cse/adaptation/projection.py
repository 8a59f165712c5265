"""Centring and principal components of the vectors of a user's texts: one linear layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Fewer dimensions gain more where labels are few and coarse, and lose where they are many (docs/own-text.md).
COMPONENTS, PER_COMPONENT = 192, 4  # the most that are kept by default; texts that each of them needs
BLOCK = 4096  # rows at a time in float64


@dataclass(frozen=True)
class Projection:
    """The `mean` (d,) and the first principal `components` (k, d) of vectors, in float64.

    `explained` is the share of the variance that lies in the components.
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


def fit_projection(vectors: np.ndarray, components: int | None = None) -> Projection:
    """Return the projection of vectors (N, d) on their first principal components (Jolliffe 2002, chapter 2).

    They are the eigenvectors of the covariance, the largest variance first, each with the sign that makes its number of
    largest magnitude positive; by default there are `default_components`. Nothing is divided by the variances:
    whitening made neighbours worse on all texts that were tried. Raises ValueError unless 1 <= components <= N and d,
    for vectors that are not finite, and for equal ones.
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
    scatter = np.zeros((width, width))
    for start in range(0, count, BLOCK):
        centred = vectors[start : start + BLOCK].astype(np.float64) - mean
        scatter += centred.T @ centred
    variances, axes = np.linalg.eigh(scatter)  # ascending
    if variances[-1] <= count * np.square(mean).sum() * np.finfo(np.float32).eps ** 2:
        raise ValueError("all texts have the same vector; give different texts")
    chosen = axes.T[::-1][:components]
    largest = np.abs(chosen).argmax(axis=1)
    signs = np.sign(np.take_along_axis(chosen, largest[:, None], axis=1))
    return Projection(mean, chosen * signs, float(variances[::-1][:components].sum() / variances.clip(0).sum()))
