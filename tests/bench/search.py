"""Searches to time against each other: FAISS alone, the same with the checks and row numbers, and with the texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from index import faiss_engine
from index.faiss_index import VectorIndex
from index.folder import FAISS_FILE, unit_rows
from index.manifest import BuildSettings

FAISS, SEARCH, HITS = "FAISS alone", "search", "hits with texts"
BATCH = 8_192
ROUNDING = 1e-5  # a query of unit length is brought to unit length again


def random_index(rows: int, dimension: int, factory: str, folder: Path, seed: int = 42) -> VectorIndex:
    """An index of so many random directions in `folder`, a text each: enough for speed, the worst case for recall."""
    generator = np.random.default_rng(seed)
    sizes = [min(BATCH, rows - start) for start in range(0, rows, BATCH)]
    batches = (([f"sentence {row}" for row in range(size)], directions(generator, size, dimension)) for size in sizes)
    VectorIndex.build(batches, folder, settings=BuildSettings(factory=factory, corpus="random", seed=seed))
    return VectorIndex.load(folder)


def directions(generator: np.random.Generator, rows: int, dimension: int) -> np.ndarray:
    """Random unit vectors (rows, dimension) float32."""
    return unit_rows(generator.standard_normal((rows, dimension), dtype=np.float32))


def searches(index: VectorIndex, folder: Path, queries: np.ndarray, k: int) -> dict[str, Callable[[], object]]:
    """Works that search the index in `folder` for the `k` nearest of each query (q, d), one query after another.

    All of them search the same mapped file on the CPU, `index` opened so. FAISS alone is given queries of unit length;
    the others bring each to it first, as they do for whoever asks. Raises ValueError where `search` finds other rows
    than FAISS alone.
    """
    plain = faiss_engine.read_mapped(folder / FAISS_FILE)
    faiss_engine.tune(plain, index.manifest.nprobe, index.manifest.ef_search)
    if not np.allclose(plain.search(queries, k)[0], index.search(queries, k)[0], atol=ROUNDING):
        raise ValueError(f"{folder}: FAISS alone finds other cosines, so it does other work")
    each = [query[None] for query in queries]
    return {
        FAISS: lambda: [plain.search(query, k) for query in each],
        SEARCH: lambda: [index.search(query, k) for query in each],
        HITS: lambda: [index.hits(query[0], k) for query in each],
    }
