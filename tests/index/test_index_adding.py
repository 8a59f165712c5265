"""Vectors are added in a second thread while the next ones are made: in order, in bounded memory, errors told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, current_thread, main_thread
from typing import Any

import numpy as np
import pytest
from index_corpus import N, build, in_batches, vectors

from index import BuildSettings, VectorIndex, engine
from index.vectors import unit_rows


def test_a_batch_is_added_while_the_next_is_drawn_and_no_more_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting, drawn, added = Barrier(2, timeout=20), 0, 0
    original = engine.add

    def adding(index: Any, block: np.ndarray, first_row: int) -> None:
        nonlocal added
        if current_thread() is not main_thread():
            meeting.wait()
        original(index, block, first_row)
        added += len(block)

    def batches() -> Iterator[tuple[list[str], np.ndarray]]:
        nonlocal drawn
        for texts, points in in_batches(100):
            if drawn >= 200:  # the first hundred is the head, added here
                meeting.wait()  # the batch before is being added, or the barrier breaks
            assert drawn - added <= 200
            drawn += len(texts)
            yield texts, points
        meeting.wait()

    monkeypatch.setattr(engine, "add", adding)
    monkeypatch.setattr(engine, "head_rows", lambda index: 100)
    index = VectorIndex.build(batches(), tmp_path / "x", settings=BuildSettings())
    assert (drawn, added) == (N, N)
    np.testing.assert_array_equal(index.contents()[1], unit_rows(vectors(N)))


@pytest.mark.parametrize("broken", [1, 3, 6])
def test_what_goes_wrong_while_adding_is_raised_and_leaves_the_index_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: int
) -> None:
    build(tmp_path / "x", count=5)
    original = engine.add

    def failing(index: Any, block: np.ndarray, first_row: int) -> None:
        if first_row + len(block) == 100 * broken:
            raise ValueError("FAISS cannot add to this index: no memory")
        original(index, block, first_row)

    monkeypatch.setattr(engine, "add", failing)
    with pytest.raises(ValueError, match=r"^FAISS cannot add to this index: no memory$"):
        VectorIndex.build(in_batches(100), tmp_path / "x", settings=BuildSettings())
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert len(VectorIndex.load(tmp_path / "x")) == 5
