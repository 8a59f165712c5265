"""Smoothed indexes and expanded queries, against the vectors of a plain index and a loop over queries."""

from __future__ import annotations

import numpy as np
import pytest
from index_corpus import FACTORIES, D, N, brute_force, build, vectors

from cse.vectors import smoothed
from index import FewHitsWarning, VectorIndex


def mixed_queries(index: VectorIndex, queries: np.ndarray, count: int) -> np.ndarray:
    """Each query half and half with its nearest vectors as a plain search finds them, weighted by cosine ** 3."""
    rows, stored = index.contents()
    position = {int(row): at for at, row in enumerate(rows)}
    out = []
    for query in queries:
        scores, labels = (answer[0] for answer in index.search(query[None], count, expand=0))
        near = {
            position[row]: score for score, row in zip(scores, labels.tolist(), strict=True) if row >= 0 and score > 0
        }
        weights = np.array([score**3 for score in near.values()])
        unit = query / np.linalg.norm(query)
        out.append(unit + weights @ stored[list(near)] / weights.sum() if near else unit)
    return np.array(out)


@pytest.mark.parametrize("factory", ["Flat", "IVF8,Flat", "HNSW32,Flat"])
def test_an_index_stores_smoothed_vectors_and_expands_queries_alike(factory, tmp_path):
    index = build(tmp_path / "x", factory, smooth=10)
    stored = smoothed(vectors(N), 10)
    np.testing.assert_allclose(index.contents()[1], stored, atol=1e-6)
    queries = vectors(9, seed=1)
    scores, rows = index.search(queries, 5)
    for again in (VectorIndex.load(tmp_path / "x"), index):
        np.testing.assert_array_equal(again.search(queries, 5, expand=10)[1], rows)
    assert index.texts(rows[0]) == [f"sentence {row} é" for row in rows[0]]
    if factory == "Flat":
        expected = brute_force(mixed_queries(index, queries, 10), stored, 5)
        np.testing.assert_allclose(scores, expected[0], atol=1e-6)
        np.testing.assert_array_equal(rows, expected[1])
        np.testing.assert_array_equal(index.search(queries, 5, expand=0)[1], brute_force(queries, stored, 5)[1])
        assert [hit.position for hit in index.hits(queries[0], 5)] == rows[0].tolist()


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_query_is_expanded_with_the_vectors_it_finds(factory, tmp_path):
    index = build(tmp_path / "x", factory)
    index.remove([0, 3]) if "HNSW" not in factory else None
    queries = vectors(9, seed=1)
    scores, rows = index.search(queries, 5, expand=4)
    expected = index.search(mixed_queries(index, queries, 4), 5, expand=0)
    np.testing.assert_allclose(scores, expected[0], atol=1e-5)  # float32 sums of 32 products
    np.testing.assert_array_equal(rows, expected[1])
    assert not np.array_equal(rows, index.search(queries, 5)[1])  # a plain index does not expand by itself


def test_missing_answers_and_zero_queries_are_left_out_of_the_mix(tmp_path):
    index = build(tmp_path / "x", "IVF32,Flat", nprobe=1)
    queries = np.concatenate([vectors(4), np.zeros((1, D), np.float32)])
    with pytest.warns(FewHitsWarning):
        assert -1 in index.search(queries, N, expand=0)[1][0]
    scores, _ = index.search(queries, 3, expand=N)
    with pytest.warns(FewHitsWarning):
        mix = mixed_queries(index, queries[:4], N)
    expected = index.search(mix, 3, expand=0)[0]
    np.testing.assert_allclose(scores[:4], expected, atol=1e-5)
    assert scores[4].tolist() == [0, 0, 0]
    assert index.search(queries[:0], 3, expand=2)[1].shape == (0, 3)


def test_an_expanded_query_answers_among_chosen_rows_and_from_a_small_index(tmp_path):
    index = build(tmp_path / "x", count=8, smooth=100)
    assert index.manifest.smooth == 100
    np.testing.assert_allclose(index.contents()[1], smoothed(vectors(8), 7), atol=1e-6)
    query, chosen = vectors(1, seed=1), [1, 5, 6]
    assert set(index.search(query, 8, among=chosen)[1][0].tolist()) == set(chosen)
    expected = index.search(mixed_queries(index, query, 8), 3, among=chosen, expand=0)
    np.testing.assert_array_equal(index.search(query, 3, among=chosen)[1], expected[1])


def test_what_cannot_be_mixed_is_refused_with_the_cure(tmp_path):
    with pytest.raises(ValueError, match=r"FAISS gives no vectors back to mix.*`expand` 0, or build the index as Flat"):
        build(tmp_path / "x", "IDMap,Flat", smooth=3)
    assert list(tmp_path.iterdir()) == []
    index = build(tmp_path / "x", "IDMap,Flat")
    with pytest.raises(ValueError, match="FAISS gives no vectors back to mix"):
        index.search(vectors(1), 3, expand=2)
