"""Comparable maps: one t-SNE map per model, aligned with the first in the same square, and how faithful each is.

t-SNE places a map anywhere and at any angle. Each map therefore starts from the first one and is then rotated or
mirrored onto it, so that the differences that are left are differences between the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from cse.vectors import unit_rows

PCA_DIMENSIONS = 50
PERPLEXITY = 30.0  # t-SNE's usual value; at most (N - 1) / 3 for N points
ITERATIONS = 500  # as good as scikit-learn's 1,000 from this start (docs/benchmarks.md)
ANGLE = 0.8  # of Barnes-Hut: larger is coarser
START_SPREAD = 1e-4  # t-SNE's initial layout must be small
START_NOISE = 0.1  # relative to that spread; the only use of the seed
FRAME_MARGIN = 1.05  # keeps the outermost points off the frame
MIN_POINTS = 10  # fewest points that scores are shown for: smaller maps are nearly always right
NEIGHBOURS = 5  # of trustworthiness and continuity
LOST_DEPTH = 10  # neighbours per point of `lost`
MAX_SCORED_POINTS = 2000  # most points that trustworthiness and continuity are measured of
SAME_DISTANCE = 1e-6  # float32 vectors of one sentence differ by less


def project(vectors: Mapping[str, np.ndarray], seed: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield (N, 2) float32 maps in [0, 1], by model, of each model's (N, d) vectors of the same N sentences.

    All maps so far are yielded whenever another one is done.
    """
    maps: dict[str, np.ndarray] = {}
    for name, rows in vectors.items():
        maps[name] = place(rows, seed, next(iter(maps.values()), None))
        yield squared(maps)


def place(rows: np.ndarray, seed: int, reference: np.ndarray | None = None) -> np.ndarray:
    """(N, 2) centred map of vectors (N, d), which starts from a centred `reference` (N, 2) and is aligned to it."""
    known = None if reference is None or collapsed(reference) else reference  # one without extent is ignored
    points = centred(embed(directions(rows), seed, known))
    if known is None:
        return points
    from scipy.linalg import orthogonal_procrustes

    return points @ orthogonal_procrustes(points, known)[0]  # rotated or mirrored to be closest


def embed(rows: np.ndarray, seed: int, start: np.ndarray | None) -> np.ndarray:
    """(N, 2) float64 t-SNE map of (N, d) unit rows, initialised with `start` (N, 2) or the first two components.

    Identical rows get the same point; fewer than 4 rows are placed by their components, which preserve distances.
    """
    if collapsed(rows):
        return np.zeros((len(rows), 2))
    left, sizes, axes = np.linalg.svd(centred(rows), full_matrices=False)
    kept = min(PCA_DIMENSIONS, len(sizes))
    largest = np.abs(axes[:kept]).argmax(axis=1)
    signs = np.sign(axes[np.arange(kept), largest])  # fixes the arbitrary sign of a component
    components = np.pad(left[:, :kept] * sizes[:kept] * signs, ((0, 0), (0, max(0, 2 - kept))))  # (N, 2..50)
    if len(rows) < 4:
        return components[:, :2]
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    start = components[:, :2] if start is None else start
    noise = np.random.default_rng(seed).normal(scale=START_NOISE, size=start.shape)
    init = ((start / start.std() + noise) * START_SPREAD).astype(np.float32)
    tsne = TSNE(perplexity=min(PERPLEXITY, (len(rows) - 1) / 3), init=init, max_iter=ITERATIONS, angle=ANGLE)
    with threadpool_limits(1):  # threads sum in varying order, and t-SNE amplifies the rounding differences
        return tsne.fit_transform(components.astype(np.float32)).astype(np.float64)


def squared(maps: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Scale centred maps (N, 2) to the unit square with shared limits, float32, each centred at (0.5, 0.5).

    All get the same spread first, as the size of a t-SNE map has no meaning.
    """
    even = {name: points / (points.std() if points.size and points.any() else 1.0) for name, points in maps.items()}
    reach = max((float(np.abs(points).max(initial=0.0)) for points in even.values()), default=0.0) * FRAME_MARGIN or 1.0
    return {name: (0.5 + points / (2 * reach)).astype(np.float32) for name, points in even.items()}


def centred(points: np.ndarray) -> np.ndarray:
    """The rows minus their mean; an empty array is returned unchanged."""
    return points - points.mean(axis=0) if len(points) else points


def trustworthiness(vectors: np.ndarray, xy: np.ndarray) -> float:
    """Trustworthiness, 1 at best: the map's neighbours (N, 2) are also neighbours among the vectors (N, d) by cosine.

    Venna and Kaski 2001, with 5 neighbours, fewer if N < 11; 1 for maps too small to be wrong. Of more than 2,000
    points it is that of 2,000, sampled evenly.
    """
    return preserved(directions(vectors), np.asarray(xy, np.float64))


def continuity(vectors: np.ndarray, xy: np.ndarray) -> float:
    """Continuity, 1 at best: the vectors' neighbours (N, d) are also neighbours on the map (N, 2); as above."""
    return preserved(np.asarray(xy, np.float64), directions(vectors))


def preserved(rows: np.ndarray, others: np.ndarray) -> float:
    """Trustworthiness of neighbours among `others` (N, e) with respect to ranks among `rows` (N, d)."""
    from sklearn import manifold

    sample = evenly(len(rows), MAX_SCORED_POINTS)
    rows, others = rows[sample], others[sample]
    neighbours = min(NEIGHBOURS, (len(rows) - 1) // 2)
    if neighbours < 1 or collapsed(rows) or collapsed(others):
        return 1.0
    return float(manifold.trustworthiness(rows, others, n_neighbors=neighbours))


def evenly(count: int, most: int) -> np.ndarray:
    """(min(count, most),) ascending indices, spread evenly over 0 to `count` - 1."""
    return np.arange(min(count, most)) * count // max(min(count, most), 1)


def lost(near: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """(N,) share of each point's nearest vectors, `near` (N, k), that are not among its k nearest points (N, 2).

    All 0 if the points have one place.
    """
    if collapsed(np.asarray(xy)):
        return np.zeros(len(xy))
    return unshared(near, nearest(np.asarray(xy, np.float64), near.shape[1]))


def unshared(near: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(N,) share of the neighbours in each row of `near` (N, k) that the row of `others` (N, k) lacks; 0 for none."""
    if not near.shape[1]:
        return np.zeros(len(near))
    return 1 - (near[:, :, None] == others[:, None, :]).any(axis=2).mean(axis=1)


def nearest(rows: np.ndarray, count: int) -> np.ndarray:
    """(N, k) indices of the other rows (N, d) nearest to each, nearest first; k is `count`, at most N - 1."""
    from scipy.spatial import cKDTree

    count = min(count, max(len(rows) - 1, 0))
    if not count:
        return np.zeros((len(rows), 0), dtype=int)
    neighbours = cKDTree(rows).query(rows, count + 1)[1]
    own = neighbours == np.arange(len(rows))[:, None]
    own[~own.any(axis=1), -1] = True  # more than `count` others at the same place
    return neighbours[~own].reshape(len(rows), count)


def directions(vectors: np.ndarray) -> np.ndarray:
    """(N, d) float64 unit rows, whose Euclidean distances rank as their cosines."""
    return unit_rows(np.asarray(vectors, np.float64))


def collapsed(rows: np.ndarray) -> bool:
    """True if all rows are equal."""
    return bool(np.all(np.abs(rows - rows[:1]) < SAME_DISTANCE))
