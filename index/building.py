"""Streaming construction: vectors pass once, a bounded head is held back for training and for measuring recall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from index import engine
from index.folder import FAISS_FILE, TEXTS_FILE, file_records
from index.manifest import BuildSettings, Manifest, write_manifest
from index.states import States
from index.texts import TextWriter, checksum, open_texts, text_array, text_writer
from index.vectors import unit_rows

Batch = tuple[Sequence[str], np.ndarray]

BLOCK = 4096  # sentences encoded and stored at a time; fewer leave fewer of one length to share a pass
RECALL_AT, QUERIES, REFERENCE = 10, 200, 100  # reference: exact answers kept per query, so that ties are seen
TIE = 1e-6  # float32 sums of unit products differ by less


def write_index_folder(
    batches: Iterable[Batch],
    folder: Path,
    settings: BuildSettings,
    report: Callable[[int], None],
    state: Path | None = None,
) -> Manifest:
    """Write the files of a new index into the existing, empty `folder`, and return its manifest."""
    with text_writer(folder / TEXTS_FILE) as write:
        index, recall = fill(unit_blocks(batches, write, report), settings, States(state, settings))
    engine.write(index, folder / FAISS_FILE)
    nprobe, ef_search = engine.tune(index, settings.nprobe, settings.ef_search)
    manifest = Manifest(
        model=settings.model,
        pooling=settings.pooling,
        family=settings.family,
        fingerprint=settings.fingerprint,
        dimension=index.d,
        factory=settings.factory,
        nprobe=nprobe,
        ef_search=ef_search,
        seed=settings.seed,
        count=index.ntotal,
        rows=index.ntotal,
        corpora=[settings.corpus],
        corpus_sha256=checksum(open_texts(folder / TEXTS_FILE)),
        recall_at_10=recall,
        faiss=engine.VERSION,
        files=file_records(folder),
    )
    write_manifest(folder, manifest)
    return manifest


def encoded(texts: Iterable[str], encode: Callable[[list[str]], np.ndarray]) -> Iterator[tuple[list[str], np.ndarray]]:
    """`texts` in blocks with the vectors (n, d) that `encode` gives each; no block is read before it is asked for."""
    stream = iter(texts)
    while block := list(islice(stream, BLOCK)):
        yield block, encode(block)


def unit_blocks(batches: Iterable[Batch], write: TextWriter, report: Callable[[int], None]) -> Iterator[np.ndarray]:
    """Each batch's vectors as unit rows (n, d), its texts written on the way; `report` gets the rows so far."""
    rows, dimension = 0, None
    for texts, vectors in batches:
        block = unit_rows(vectors, dimension=dimension, first_row=rows)
        if len(texts) != len(block):
            raise ValueError(f"the batch from row {rows} on has {len(texts)} texts and {len(block)} vectors")
        write(text_array(texts))
        rows, dimension = rows + len(block), block.shape[1]
        report(rows)
        if len(block):
            yield block


def fill(blocks: Iterator[np.ndarray], settings: BuildSettings, states: States) -> tuple[Any, float | None]:
    """A FAISS index of all `blocks` (n, d) unit rows, and its recall@10, None where the type is exact.

    Where `states` has the index with the first of these blocks, they are only passed over. Raises ValueError where it
    has others.
    """
    first = next(blocks, None)
    if first is None:
        raise ValueError("there is no sentence to index; give a corpus with text in it")
    index = engine.create(first.shape[1], settings.factory, settings.seed)
    head, rest = take(chain([first], blocks), engine.head_rows(index))
    begun = states.latest()
    states.see(head)
    if begun is None:
        with states.working(index):
            engine.train(index, head, settings.factory)
    filling = Filling(
        index if begun is None else begun, None if engine.is_exact(index) else RecallProbe(head, settings.seed), states
    )
    filling.add(head)  # here, where the user can interrupt FAISS
    _add_behind(filling, chain(rest, blocks))
    return filling.finished(settings)


@dataclass
class Filling:
    """An index that takes its blocks in, and the probe that sees them; the first `rows` have passed."""

    index: Any
    probe: RecallProbe | None
    states: States
    rows: int = 0

    def add(self, block: np.ndarray) -> None:
        """Add the next unit rows (n, d), unless the index came with them."""
        if self.probe is not None:
            self.probe.see(block)
        if self.rows >= self.index.ntotal:
            with self.states.working(self.index):
                engine.add(self.index, block, self.rows)
        self.rows += len(block)

    def add_next(self, block: np.ndarray) -> None:
        """Add as `add` does what comes after the head, which the states saw before it trained the index."""
        self.states.see(block)
        self.add(block)

    def finished(self, settings: BuildSettings) -> tuple[Any, float | None]:
        """The index, tuned, with its recall. Raises ValueError where it came with other rows than have passed."""
        if self.index.ntotal != self.rows:
            raise ValueError(
                f"the unfinished build had {self.index.ntotal} rows, of which {self.rows} are left; give the corpus it "
                "was begun with, or drop it by `overwrite` without `resume`"
            )
        engine.tune(self.index, settings.nprobe, settings.ef_search)
        return self.index, None if self.probe is None else self.probe.recall(self.index)


def _add_behind(filling: Filling, blocks: Iterator[np.ndarray]) -> None:
    """Add `blocks` in order in a second thread, each while the next one is made, which is where a model encodes."""
    with ThreadPoolExecutor(1) as thread:
        added: list[Future[None]] = []
        for block in blocks:
            if added:
                added.pop().result()  # raises what went wrong there
            added.append(thread.submit(filling.add_next, block))
        if added:
            added.pop().result()


def take(blocks: Iterator[np.ndarray], count: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The first `count` rows, or all where there are fewer, and what is left of the last block drawn."""
    drawn: list[np.ndarray] = []
    while sum(map(len, drawn)) < count and (block := next(blocks, None)) is not None:
        drawn.append(block)
    rows = np.concatenate(drawn)
    return rows[:count], [rows[count:]] if len(rows) > count else []


class RecallProbe:
    """Measures recall@10 of an index: up to 200 of the first vectors are the queries, each finding itself.

    The exact answers are gathered while the vectors pass, so that none need be kept. Where several vectors tie for
    the tenth place, each of them counts as right.
    """

    def __init__(self, head: np.ndarray, seed: int) -> None:
        """`head` (n, d) unit rows to choose the queries from; they are still to be seen."""
        usable = np.flatnonzero(head.any(axis=1))  # everything ties for a zero vector
        chosen = np.random.default_rng(seed).choice(usable, min(QUERIES, len(usable)), replace=False)
        self.queries = head[np.sort(chosen)]  # (q, d)
        self._scores = np.empty((len(chosen), 0), dtype=np.float32)  # (q, <= REFERENCE), best first
        self._rows = np.empty((len(chosen), 0), dtype=np.int64)
        self._seen = 0

    def see(self, block: np.ndarray) -> None:
        """Take the next vectors (n, d) into the exact answers."""
        if not len(self.queries):
            return
        scores, positions = engine.nearest(self.queries, block, min(REFERENCE, len(block)))
        scores = np.concatenate([self._scores, scores], axis=1)
        rows = np.concatenate([self._rows, positions + self._seen], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :REFERENCE]
        self._scores, self._rows = np.take_along_axis(scores, best, 1), np.take_along_axis(rows, best, 1)
        self._seen += len(block)

    def recall(self, index: Any) -> float | None:
        """The share of exact answers that `index` finds; None where every vector is zero."""
        if not len(self.queries):
            return None
        k = min(RECALL_AT, self._seen)
        found = index.search(self.queries, k)[1]  # (q, k)
        right = self._scores >= self._scores[:, k - 1 : k] - TIE  # (q, <= REFERENCE)
        hits = [np.isin(row, exact[good]).sum() for row, exact, good in zip(found, self._rows, right, strict=True)]
        return float(np.mean(hits) / k)
