"""Checkpoints of an index under construction, from which an interrupted build continues."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cse.storage.replace import Replacement, recover
from index import engine
from index.folder import FAISS_FILE, file_record
from index.manifest import BuildSettings

STATE_FILE = "state.json"
SECONDS = 60.0  # of training and adding between two checkpoints, at least
SHARE = 20  # times the seconds that writing one takes, at least: writing adds at most 5 %


class States:
    """Keep the latest checkpoint of one index in `folder`; do nothing if that is None."""

    def __init__(self, folder: Path | None, settings: BuildSettings) -> None:
        self._folder = folder
        self._made_by = {"factory": settings.factory, "seed": settings.seed, "faiss": engine.VERSION}
        self._unsaved = self._writing = 0.0  # seconds
        self._seen, self._sha = 0, hashlib.sha256()  # rows
        self._awaited: tuple[int, str] | None = None  # row count and sha256 of the checkpoint that was read

    def latest(self) -> Any:
        """The last checkpoint's index; None if there is none, it is damaged, or factory, seed or FAISS differ."""
        if self._folder is None:
            return None
        recover(self._folder)
        path = self._folder / FAISS_FILE
        try:
            written = json.loads((self._folder / STATE_FILE).read_text(encoding="utf-8"))
            rows_sha256 = written["rows_sha256"]
            whole = written == {**self._made_by, **file_record(path), "rows_sha256": rows_sha256}
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if not whole:
            return None
        index = engine.read_to_add(path)
        self._awaited = index.ntotal, rows_sha256
        return index

    def see(self, rows: np.ndarray) -> None:
        """Update the checksum with the next unit rows (n, d), before they are added to the index.

        Raises ValueError if the checkpoint that was read holds other rows.
        """
        if self._folder is None:
            return
        self._sha.update(np.ascontiguousarray(rows).data.cast("B"))
        self._seen += len(rows)
        if self._awaited and self._seen >= self._awaited[0]:  # 0 rows if the index was trained but still empty
            if self._sha.hexdigest() != self._awaited[1]:
                raise ValueError(
                    f"the unfinished build has other vectors in its first {self._seen} rows; give the corpus it was "
                    "started with, or discard it with `overwrite` and without `resume`"
                )
            self._awaited = None

    @contextmanager
    def working(self, index: Any) -> Iterator[None]:
        """Time the block, which changes `index`, and write a checkpoint if one is due."""
        begun = time.perf_counter()
        yield
        self._unsaved += time.perf_counter() - begun
        if self._folder is not None and self._unsaved > max(SECONDS, SHARE * self._writing):
            begun = time.perf_counter()
            self._write(index, self._folder)
            self._unsaved, self._writing = 0.0, time.perf_counter() - begun

    def _write(self, index: Any, folder: Path) -> None:
        replacement = Replacement.begin(folder)
        try:
            path = replacement.fresh / FAISS_FILE
            engine.write(index, path)
            record = {**self._made_by, **file_record(path), "rows_sha256": self._sha.hexdigest()}
            (replacement.fresh / STATE_FILE).write_text(json.dumps(record), encoding="utf-8")
            replacement.swap()
        finally:
            replacement.clear()
