"""A searchable set of sentences: FAISS index, texts and manifest.

It is built from a stream of vectors in one pass, with a bounded head held back for training and recall queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from cse.corpus.corpus import Corpus, fields_of, text_blocks
from cse.errors import IndexFolderError
from cse.files.hub import data_folder
from cse.files.remote import is_remote, names_at
from cse.files.replace import read_settled
from cse.vectors import smoothed
from index import faiss_engine
from index.folder import (
    FAISS_FILE,
    FILES,
    INDEX,
    NUMBERS,
    TEXTS_FILE,
    checksum,
    conformed,
    file_records,
    gather,
    is_numbered,
    live_rows,
    local,
    numbered,
    open_rows,
    replacing,
    row_table,
    unit_rows,
    user_columns,
    verify_files,
    without_rows,
    write_rows,
)
from index.manifest import MANIFEST_FILE, BuildSettings, Manifest, check_model, cure, read_manifest, write_manifest
from index.stores import Batches, Cells, Index, Rows, silent, spread

BLOCK = 4096  # sentences encoded and stored at a time; smaller blocks batch fewer sentences of one length
RECALL_AT, RECALL_QUERIES, REFERENCE_ANSWERS = 10, 200, 100  # reference: exact answers kept per query, to detect ties
TIE_TOLERANCE = 1e-6  # float32 sums of unit products differ by less


class VectorIndex(Index):
    """Sentences and their unit vectors in a folder: a FAISS index, memory-mapped until it is edited, and its texts."""

    on_disk = True

    def __init__(self, index: Any, table: pa.Table, manifest: Manifest) -> None:
        """`table` has nulls for each removed row."""
        texts = table.column(0)
        stored = (index.d, index.ntotal, len(texts), len(texts) - texts.null_count)
        if stored != (manifest.dimension, manifest.count, manifest.rows, manifest.count):
            raise ValueError(
                f"it holds {stored[1]} vectors of {stored[0]} dimensions and {stored[3]} texts in {stored[2]} rows, "
                f"not {manifest.count} of {manifest.dimension} in {manifest.rows}"
            )
        faiss_engine.tune(index, manifest.nprobe, manifest.ef_search)
        self.manifest = manifest
        self._index, self._mapped = index, True
        self._clone: Any = None  # on a GPU, if there is one that supports the type
        self._live: np.ndarray | None = None  # the row number (n,) of each FAISS position; None if they are equal
        self._replace_rows(table)

    @classmethod
    def build(
        cls, batches: Batches, output: Path | str, *, settings: BuildSettings, report: Callable[[int], None] = silent
    ) -> VectorIndex:
        """Build the index of all `batches` of texts and vectors (n, d) float32 in the folder `output`, and load it.

        Memory holds the FAISS index, two batches (one is added while the next is drawn) and, for types that are not
        exact, a head of at least 65,536 vectors (`faiss_engine.head_rows`); all vectors if they are smoothed. `report`
        gets the number of rows after each batch. An index at `output` is replaced once everything is written; a failure
        leaves it unchanged. An `output` such as s3://bucket/index is written when all is built, its manifest last, so
        that one half written is refused. Raises ValueError for bad batches, settings or `output`.
        """
        with replacing(output) as fresh:
            index, probe = filled(write_rows(unit_blocks(batches, report), fresh / TEXTS_FILE), settings)
            nprobe, ef_search = faiss_engine.tune(index, settings.nprobe, settings.ef_search)
            # Raises if no search could expand its queries.
            faiss_engine.expanded(index, np.zeros((1, index.d), np.float32), settings.smooth)
            faiss_engine.write(index, fresh / FAISS_FILE)
            manifest = Manifest.of(
                settings, dimension=index.d, nprobe=nprobe, ef_search=ef_search, count=index.ntotal, rows=index.ntotal,
                recall_at_10=probe and probe.recall(index), faiss=faiss_engine.VERSION, files=file_records(fresh),
                corpus_sha256=checksum(open_rows(fresh / TEXTS_FILE).column(0)),
            )  # fmt: skip
            write_manifest(fresh, manifest)
        return cls.load(output)

    @classmethod
    def load(
        cls,
        folder: Path | str,
        fingerprint: str | None = None,
        *,
        model: str | None = None,
        verify: bool = False,
    ) -> VectorIndex:
        """The index in `folder`, memory-mapped; with `fingerprint`, only if that model built it.

        That at an address such as s3://bucket/index is copied once to the cache.
        `model` names the caller's model in the error. All files are checked against their checksums: large ones once,
        and again if they changed or with `verify` (`index.folder.verify_files`). The files are of one version even if
        the folder is being replaced. Raises IndexFolderError, with a remedy, for a folder that is missing, damaged, not
        an index, or of another model.
        """
        folder = local(folder)

        def read() -> VectorIndex:
            manifest = read_manifest(folder)
            check_model(folder, manifest, fingerprint, model)
            try:
                verify_files(folder, manifest, again=verify)
                return cls(faiss_engine.read_mapped(folder / FAISS_FILE), open_rows(folder / TEXTS_FILE), manifest)
            except IndexFolderError:
                raise
            except (ValueError, OSError) as error:
                raise IndexFolderError(f"{folder}: damaged index: {error}; {cure()}") from error

        return read_settled(folder, read)

    @classmethod
    @contextmanager
    def temporary(cls, batches: Batches, location: Path | None, *, settings: BuildSettings) -> Iterator[VectorIndex]:
        """Build an index in a temporary folder, whatever the `location`, that is deleted when the block ends."""
        with TemporaryDirectory() as folder:
            yield cls.build(batches, Path(folder) / "index", settings=settings)

    @classmethod
    def manifest_at(cls, location: Path | str) -> Manifest:
        return read_manifest(local(location))

    @classmethod
    def holds_index(cls, location: Path | str) -> bool:
        if is_remote(location):
            names = names_at(str(location))
            if MANIFEST_FILE not in names and set(names) - set(FILES):  # an upload that was killed has files of FILES
                raise ValueError(f"{location}: holds something else; give an index another address")
            return MANIFEST_FILE in names
        location = Path(location)
        INDEX.check_replaceable(location)
        return location.exists() and any(location.iterdir())

    @classmethod
    def downloaded(cls, location: Any) -> Any:
        """The folder, downloaded if it is the name of a dataset on the hub; the address of another store unchanged."""
        return data_folder(location, FILES) if isinstance(location, Path) else location

    @classmethod
    def check_factory(cls, factory: str, dimension: int) -> None:
        faiss_engine.create(dimension, factory, seed=0)

    def sample(self, most: int) -> np.ndarray:
        return spread(live_rows(self._texts), most)

    def remove(self, rows: Rows) -> int:
        """Remove the sentences of `rows` (n,) and return their number; the others keep their row numbers.

        `save` removes them from the stored index. Raises ValueError, changing nothing, for unknown rows and for types
        that cannot remove (HNSW).
        """
        doomed = np.unique(self._checked(rows))
        faiss_engine.remove(self._editable(), self._labels(doomed), self.manifest.factory)
        self._replace_rows(without_rows(self._table, doomed))
        self.manifest = replace(self.manifest, count=len(self) - len(doomed), recall_at_10=None)
        return len(doomed)

    def save(self, folder: Path | str) -> None:
        """Write the index to `folder` atomically; an index there is replaced, anything else raises ValueError."""
        with replacing(folder) as fresh:
            with pa.OSFile(str(fresh / TEXTS_FILE), "wb") as sink, pa.ipc.new_file(sink, self._table.schema) as writer:
                writer.write_table(self._table)
            faiss_engine.write(self._index, fresh / FAISS_FILE)
            manifest = replace(self.manifest, corpus_sha256=checksum(self._texts), files=file_records(fresh))
            write_manifest(fresh, manifest)
        self.manifest = manifest

    @property
    def table(self) -> pa.Table:
        """The rows of the index by position: the texts and the other columns; removed rows hold nulls."""
        return user_columns(self._table)

    @property
    def columns(self) -> list[str]:
        return list(self.table.schema.names)

    def where(self, condition: str) -> np.ndarray:
        """The rows (n,) int64 for which an SQL condition (`cse.corpus.where`) is true; errors as `Index.where`."""
        from cse.corpus.where import rows_where

        rows = rows_where(self.table, condition)
        return rows[np.isin(rows, live_rows(self._texts), assume_unique=True)] if self._texts.null_count else rows

    def numbers(self, rows: np.ndarray) -> tuple[list[int], list[str | None]]:
        """The row numbers of the positions `rows` (n,) in their corpora, and these if there are several and known."""
        if not is_numbered(self._table):
            return (rows + 1).tolist(), [None] * len(rows)
        counted, sources = (gather(column, rows) for column in self._table.columns[-len(NUMBERS) :])
        names = self.manifest.corpora
        several = len(names) > 1
        return counted, [names[source] if several and source is not None else None for source in sources]

    def contents(self) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers (n,) int64 of all sentences, ascending, and their vectors (n, d) float32 as stored.

        Raises ValueError for a type that cannot reconstruct vectors.
        """
        rows = live_rows(self._texts)
        labels = rows if faiss_engine.keeps_ids(self._index) else np.arange(len(rows))
        return rows, faiss_engine.reconstruct(self._index, labels)

    def write_faiss(self, path: Path) -> None:
        """Write a FAISS file in which a sentence's number is its position in `contents`.

        Raises ValueError if rows were removed from a type that stores row numbers.
        """
        if faiss_engine.keeps_ids(self._index) and len(self) != len(self._texts):
            raise ValueError(
                f"rows were removed from this {self.manifest.factory} index, which keeps the numbers of the others; "
                "build it again from the sentences that are left"
            )
        faiss_engine.write(self._index, path)

    def _is_exact(self) -> bool:
        return faiss_engine.is_exact(self._index)

    def _cells_of(self, rows: np.ndarray) -> list[Cells]:
        fields = self.table.remove_column(0)
        return [
            (row, text, fields_of(fields, position), corpus)
            for position, text, row, corpus in zip(
                rows.tolist(), gather(self._texts, rows), *self.numbers(rows), strict=True
            )
        ]

    def texts(self, rows: Rows) -> list[str]:
        return gather(self._texts, self._checked(rows))

    def vectors(self, rows: Rows) -> np.ndarray:
        return faiss_engine.reconstruct(self._index, self._labels(self._checked(rows)))

    def _expanded(self, queries: np.ndarray, count: int) -> np.ndarray:
        return faiss_engine.expanded(self._index, queries, count)

    def _nearest(self, queries: np.ndarray, k: int, chosen: Any, probe: int | None) -> tuple[np.ndarray, np.ndarray]:
        if k == 0 or not len(queries):
            return np.empty((len(queries), k), dtype=np.float32), np.empty((len(queries), k), dtype=np.int64)
        if chosen is not None or probe is not None:
            among = None if chosen is None else self._labels(chosen)
            scores, labels = faiss_engine.search_with(self._index, queries, k, among, probe)
        elif k > faiss_engine.GPU_MAX_K:
            scores, labels = self._index.search(queries, k)
        else:
            self._clone = self._clone or faiss_engine.gpu_clone(self._index) or self._index
            scores, labels = self._clone.search(queries, k)
        if labels.min() < 0:
            scores[labels < 0] = -np.inf
        rows = labels if self._live is None else np.where(labels < 0, labels, self._live[labels])
        return scores, rows

    def _insert(self, table: pa.Table, vectors: np.ndarray) -> None:
        rows, count, corpora = self._table, len(self._texts), self.manifest.corpora
        if is_numbered(table) and not is_numbered(rows):
            rows = numbered(rows, np.arange(1, count + 1), 0 if len(corpora) == 1 else None)
        elif is_numbered(rows) and not is_numbered(table):
            table = numbered(table, np.arange(count + 1, count + len(table) + 1), None)
        table = conformed(table, rows.schema)
        faiss_engine.add(self._editable(), vectors, count)
        self._replace_rows(pa.concat_tables([rows, table]))

    def _replace_rows(self, table: pa.Table) -> None:
        """Replace the rows, and what depends on them and the index."""
        self._table, self._texts, self._clone = table, table.column(0), None
        closed_up = self._texts.null_count and not faiss_engine.keeps_ids(self._index)
        self._live = live_rows(self._texts) if closed_up else None

    def _checked(self, rows: Rows) -> np.ndarray:
        numbers = super()._checked(rows)
        for row in numbers.tolist() if self._texts.null_count else ():
            if not self._texts[row].is_valid:
                raise ValueError(f"row {row} was removed")
        return numbers

    def _labels(self, rows: np.ndarray) -> np.ndarray:
        """FAISS's labels of `rows` (n,): positions if the type renumbers after removals, otherwise row numbers."""
        return rows if self._live is None else np.searchsorted(self._live, rows)

    def _editable(self) -> Any:
        if self._mapped:
            self._index, self._mapped = faiss_engine.in_memory(self._index), False
        return self._index


def encoded(
    texts: Iterable[str] | Corpus, encode: Callable[[list[str]], np.ndarray]
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield `texts` in blocks, of a `Corpus` with all columns, each with the vectors (n, d) of `encode`; lazily."""
    yield from ((block, encode(sentences)) for block, sentences in text_blocks(texts, BLOCK))


def unit_blocks(batches: Batches, report: Callable[[int], None]) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Yield each batch's rows and its vectors as unit rows (n, d); `report` gets the number of rows so far.

    Raises ValueError for texts and vectors of different number, and if there is no row at all.
    """
    rows, dimension = 0, None
    for texts, vectors in batches:
        block = unit_rows(vectors, dimension=dimension, first_row=rows)
        if len(texts) != len(block):
            raise ValueError(f"the batch from row {rows} on has {len(texts)} texts and {len(block)} vectors")
        rows, dimension = rows + len(block), block.shape[1]
        report(rows)
        if len(block):
            yield row_table(texts), block
    if not rows:
        raise ValueError("there is no sentence to index; give a corpus with text in it")


def filled(blocks: Iterator[np.ndarray], settings: BuildSettings) -> tuple[Any, RecallProbe | None]:
    """Return a FAISS index of all `blocks` (n, d) unit rows, and what measures its recall, None if it is exact."""
    first = next(blocks)
    if settings.smooth:
        first, blocks = smoothed(np.concatenate([first, *blocks]), settings.smooth), iter(())
    index = faiss_engine.create(first.shape[1], settings.factory, settings.seed)
    head, rest = take(chain([first], blocks), faiss_engine.head_rows(index))
    faiss_engine.train(index, head, settings.factory)
    probe = None if faiss_engine.is_exact(index) else RecallProbe(head, settings.seed)

    def add(block: np.ndarray) -> None:
        if probe is not None:
            probe.see(block)
        faiss_engine.add(index, block, index.ntotal)

    add(head)  # in the main thread, where the user can interrupt FAISS
    with ThreadPoolExecutor(1) as thread:  # a model can encode the next block while this one is added
        added: list[Future[None]] = []
        for block in chain(rest, blocks):
            if added:
                added.pop().result()  # raises the thread's error
            added.append(thread.submit(add, block))
        if added:
            added.pop().result()
    return index, probe


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
