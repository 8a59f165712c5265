"""How fast an index is built, opened and searched, in a folder and on a server, beside FAISS alone."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from index import faiss_engine
from index.faiss_index import BLOCK, VectorIndex, encoded
from index.folder import FAISS_FILE, unit_rows
from index.manifest import BuildSettings
from index.stores import Location, open_at

FAISS, SEARCH, HITS = "FAISS alone", "search", "hits with texts"
DIMENSION, QUERIES, K = 384, 200, 10
BATCH = 8_192
ROUNDING = 1e-5  # a query of unit length is brought to unit length again


def random_index(rows: int, factory: str, folder: Path, seed: int = 42) -> VectorIndex:
    """An index of so many random directions in `folder`, a text each: enough for speed, the worst case for recall."""
    generator = np.random.default_rng(seed)
    sizes = [min(BATCH, rows - start) for start in range(0, rows, BATCH)]
    batches = (([f"sentence {row}" for row in range(size)], directions(generator, size, DIMENSION)) for size in sizes)
    VectorIndex.build(batches, folder, settings=BuildSettings(factory=factory, corpus="random", seed=seed))
    return VectorIndex.load(folder)


def directions(generator: np.random.Generator, rows: int, dimension: int) -> np.ndarray:
    """Random unit vectors (rows, dimension) float32."""
    return unit_rows(generator.standard_normal((rows, dimension), dtype=np.float32))


def searches(index: VectorIndex, folder: Path, queries: np.ndarray) -> dict[str, Callable[[], object]]:
    """Works that search the index in `folder` for the ten nearest of each query (q, d), one query after another.

    All of them search the same mapped file on the CPU, `index` opened so. FAISS alone is given queries of unit length;
    the others bring each to it first, as they do for whoever asks. Raises ValueError where `search` finds other rows
    than FAISS alone.
    """
    plain = faiss_engine.read_mapped(folder / FAISS_FILE)
    faiss_engine.tune(plain, index.manifest.nprobe, index.manifest.ef_search)
    if not np.allclose(plain.search(queries, K)[0], index.search(queries, K)[0], atol=ROUNDING):
        raise ValueError(f"{folder}: FAISS alone finds other cosines, so it does other work")
    each = [query[None] for query in queries]
    return {
        FAISS: lambda: [plain.search(query, K) for query in each],
        SEARCH: lambda: [index.search(query, K) for query in each],
        HITS: lambda: [index.hits(query[0], K) for query in each],
    }


if TYPE_CHECKING:
    from index.stores import Index


@dataclass(frozen=True)
class Speed:
    """One index: seconds to build and open it, milliseconds of a search for 10 answers, and what it finds.

    `one` and `one_p95` are the median and the 95th percentile of single searches, `together` the share of one in a
    search for 200 queries, `recall` of the exact ten nearest. `bytes` are those of a folder's files.
    """

    where: str
    factory: str
    rows: int
    dimension: int
    build: float
    open: float
    one: float
    one_p95: float
    together: float
    recall: float
    bytes: int | None


def measure(vectors: np.ndarray, factory: str, store: str | None, rounds: int) -> list[Speed]:
    """The speed of an index of all `vectors` (n, d) but the last 200, which are the queries.

    It is measured of a folder and, where given, of the collection `store`, which is then deleted; searches take turns.
    Raises ValueError for too few vectors, and where `store` exists.
    """
    if len(vectors) < QUERIES + K:
        raise ValueError(f"{len(vectors)} vectors are too few to measure; give {QUERIES + K} or more")
    rows = unit_rows(vectors)
    stored, queries = rows[:-QUERIES], rows[-QUERIES:]
    exact = faiss_engine.nearest(queries, stored, K)[1]
    with ExitStack() as kept:
        folder = Path(kept.enter_context(tempfile.TemporaryDirectory())) / "index"
        places: dict[str, Location] = {"folder": folder}
        settings = BuildSettings(factory=factory)
        building = {"folder": _seconds(lambda: VectorIndex.build(_batches(stored), folder, settings=settings))}
        if store is not None:
            from index.milvus import MilvusIndex

            places["store"] = store
            temporary = MilvusIndex.temporary(_batches(stored), store, settings=settings)
            building["store"] = _seconds(lambda: kept.enter_context(temporary))
        opening = {where: _seconds(partial(open_at, place)) for where, place in places.items()}
        indexes = {where: open_at(place) for where, place in places.items()}
        times = _search_in_turn(indexes, queries, rounds)
        found = {where: index.search(queries, K)[1] for where, index in indexes.items()}
        size = sum(path.stat().st_size for path in folder.iterdir())
        return [
            Speed(
                where, factory, len(stored), stored.shape[1], building[where], opening[where], *times[where],
                recall=float(np.mean([np.isin(row, right).mean() for row, right in zip(rows, exact, strict=True)])),
                bytes=size if where == "folder" else None,
            )
            for where, rows in found.items()
        ]  # fmt: skip


def encoding_works(
    texts: Sequence[str], encode: Callable[[list[str]], np.ndarray], factories: Sequence[str]
) -> dict[str, Callable[[], object]]:
    """Works to time against each other: `encode` of all `texts` in one call, and them encoded and indexed as each type.

    The latter is all that a build does, from sorting a block by length to the checksums of the files.
    """

    def build(factory: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            VectorIndex.build(encoded(texts, encode), Path(folder) / "index", settings=BuildSettings(factory=factory))

    builds = {f"encoding and {factory}": partial(build, factory) for factory in factories}
    return {"encoding alone": lambda: encode(list(texts)), **builds}


def _batches(rows: np.ndarray) -> Iterator[tuple[list[str], np.ndarray]]:
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        yield [f"a sentence of the length that sentences of news have: {start + at}" for at in range(len(block))], block


def _search_in_turn(
    indexes: dict[str, Index], queries: np.ndarray, rounds: int
) -> dict[str, tuple[float, float, float]]:
    """Milliseconds of each index: the median and the 95th percentile of one search, and a query's of all at once."""
    single: dict[str, list[float]] = {where: [] for where in indexes}
    together: dict[str, list[float]] = {where: [] for where in indexes}
    for at in range(rounds):
        for where, index in indexes.items():
            single[where] += [_seconds(partial(index.search, query[None], K)) for query in queries[at::rounds]]
            together[where].append(_seconds(partial(index.search, queries, K)))
    return {
        where: (
            1000 * float(np.median(single[where])),
            1000 * float(np.percentile(single[where], 95)),
            1000 * float(np.median(together[where])) / len(queries),
        )
        for where in indexes
    }


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
