"""Texts of a search: sentences by row number, and queries that stay unchanged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from index_corpus import N, build, in_batches, sentences, vectors

from index import BuildSettings, VectorIndex


@pytest.mark.parametrize("batch", [7, N])
def test_texts_come_in_the_order_asked_from_one_batch_and_from_many(tmp_path: Path, batch: int) -> None:
    index = VectorIndex.build(in_batches(batch), tmp_path / "x", settings=BuildSettings())
    rows = [N - 1, 0, 7, 7, 300]
    assert index.texts(rows) == index.texts(np.array(rows)) == [sentences(N)[row] for row in rows]
    assert index.texts([]) == []
    assert [hit.text for hit in index.hits(vectors(N)[7], 3)] == index.texts(index.search(vectors(N)[7:8], 3)[1][0])
    index.remove([7])
    assert index.texts([6, 8]) == [sentences(N)[6], sentences(N)[8]]
    with pytest.raises(ValueError, match="row 7 was removed"):
        index.texts(rows)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_queries_of_any_kind_of_number_are_left_as_they_were(tmp_path: Path, kind: type) -> None:
    index = build(tmp_path / "x")
    queries = (2 * vectors(3)).astype(kind)
    before = queries.copy()
    np.testing.assert_array_equal(index.search(queries, 4)[1], index.search(vectors(3), 4)[1])
    np.testing.assert_array_equal(queries, before)


def test_hits_load_no_pandas_which_arrow_imports_for_a_list_or_an_array_of_its_own(tmp_path: Path) -> None:
    VectorIndex.build(in_batches(N), tmp_path / "x", settings=BuildSettings())
    program = "import sys; from index import VectorIndex; index = VectorIndex.load(sys.argv[1])"
    program += "; print(len(index.hits([1] * index.manifest.dimension, 2)), 'pandas' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "x"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "2 False\n"


def test_half_of_a_surrogate_pair_is_kept_as_the_encoder_reads_it(tmp_path: Path) -> None:
    texts = ["a \ud800 b", "\udfff", "whole \U0001f600 and \x00"]
    index = VectorIndex.build([(texts, np.eye(3, 4))], tmp_path / "x", settings=BuildSettings())
    index.add(["\ud800"], np.ones((1, 4)))
    assert index.texts(range(4)) == ["a ? b", "?", "whole \U0001f600 and \x00", "?"]
