"""A model's map of texts: positions, nearest texts, and scores of how far the map shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from cse.analysis.maps import LOST_DEPTH, MIN_POINTS, NEIGHBOURS, continuity, lost, squared, trustworthiness, unshared
from cse.app.models.models import Failure, divided
from cse.app.state.groups import Groups
from cse.vectors import nearest_others


class ModelMap(NamedTuple):
    """A model's map of N points.

    `xy` (N, 2) in [0, 1], but centred in the cache; `near` (N, k) the points whose vectors are nearest, nearest first;
    `lost` (N,) the share of a point's neighbours that the map does not show; scores as in `cse.analysis.maps`,
    None if there is none; `groups` by the model's vectors.
    """

    xy: np.ndarray
    near: np.ndarray
    lost: np.ndarray
    trustworthiness: float | None = None
    continuity: float | None = None
    same_topic: float | None = None
    groups: Groups | None = None


def fitted(maps: Mapping[str, ModelMap]) -> dict[str, ModelMap | Failure]:
    """Return the maps scaled to the unit square with shared limits."""
    scaled = squared({name: drawn.xy for name, drawn in maps.items()})
    return {name: drawn._replace(xy=scaled[name]) for name, drawn in maps.items()}


def measure(vectors: np.ndarray, xy: np.ndarray, topics: Sequence[str] | None) -> ModelMap:
    """Return the map `xy` (N, 2) of `vectors` (N, d) with its neighbours, and scores if there are enough points."""
    count = len(vectors)
    near = nearest_others(np.asarray(vectors, np.float32), LOST_DEPTH)
    missed = lost(near[:, : (count - 1) // 2], xy).astype(np.float32)
    found = ModelMap(xy, near[:, :NEIGHBOURS].astype(np.uint16), missed)
    if count < MIN_POINTS:
        return found
    return found._replace(
        trustworthiness=trustworthiness(vectors, xy),
        continuity=continuity(vectors, xy),
        same_topic=None if topics is None else same_label(found.near, np.array(topics)),
    )


def same_label(near: np.ndarray, labels: np.ndarray) -> float | None:
    """Return the share in [0, 1] of the neighbours `near` (N, k) that have the label (N,) of their point.

    Points with the label "" do not count, nor do they as neighbours; None if no others are neighbours.
    """
    known = (labels != "")[:, None] & (labels[near] != "")
    return float((labels[near] == labels[:, None])[known].mean()) if known.any() else None


def disagreements(maps: Mapping[str, ModelMap | Failure]) -> dict[tuple[str, str], np.ndarray]:
    """Return, of each two models, the (N,) share of a point's five nearest texts that they do not share."""
    known, _ = divided(maps)
    return {(one, other): unshared(known[one].near, known[other].near) for one, other in combinations(known, 2)}
