"""Maps of one model's vectors by several methods: processor time, and how faithful each map is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cse.analysis import maps
from cse.evaluation.clustering import same_label_neighbours
from cse.vectors import nearest_others

OURS, DEFAULTS, RANDOM = "the app's", "scikit-learn's defaults", "scikit-learn's, random start"
PEERS = ("openTSNE", "umap-learn")  # not required; they are measured where they are installed
Method = Callable[[np.ndarray, np.ndarray], np.ndarray]


def methods(peers: Sequence[str]) -> dict[str, Method]:
    """Return functions of components (N, d) and a start (N, 2) of spread 1 that make a map (N, 2), by name."""
    from sklearn.manifold import TSNE

    def small(start: np.ndarray) -> np.ndarray:
        return (start * maps.START_SPREAD).astype(np.float32)

    def open_tsne(rows: np.ndarray, start: np.ndarray) -> np.ndarray:
        from openTSNE import TSNE as OpenTSNE

        options = {"initialization": small(start).astype(float), "negative_gradient_method": "fft", "random_state": 0}
        return np.asarray(OpenTSNE(wide(rows), **options).fit(rows))

    def umap(rows: np.ndarray, start: np.ndarray) -> np.ndarray:
        from umap import UMAP

        return UMAP(random_state=0, n_jobs=1).fit_transform(rows)

    def wide(rows: np.ndarray) -> float:
        return maps.perplexity(len(rows))

    found: dict[str, Method] = {
        OURS: maps.t_sne,
        DEFAULTS: lambda rows, start: TSNE(perplexity=wide(rows), init=small(start)).fit_transform(rows),
        RANDOM: lambda rows, start: TSNE(perplexity=wide(rows), init="random", random_state=0).fit_transform(rows),
    }
    return found | {name: made for name, made in zip(PEERS, (open_tsne, umap), strict=True) if name in peers}


def measure_maps(
    vectors: np.ndarray, labels: Sequence[str] | None, peers: Sequence[str] = ()
) -> Mapping[str, Mapping[str, Any]]:
    """Return figures of each method on vectors (N, d): CPU seconds of map and scores, and the scores.

    They are trustworthiness, continuity, the share of the ten nearest texts that are near on the map, and, with labels,
    of the five nearest points that have the point's label.
    """
    from threadpoolctl import threadpool_limits

    rows = maps.principal(maps.directions(vectors)).astype(np.float32)
    start = rows[:, :2] / rows[:, :2].std()
    near, found = nearest_others(vectors, maps.LOST_DEPTH), dict[str, dict[str, Any]]()
    with threadpool_limits(1):
        for name, method in methods(peers).items():
            begun = time.process_time()
            xy = method(rows, start)
            drawn = time.process_time()
            scores = faithfulness(vectors, near, xy, labels)
            spent = {"cpu_seconds": drawn - begun, "scoring_seconds": time.process_time() - drawn}
            found[name] = {**spent, **scores}
    return found


def faithfulness(
    vectors: np.ndarray, near: np.ndarray, xy: np.ndarray, labels: Sequence[str] | None
) -> dict[str, float]:
    """Return the scores of a map `xy` (N, 2); `near` (N, k) are the nearest vectors."""
    scores = {
        "trustworthiness": maps.trustworthiness(vectors, xy),
        "continuity": maps.continuity(vectors, xy),
        "neighbours_shown": float(1 - maps.lost(near, xy).mean()),
    }
    if labels is None:
        return scores
    shown = maps.nearest(xy, maps.NEIGHBOURS)
    known = np.array(labels)
    return {
        **scores,
        "same_label": float((known[shown] == known[:, None]).mean()),
        "same_label_of_vectors": same_label_neighbours(vectors, known),
    }
