"""A small clustered corpus with its vectors, and searches by brute force, for the tests of the index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from index import BuildSettings, VectorIndex
from index.manifest import DOCUMENTED_FACTORIES

N, D, POOL = 600, 32, 700
FACTORIES = [factory.replace("{n}", "8") for factory in DOCUMENTED_FACTORIES]
# lowest overlap with brute force at k = 10 on this corpus; SQfp16 keeps 11 bits, SQ8 8, PQ16 4 a dimension
FLOORS = {"Flat": 1.0, "SQfp16": 0.99, "SQ8": 0.95, "HNSW32,Flat": 0.99, "IVF8,PQ16": 0.6}


def sentences(count: int, start: int = 0) -> list[str]:
    return [f"sentence {number} é" for number in range(start, start + count)]


def vectors(count: int, seed: int = 0) -> np.ndarray:
    """(count, D): 20 loose clusters, rows of any length; a smaller count gives the first rows of a larger."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((20, D))
    points = centres[rng.integers(20, size=POOL)] + 0.5 * rng.standard_normal((POOL, D))
    return (points * rng.uniform(0.1, 9, (POOL, 1))).astype(np.float32)[:count]


def in_batches(size: int, count: int = N) -> Iterator[tuple[list[str], np.ndarray]]:
    texts, points = sentences(count), vectors(count)
    for start in range(0, count, size):
        yield texts[start : start + size], points[start : start + size]


def build(folder: Path, factory: str = "Flat", count: int = N, **settings: Any) -> VectorIndex:
    chosen = BuildSettings(factory=factory, model="promptbert", fingerprint="a1b2" * 16, corpus="demo", **settings)
    return VectorIndex.build(in_batches(97, count), folder, settings=chosen)


def brute_force(queries: np.ndarray, stored: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and rows in float64, from the definition."""
    scores = queries.astype(np.float64) @ stored.T.astype(np.float64)
    scores /= np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(stored, axis=1)[None]
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, rows, 1), rows


def overlap(found: np.ndarray, expected: np.ndarray) -> float:
    return float(
        np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), expected.tolist(), strict=True)])
    )
