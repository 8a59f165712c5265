"""Indexes and where they are stored: folders, or the addresses of a server such as Milvus, with one interface for all.

A store is a class of index; `STORES` lists those that addresses name.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa

from cse.corpus.corpus import Corpus, free_name
from cse.errors import command_line
from cse.files.remote import is_remote, is_scheme
from index.folder import Texts, check_columns, local, row_table, unit_rows
from index.manifest import BuildSettings, Manifest, check_not_smoothed

FOLDERS = ("index.faiss_index", "VectorIndex")  # module and class of the indexes in folders
STORES = {"milvus": ("index.milvus", "MilvusIndex")}  # of those at addresses, by scheme
Batches = Iterable[tuple[Texts, np.ndarray]]
Location = Path | str  # of an index: a folder, or the address of a store
Rows = Sequence[int] | np.ndarray
Cells = tuple[int, str, dict[str, Any], str | None]  # of a hit: its row, text, fields and corpus


@dataclass(frozen=True)
class Hit:
    """A row of an answer: `rank` from 1 for the best, `score` the cosine of its text with the query.

    `row` is its number in its corpus as a user counts, from 1; `fields` are its other columns. `position` is its number
    in the index, from 0, which the methods of the index take. `corpus` is named if the index has several.
    """

    rank: int
    score: float
    row: int
    text: str
    fields: dict[str, Any] = field(default_factory=dict, hash=False)
    position: int = -1
    corpus: str | None = None


class Hits(list[Hit]):
    """The hits of a query, best first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        import pandas as pd

        rows = [{"rank": hit.rank, "score": f"{hit.score:.4f}", "row": hit.row, "text": hit.text} for hit in self]
        for hit, row in zip(self, rows, strict=True):
            row |= {free_name(name, row): value for name, value in hit.fields.items()}
        with pd.option_context("display.max_colwidth", 300):
            return str(pd.DataFrame(rows).to_html(index=False))


class FewHitsWarning(UserWarning):
    """An approximate index found fewer hits than were asked for."""


def spread(rows: np.ndarray, most: int) -> np.ndarray:
    """`most` of the `rows` (n,), evenly spread, or all of them if there are fewer."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def silent(rows: int) -> None:
    """Report nothing."""


class Index(ABC):
    """Rows of texts and their unit vectors under stable positions, counted from 0 and never reused.

    `rows` of an argument or a result are such positions; a `Hit` also has the row's number in its corpus.
    """

    on_disk: bool = False  # in files: vectors can be smoothed, files verified, and a killed build resumes
    manifest: Manifest

    @classmethod
    @abstractmethod
    def build(
        cls, batches: Batches, location: Any, *, settings: BuildSettings, report: Callable[[int], None] = silent
    ) -> Index:
        """Build the index of all `batches` of texts and vectors (n, d) at `location`."""

    @classmethod
    @abstractmethod
    def load(
        cls, location: Any, fingerprint: str | None = None, *, model: str | None = None, verify: bool = False
    ) -> Index:
        """The index at `location`; with `fingerprint`, only if that model built it. `verify` reads its files again."""

    @classmethod
    @abstractmethod
    def temporary(cls, batches: Batches, location: Any, *, settings: BuildSettings) -> AbstractContextManager[Index]:
        """Build an index that is deleted when the block ends."""

    @classmethod
    @abstractmethod
    def manifest_at(cls, location: Any) -> Manifest:
        """The manifest of an index. Raises IndexFolderError if there is none, ValueError for a bad address."""

    @classmethod
    @abstractmethod
    def holds_index(cls, location: Any) -> bool:
        """True if an index is at `location`, which a new one would replace. Raises ValueError if something else is."""

    @classmethod
    def downloaded(cls, location: Any) -> Any:
        """The location of the index on this machine, if `location` is one on the hub."""
        return location

    @classmethod
    @abstractmethod
    def check_factory(cls, factory: str, dimension: int) -> None:
        """Raise ValueError if no index of this type can be built of such vectors; called before texts are encoded."""

    @classmethod
    def check_free(cls, location: Any) -> None:
        """Raise ValueError if something is at `location`, or it is a bad address."""
        if cls.holds_index(location):
            raise ValueError(f"{location}: holds an index already; give a new name, which will be deleted again")

    def __repr__(self) -> str:
        """Return the number of rows, the type and the model."""
        kept = self.manifest
        return f"{type(self).__name__}({len(self):,} rows, {kept.factory}, {PurePath(kept.model).name})"

    def __len__(self) -> int:
        """The number of sentences that were not removed."""
        return self.manifest.count

    @property
    def recall_at_10(self) -> float | None:
        """The share of the exact ten nearest that a search finds: 1 for exact types, otherwise measured by the build.

        None if unknown: after additions and removals, and if every vector is zero.
        """
        return 1.0 if self._is_exact() else self.manifest.recall_at_10

    def search(
        self, vectors: np.ndarray, k: int, *, among: Any = None, expand: int | None = None, probe: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cosines (q, k) float32, best first, and row numbers (q, k) int64 for queries (q, d) of any length.

        With `among`, only these rows are searched, or what `where` returned. k is cut to the number of sentences, or of
        these rows. If an approximate type finds fewer, the remaining rows are -1, their scores -inf, and there is a
        FewHitsWarning. `probe` is the number of cells that an IVF type searches, or of candidates that an HNSW type
        keeps, by default the manifest's; more find more and take longer. Each query is first mixed with its `expand`
        nearest sentences (`faiss_engine.expanded`), by default with as many as the vectors were smoothed over. On a
        server k is at most 16,384, there is no `expand`, and its errors are raised as IndexFolderError.
        """
        scores, rows = self._search(vectors, k, among, expand, probe)
        if note := self.shortfall(int((rows >= 0).sum()), rows.size, probe):
            warnings.warn(note, FewHitsWarning, stacklevel=2)
        return scores, rows

    def hits(
        self,
        vector: np.ndarray,
        k: int,
        *,
        among: Any = None,
        expand: int | None = None,
        probe: int | None = None,
        quiet: bool = False,
    ) -> Hits:
        """The `k` sentences nearest to a query (d,) of any length, best first, or fewer if the index finds fewer.

        There is a FewHitsWarning then, unless `quiet`. `search` has the other arguments.
        """
        scores, rows = (answer[0] for answer in self._search(np.asarray(vector)[None], k, among, expand, probe))
        hit = rows >= 0
        cells = zip(scores[hit].tolist(), rows[hit].tolist(), self._cells_of(rows[hit]), strict=True)
        hits = Hits(
            Hit(rank, score, row, text, fields, position, corpus)
            for rank, (score, position, (row, text, fields, corpus)) in enumerate(cells, start=1)
        )
        if not quiet and (note := self.shortfall(len(hits), len(rows), probe)):
            warnings.warn(note, FewHitsWarning, stacklevel=2)
        return hits

    def shortfall(self, hits: int, asked: int, probe: int | None = None) -> str:
        """The warning that a search of depth `probe` found too few hits, with the cure; empty if it found enough."""
        depth = probe or self.manifest.nprobe or self.manifest.ef_search
        if hits >= asked or not depth:
            return ""
        searched = (
            f"searched {depth:,} of its cells" if self.manifest.nprobe else f"kept a list of {depth:,} candidates"
        )
        why = f"found {hits:,} of {asked:,} hits, since this {self.manifest.factory} index {searched}"
        return f"{why}; a larger `probe`, such as {4 * depth}, finds more"

    def _search(
        self, vectors: np.ndarray, k: int, among: Any, expand: int | None, probe: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        if probe is not None and probe < 1:
            raise ValueError(f"`probe` is {probe}; give 1 or more")
        if probe is not None and not (self.manifest.nprobe or self.manifest.ef_search):
            raise ValueError(f"`probe` is for IVF and HNSW indexes, and this is {self.manifest.factory}; leave it out")
        queries = unit_rows(vectors, dimension=self.manifest.dimension)
        queries = self._expanded(queries, self.manifest.smooth if expand is None else expand)
        chosen = None if among is None else self._distinct(among)
        if k < 1:
            raise ValueError(f"k is {k}; give at least 1")
        return self._nearest(queries, min(k, len(self) if chosen is None else len(chosen)), chosen, probe)

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of all columns, that of the texts first."""

    def check_columns(self, corpus: Corpus) -> None:
        """Raise ValueError, which names the difference, unless a corpus has the columns of this index."""
        check_columns([name for name in corpus.columns if name != corpus.text], self.columns[1:])

    @abstractmethod
    def where(self, condition: str) -> Any:
        """The rows that meet a condition on the columns, as `among` takes them; `len` is their number.

        Raises ValueError, naming the columns, for a condition that is not understood.
        """

    @abstractmethod
    def texts(self, rows: Rows) -> list[str]:
        """The sentences of `rows` (n,). Raises ValueError for a row that does not exist or was removed."""

    @abstractmethod
    def vectors(self, rows: Rows) -> np.ndarray:
        """The vectors (n, d) float32 of `rows` (n,) as stored.

        Raises ValueError as `texts`, and for a type that cannot reconstruct vectors.
        """

    @abstractmethod
    def sample(self, most: int) -> np.ndarray:
        """The row numbers (n,) int64 of `most` sentences, evenly spread, or of all if there are fewer."""

    def add(self, texts: Texts, vectors: np.ndarray, *, corpus: str | None = None) -> np.ndarray:
        """Add `texts`, which may be a `Corpus`, and `vectors` (n, d); return their row numbers (n,) int64.

        `corpus` is added to the manifest's corpora. `save` makes the rows part of the stored index. Raises ValueError
        for a smoothed index, and for rows with other columns.
        """
        kept = self.manifest
        check_not_smoothed("the index", kept)
        block = unit_rows(vectors, dimension=kept.dimension, first_row=kept.rows)
        corpora = kept.corpora if corpus is None or corpus in kept.corpora else [*kept.corpora, corpus]
        table = row_table(texts, None if corpus is None else corpora.index(corpus))
        if len(table) != len(block):
            raise ValueError(f"{len(table)} texts and {len(block)} vectors")
        self._insert(table, block)
        rows, count = kept.rows + len(block), kept.count + len(block)
        self.manifest = replace(self.manifest, rows=rows, count=count, corpora=corpora, recall_at_10=None)
        return np.arange(kept.rows, rows, dtype=np.int64)

    @abstractmethod
    def save(self, location: Path | str) -> None:
        """Make edits permanent."""

    @abstractmethod
    def _is_exact(self) -> bool:
        """True if a search finds the exact nearest."""

    def _checked(self, rows: Rows) -> np.ndarray:
        """`rows` (n,) as int64. Raises ValueError for anything but one list of rows that exist."""
        numbers = np.asarray(rows)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise ValueError(f"rows are {numbers.dtype} of shape {numbers.shape}, not one list of row numbers")
        outside = (numbers < 0) | (numbers >= self.manifest.rows)
        if outside.any():
            raise ValueError(f"row {numbers[outside][0]} does not exist; rows go from 0 to {self.manifest.rows - 1}")
        return numbers.astype(np.int64)

    def _distinct(self, among: Any) -> Any:
        """The rows that `among` names, checked, ascending and each once."""
        return np.unique(self._checked(among))

    @abstractmethod
    def _cells_of(self, rows: np.ndarray) -> list[Cells]:
        """What a hit shows of checked `rows` (n,)."""

    @abstractmethod
    def _expanded(self, queries: np.ndarray, count: int) -> np.ndarray:
        """Unit `queries` (q, d), each mixed with its `count` nearest sentences."""

    @abstractmethod
    def _nearest(self, queries: np.ndarray, k: int, chosen: Any, probe: int | None) -> tuple[np.ndarray, np.ndarray]:
        """As `search`, of unit `queries` (q, d), among what `_distinct` returned, or all."""

    @abstractmethod
    def _insert(self, table: pa.Table, vectors: np.ndarray) -> None:
        """Append the rows of `index.folder.row_table` and unit `vectors` (n, d)."""


def location_of(text: str) -> Location:
    """The location that a user's `text` names: an address unchanged, a folder as a path."""
    return text if is_remote(text) else Path(text)


def folder_of(text: str) -> Path:
    """The folder of an index that a user's `text` names, copied here if it is on the hub or at an address of fsspec.

    Raises ValueError for the address of a store, whose sentences are on a server.
    """
    location = location_of(text)
    store = store_of(location)
    if not store.on_disk:
        raise ValueError(
            f"{text}: is on a server, and this takes a folder; {command_line('build_index')} --output FOLDER makes one"
        )
    return local(store.downloaded(location))


def store_of(location: Location) -> type[Index]:
    """The store that `location` is in: that of its scheme, or else a folder, here or at an address of fsspec.

    Raises ValueError for an address of an unknown scheme.
    """
    scheme = str(location).partition("://")[0] if is_remote(location) else ""
    if scheme and scheme not in STORES and not is_scheme(scheme):
        known = " or ".join(f"{scheme}://" for scheme in STORES)
        raise ValueError(f"{location!r} is not the address of a store, which begins with {known}, s3:// or the like")
    module, name = STORES.get(scheme, FOLDERS)
    return getattr(import_module(module), name)


def manifest_at(location: Location) -> Manifest:
    """As `Index.manifest_at` of the store of `location`."""
    return store_of(location).manifest_at(location)


def open_at(
    location: Location, fingerprint: str | None = None, *, model: str | None = None, verify: bool = False
) -> Index:
    """Open the index at `location`, as `VectorIndex.load` does; a server has nothing to `verify`."""
    return store_of(location).load(location, fingerprint, model=model, verify=verify)
