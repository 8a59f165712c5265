"""How fast an index is built, opened and searched, a folder's and a server's side by side, and what it finds."""

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
from index.folder import unit_rows
from index.manifest import BuildSettings
from index.stores import Location, open_at

if TYPE_CHECKING:
    from index.stores import Index

QUERIES, K = 200, 10


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
