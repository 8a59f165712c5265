"""A searchable set of sentences: FAISS index, texts and manifest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cse.corpus.corpus import fields_of
from cse.errors import IndexFolderError
from cse.files.replace import read_settled
from index import faiss_engine
from index.base import Cells, Index, Rows, row_numbers, silent, spread
from index.building import Batches, write_index_folder
from index.folder import (
    FAISS_FILE,
    NUMBERS,
    TEXTS_FILE,
    checksum,
    conformed,
    file_records,
    gather,
    is_numbered,
    live_rows,
    numbered,
    open_rows,
    replacing,
    row_writer,
    user_columns,
    verify_files,
    without_rows,
)
from index.manifest import BuildSettings, Manifest, check_model, cure, read_manifest, write_manifest


class VectorIndex(Index):
    """Sentences and their unit vectors in a folder: a FAISS index, memory-mapped until it is edited, and its texts."""

    def __init__(self, index: Any, table: pa.Table, manifest: Manifest, *, device: str = "auto") -> None:
        """`table` has nulls for each removed row; `device` is "auto" (a GPU if it supports the type) or "cpu"."""
        if device not in ("auto", "cpu"):
            raise ValueError(f"device {device!r}: choose auto or cpu")
        texts = table.column(0)
        stored = (index.d, index.ntotal, len(texts), len(texts) - texts.null_count)
        if stored != (manifest.dimension, manifest.count, manifest.rows, manifest.count):
            raise ValueError(
                f"it holds {stored[1]} vectors of {stored[0]} dimensions and {stored[3]} texts in {stored[2]} rows, "
                f"not {manifest.count} of {manifest.dimension} in {manifest.rows}"
            )
        faiss_engine.tune(index, manifest.nprobe, manifest.ef_search)
        self.manifest = manifest
        self._index, self._table, self._texts, self._device = index, table, texts, device
        self._mapped = True
        self._clone: Any = None
        self._live = self._live_rows()

    @classmethod
    def build(
        cls,
        batches: Batches,
        output: Path,
        *,
        settings: BuildSettings,
        report: Callable[[int], None] = silent,
    ) -> VectorIndex:
        """Build the index of all `batches` of texts and vectors (n, d) float32 in the folder `output`, and load it.

        Memory holds the FAISS index, two batches (one is added while the next is drawn) and, for types that are not
        exact, a head of at least 65,536 vectors (`faiss_engine.head_rows`). `report` gets the number of rows after each
        batch. An index at `output` is replaced once everything is written; a failure leaves it unchanged. Raises
        ValueError for bad batches, settings or `output`.
        """
        output = Path(output)
        with replacing(output) as fresh:
            written = write_index_folder(batches, fresh, settings, report)

        def check(manifest: Manifest) -> None:
            if manifest != written:  # another process replaced it since
                verify_files(output, manifest)

        return read_settled(output, lambda: cls._read(output, check))

    @classmethod
    def load(
        cls,
        folder: Path,
        fingerprint: str | None = None,
        *,
        model: str | None = None,
        device: str = "auto",
        verify: bool = False,
    ) -> VectorIndex:
        """The index in `folder`, memory-mapped; with `fingerprint`, only if that model built it.

        `model` names the caller's model in the error. All files are checked against their checksums: large ones once,
        and again if they changed or with `verify` (`index.folder.verify_files`). The files are of one version even if
        the folder is being replaced. Raises IndexFolderError, with a remedy, for a folder that is missing, damaged, not
        an index, or of another model.
        """
        folder = Path(folder)

        def check(manifest: Manifest) -> None:
            check_model(folder, manifest, fingerprint, model)
            verify_files(folder, manifest, again=verify)

        return read_settled(folder, lambda: cls._read(folder, check, device))

    @classmethod
    def _read(cls, folder: Path, check: Callable[[Manifest], None], device: str = "auto") -> VectorIndex:
        """Open the index in a settled folder if its manifest passes the `check`, which raises IndexFolderError."""
        manifest = read_manifest(folder)
        try:
            check(manifest)
            stored, table = faiss_engine.read_mapped(folder / FAISS_FILE), open_rows(folder / TEXTS_FILE)
            return cls(stored, table, manifest, device=device)
        except IndexFolderError:
            raise
        except (ValueError, OSError) as error:
            raise IndexFolderError(f"{folder}: damaged index: {error}; {cure()}") from error

    def sample(self, most: int) -> np.ndarray:
        """The row numbers (n,) int64 of `most` sentences, evenly spread, or of all if there are fewer."""
        return spread(live_rows(self._texts), most)

    def save(self, folder: Path | str) -> None:
        """Write the index to `folder` atomically; an index there is replaced, anything else raises ValueError."""
        with replacing(Path(folder)) as fresh:
            with row_writer(fresh / TEXTS_FILE) as write:
                write(self._table)
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
        """The names of all columns, that of the texts first."""
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

    def _texts_of(self, rows: np.ndarray) -> list[str]:
        return gather(self._texts, rows)

    def _vectors_of(self, rows: np.ndarray) -> np.ndarray:
        return faiss_engine.reconstruct(self._index, self._labels(rows))

    def _expanded(self, queries: np.ndarray, count: int) -> np.ndarray:
        return faiss_engine.expanded(self._index, queries, count)

    def _nearest(self, queries: np.ndarray, k: int, chosen: Any, probe: int | None) -> tuple[np.ndarray, np.ndarray]:
        if k == 0 or not len(queries):
            return np.empty((len(queries), k), dtype=np.float32), np.empty((len(queries), k), dtype=np.int64)
        if chosen is None and probe is None:
            scores, labels = self._searcher(k).search(queries, k)
        else:
            among = None if chosen is None else self._labels(chosen)
            scores, labels = faiss_engine.search_with(self._index, queries, k, among, probe)
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

    def _delete(self, rows: np.ndarray) -> None:
        faiss_engine.remove(self._editable(), self._labels(rows), self.manifest.factory)
        self._replace_rows(without_rows(self._table, rows))

    def _replace_rows(self, table: pa.Table) -> None:
        """Replace the rows, and what depends on them and the index."""
        self._table, self._texts, self._clone = table, table.column(0), None
        self._live = self._live_rows()

    def _checked(self, rows: Rows) -> np.ndarray:
        numbers = row_numbers(rows, len(self._texts))
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

    def _searcher(self, k: int) -> Any:
        if self._device == "cpu" or k > faiss_engine.GPU_MAX_K:
            return self._index
        if self._clone is None:
            self._clone = faiss_engine.gpu_clone(self._index) or self._index
        return self._clone

    def _live_rows(self) -> np.ndarray | None:
        """The row number of each FAISS position, (n,) int64, or None if they are equal."""
        closed_up = self._texts.null_count and not faiss_engine.keeps_ids(self._index)
        return live_rows(self._texts) if closed_up else None
