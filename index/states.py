"""The state of an index that grows, written now and then where a lot of work would be lost, and gone on with."""

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
SECONDS = 60.0  # of training and adding that a kill may cost
SHARE = 20  # as many times what a state takes to write: writing adds 5 % at most


class States:
    """Keeps the latest state of one index in `folder`, or nothing where that is None."""

    def __init__(self, folder: Path | None, settings: BuildSettings) -> None:
        self._folder = folder
        self._made_by = {"factory": settings.factory, "seed": settings.seed, "faiss": engine.VERSION}
        self._unsaved = self._writing = 0.0  # seconds
        self._seen, self._sha = 0, hashlib.sha256()  # rows
        self._awaited: tuple[int, str] | None = None  # the rows of the state that was read, and their sha256

    def latest(self) -> Any:
        """The index as it was last written; None where it was not, damaged, or with another factory or seed."""
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
        """Take the next unit rows (n, d) into what a state is of, before they change the index.

        Raises ValueError where the state that was read is of others.
        """
        if self._folder is None:
            return
        self._sha.update(np.ascontiguousarray(rows).data.cast("B"))
        self._seen += len(rows)
        if self._awaited and self._seen >= self._awaited[0]:  # 0 where it was trained on the first rows alone
            if self._sha.hexdigest() != self._awaited[1]:
                raise ValueError(
                    f"the unfinished build had other vectors in its first {self._seen} rows; give the corpus it was "
                    "begun with, or drop it by `overwrite` without `resume`"
                )
            self._awaited = None

    @contextmanager
    def working(self, index: Any) -> Iterator[None]:
        """Time the block, which changes `index`, and write the state where that is due."""
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
