"""Vectors to comparable pictures: one t-SNE map per model, aligned with the first and drawn within the same square.

t-SNE places a map anywhere and at any angle. Here the first map is the others' starting point, and each of them is
then turned or mirrored onto it, so that what still differs between two maps differs between the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from cse.analysis.faithfulness import collapsed, directions

PCA_DIMENSIONS = 50
PERPLEXITY = 30.0  # t-SNE's usual one; a map of N points has at most (N - 1) / 3
START_SPREAD = 1e-4  # t-SNE wants to start from a tiny picture
START_NOISE = 0.1  # of the picture's spread; all that the seed decides
MARGIN = 1.05


def project(vectors: Mapping[str, np.ndarray], seed: int) -> Iterator[dict[str, np.ndarray]]:
    """(N, 2) float32 in [0, 1] for each model's (N, d) vectors of the same N sentences.

    The maps so far come whenever another one is done; the last ones are all.
    Raises ValueError where the models have different N.
    """
    counts = {name: len(rows) for name, rows in vectors.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"the models have vectors of different numbers of sentences: {counts}")
    maps: dict[str, np.ndarray] = {}
    reference: np.ndarray | None = None
    for name, rows in vectors.items():
        points = centred(embed(directions(rows), seed, reference))
        reference = points if reference is None or collapsed(reference) else reference
        maps[name] = align(points, reference)
        yield squared(maps)


def embed(rows: np.ndarray, seed: int, start: np.ndarray | None) -> np.ndarray:
    """(N, 2) float64 map of (N, d) unit rows: t-SNE from the picture `start` (N, 2), or from the first two components.

    Identical rows share one place; fewer than 4 are placed by their components, which keep the distances of three.
    """
    if collapsed(rows):
        return np.zeros((len(rows), 2))
    components = principal(rows)
    if len(rows) < 4:
        return components[:, :2]
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    start = components[:, :2] if start is None or collapsed(start) else start
    noise = np.random.default_rng(seed).normal(scale=START_NOISE, size=start.shape)
    tsne = TSNE(
        perplexity=min(PERPLEXITY, (len(rows) - 1) / 3),
        init=((start / start.std() + noise) * START_SPREAD).astype(np.float32),
    )
    with threadpool_limits(1):  # several threads add in any order, and t-SNE enlarges the difference
        return tsne.fit_transform(components.astype(np.float32)).astype(np.float64)


def principal(rows: np.ndarray) -> np.ndarray:
    """(N, 2..50) float64 coordinates of (N, d) rows along their principal components, zeros where there is none."""
    left, sizes, directions = np.linalg.svd(centred(rows), full_matrices=False)
    kept = min(PCA_DIMENSIONS, len(sizes))
    largest = np.abs(directions[:kept]).argmax(axis=1)
    signs = np.sign(directions[np.arange(kept), largest])  # a component's direction is arbitrary: fix it
    coordinates = left[:, :kept] * sizes[:kept] * signs
    return np.pad(coordinates, ((0, 0), (0, max(0, 2 - kept))))


def align(points: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Centred `points` (N, 2) turned and mirrored to lie closest to the centred `reference` (N, 2)."""
    from scipy.linalg import orthogonal_procrustes

    rotation, _ = orthogonal_procrustes(points, reference)  # (2, 2)
    return points @ rotation


def squared(maps: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Centred maps (N, 2) in the unit square within the same limits, float32, each centre at (0.5, 0.5).

    All get the same spread first: the size of a t-SNE map says nothing.
    """
    even = {name: points / (points.std() if points.size and points.any() else 1.0) for name, points in maps.items()}
    reach = max((float(np.abs(points).max(initial=0.0)) for points in even.values()), default=0.0) * MARGIN or 1.0
    return {name: (0.5 + points / (2 * reach)).astype(np.float32) for name, points in even.items()}


def centred(points: np.ndarray) -> np.ndarray:
    """The rows minus their mean; no rows stay none."""
    return points - points.mean(axis=0) if len(points) else points
