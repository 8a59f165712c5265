"""The interface of an index wherever it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from index.hits import Hit, Rows
from index.manifest import Manifest

Batches = Iterable[tuple[list[str], np.ndarray]]


class Index(Protocol):
    """Sentences and their unit vectors under stable row numbers; `VectorIndex` documents each member."""

    manifest: Manifest

    def __len__(self) -> int:
        """The number of sentences that were not removed."""

    @property
    def recall_at_10(self) -> float | None:
        """The share of the exact ten nearest that a search finds; None if unknown."""

    def search(
        self, vectors: np.ndarray, k: int, *, among: Rows | None = None, expand: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cosines (q, k) float32, best first, and row numbers (q, k) int64 for queries (q, d) of any length."""

    def hits(self, vector: np.ndarray, k: int, *, among: Rows | None = None, expand: int | None = None) -> list[Hit]:
        """The `k` sentences nearest to a query (d,), best first."""

    def texts(self, rows: Rows) -> list[str]:
        """The sentences of `rows` (n,)."""

    def sample(self, most: int) -> np.ndarray:
        """The row numbers (n,) int64 of `most` sentences, evenly spread."""

    def vectors(self, rows: Rows) -> np.ndarray:
        """The vectors (n, d) float32 of `rows` (n,)."""

    def add(self, texts: Sequence[str], vectors: np.ndarray, *, corpus: str | None = None) -> np.ndarray:
        """Add sentences; return their row numbers (n,) int64."""

    def remove(self, rows: Rows) -> int:
        """Remove the sentences of `rows` (n,) and return their number."""

    def save(self, place: Path | str) -> None:
        """Make additions and removals permanent."""
