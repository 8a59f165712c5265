"""Build an index from a stream of vectors: one pass, with a bounded head held back for training and recall queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from cse.corpus.corpus import Corpus, text_blocks
from cse.vectors import smoothed
from index import faiss_engine
from index.folder import (
    FAISS_FILE,
    TEXTS_FILE,
    RowWriter,
    Texts,
    checksum,
    file_records,
    open_rows,
    row_table,
    row_writer,
    unit_rows,
)
from index.manifest import BuildSettings, Manifest, write_manifest

Batches = Iterable[tuple[Texts, np.ndarray]]

BLOCK = 4096  # sentences encoded and stored at a time; smaller blocks batch fewer sentences of one length
RECALL_AT, RECALL_QUERIES, REFERENCE_ANSWERS = 10, 200, 100  # reference: exact answers kept per query, to detect ties
TIE_TOLERANCE = 1e-6  # float32 sums of unit products differ by less


def write_index_folder(
    batches: Batches, folder: Path, settings: BuildSettings, report: Callable[[int], None]
) -> Manifest:
    """Write the files of a new index into the existing, empty `folder`, and return its manifest."""
    with row_writer(folder / TEXTS_FILE) as write:
        blocks = unit_blocks(batches, write, report)
        index, recall = fill(smoothed_blocks(blocks, settings.smooth) if settings.smooth else blocks, settings)
    faiss_engine.expanded(index, np.zeros((1, index.d), np.float32), settings.smooth)  # raises if no search could
    faiss_engine.write(index, folder / FAISS_FILE)
    nprobe, ef_search = faiss_engine.tune(index, settings.nprobe, settings.ef_search)
    manifest = Manifest.of(
        settings, dimension=index.d, nprobe=nprobe, ef_search=ef_search, count=index.ntotal, rows=index.ntotal,
        corpus_sha256=checksum(open_rows(folder / TEXTS_FILE).column(0)), recall_at_10=recall,
        faiss=faiss_engine.VERSION, files=file_records(folder),
    )  # fmt: skip
    write_manifest(folder, manifest)
    return manifest


def encoded(
    texts: Iterable[str] | Corpus, encode: Callable[[list[str]], np.ndarray]
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield `texts` in blocks, of a `Corpus` with all columns, each with the vectors (n, d) of `encode`; lazily."""
    yield from ((block, encode(sentences)) for block, sentences in text_blocks(texts, BLOCK))


def unit_blocks(batches: Batches, write: RowWriter, report: Callable[[int], None]) -> Iterator[np.ndarray]:
    """Yield each batch's vectors as unit rows (n, d) and write its rows; `report` gets the number of rows so far."""
    rows, dimension = 0, None
    for texts, vectors in batches:
        block = unit_rows(vectors, dimension=dimension, first_row=rows)
        if len(texts) != len(block):
            raise ValueError(f"the batch from row {rows} on has {len(texts)} texts and {len(block)} vectors")
        if len(block):
            write(row_table(texts))
        rows, dimension = rows + len(block), block.shape[1]
        report(rows)
        if len(block):
            yield block


def smoothed_blocks(blocks: Iterator[np.ndarray], count: int) -> Iterator[np.ndarray]:
    """Yield all `blocks` (n, d) of unit rows as one, smoothed over `count` neighbours; memory holds all rows."""
    if (first := next(blocks, None)) is not None:
        yield smoothed(np.concatenate([first, *blocks]), count)


def fill(blocks: Iterator[np.ndarray], settings: BuildSettings) -> tuple[Any, float | None]:
    """Return a tuned FAISS index of all `blocks` (n, d) unit rows, and its recall@10, None if the type is exact."""
    first = next(blocks, None)
    if first is None:
        raise ValueError("there is no sentence to index; give a corpus with text in it")
    index = faiss_engine.create(first.shape[1], settings.factory, settings.seed)
    head, rest = take(chain([first], blocks), faiss_engine.head_rows(index))
    faiss_engine.train(index, head, settings.factory)
    filling = Filling(index, None if faiss_engine.is_exact(index) else RecallProbe(head, settings.seed))
    filling.add(head)  # in the main thread, where the user can interrupt FAISS
    _add_behind(filling, chain(rest, blocks))
    faiss_engine.tune(index, settings.nprobe, settings.ef_search)
    return index, None if filling.probe is None else filling.probe.recall(index)


@dataclass
class Filling:
    """An index under construction and its recall probe; the first `rows` rows have been added."""

    index: Any
    probe: RecallProbe | None
    rows: int = 0

    def add(self, block: np.ndarray) -> None:
        """Add the next unit rows (n, d)."""
        if self.probe is not None:
            self.probe.see(block)
        faiss_engine.add(self.index, block, self.rows)
        self.rows += len(block)


def _add_behind(filling: Filling, blocks: Iterator[np.ndarray]) -> None:
    """Add `blocks` in order in a second thread, so that a model can encode the next block at the same time."""
    with ThreadPoolExecutor(1) as thread:
        added: list[Future[None]] = []
        for block in blocks:
            if added:
                added.pop().result()  # raises the thread's error
            added.append(thread.submit(filling.add, block))
        if added:
            added.pop().result()


def take(blocks: Iterator[np.ndarray], count: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The first `count` rows, or all if there are fewer, and the rest of the last block drawn."""
    drawn: list[np.ndarray] = []
    while sum(map(len, drawn)) < count and (block := next(blocks, None)) is not None:
        drawn.append(block)
    rows = np.concatenate(drawn)
    return rows[:count], [rows[count:]] if len(rows) > count else []


class RecallProbe:
    """Recall@10 of an index for up to 200 queries drawn from the first vectors; each query's best answer is itself.

    The exact answers are updated block by block, so the vectors are not kept. Vectors tied for rank 10 all count as
    correct.
    """

    def __init__(self, head: np.ndarray, seed: int) -> None:
        """Choose the queries from the unit rows `head` (n, d), which must still be passed to `see`."""
        usable = np.flatnonzero(head.any(axis=1))  # a zero vector has the same score with every row
        chosen = np.random.default_rng(seed).choice(usable, min(RECALL_QUERIES, len(usable)), replace=False)
        self.queries = head[np.sort(chosen)]  # (q, d)
        self._scores = np.empty((len(chosen), 0), dtype=np.float32)  # (q, <= REFERENCE_ANSWERS), best first
        self._rows = np.empty((len(chosen), 0), dtype=np.int64)
        self._seen = 0

    def see(self, block: np.ndarray) -> None:
        """Update the exact answers with the next vectors (n, d)."""
        if not len(self.queries):
            return
        scores, positions = faiss_engine.nearest(self.queries, block, min(REFERENCE_ANSWERS, len(block)))
        scores = np.concatenate([self._scores, scores], axis=1)
        rows = np.concatenate([self._rows, positions + self._seen], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :REFERENCE_ANSWERS]
        self._scores, self._rows = np.take_along_axis(scores, best, 1), np.take_along_axis(rows, best, 1)
        self._seen += len(block)

    def recall(self, index: Any) -> float | None:
        """The share of the exact answers that `index` finds; None if every vector is zero."""
        if not len(self.queries):
            return None
        k = min(RECALL_AT, self._seen)
        answers = index.search(self.queries, k)[1]  # (q, k)
        right = self._scores >= self._scores[:, k - 1 : k] - TIE_TOLERANCE  # (q, <= REFERENCE_ANSWERS)
        hits = [np.isin(row, exact[good]).sum() for row, exact, good in zip(answers, self._rows, right, strict=True)]
        return float(np.mean(hits) / k)
