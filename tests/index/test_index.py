"""Searches against brute force, edits against a dictionary, copies on a GPU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pytest
from index_corpus import FACTORIES, FLOORS, D, N, brute_force, build, in_batches, overlap, sentences, vectors

from cse.corpus.corpus import Corpus
from index import BuildSettings, FewHitsWarning, Hit, VectorIndex
from index.folder import unit_rows


@pytest.fixture
def flat(tmp_path: Path) -> VectorIndex:
    return build(tmp_path / "flat")


def test_hits_are_what_search_finds_for_one_query(tmp_path):
    index = build(tmp_path / "x")
    index.remove([0, 3])
    query = 7 * vectors(N)[5]
    scores, rows = index.search(query[None], 4)
    assert index.hits(query, 4) == [
        Hit(rank, float(score), int(row) + 1, f"sentence {row} é", {}, int(row))
        for rank, score, row in zip((1, 2, 3, 4), scores[0], rows[0], strict=True)
    ]
    assert index.hits(query, 1)[0] == Hit(1, pytest.approx(1, abs=1e-6), 6, "sentence 5 é", {}, 5)
    with pytest.raises(ValueError, match="shape"):
        index.hits(query[None], 4)


def test_an_index_and_its_hits_say_what_they_are(tmp_path):
    table = pa.table({"text": ["<b>a</b>", "c"], "row": ["x", "y"], "price": [1, 2]})
    built = VectorIndex.build([(Corpus.of(table), np.eye(2))], tmp_path / "y", settings=BuildSettings(model="/me/mine"))
    assert repr(built) == "VectorIndex(2 rows, Flat, mine)"
    cells = re.findall("<t[hd]>(.*?)</t[hd]>", built.hits(np.array([1.0, 0]), 2)._repr_html_())
    assert cells == [
        "rank", "score", "row", "text", "cse_row", "price", "1", "1.0000", "1", "&lt;b&gt;a&lt;/b&gt;", "x", "1",
        "2", "0.0000", "2", "c", "y", "2",
    ]  # fmt: skip


def test_what_an_approximate_type_does_not_find_is_minus_one_and_no_hit(tmp_path):
    index = build(tmp_path / "x", "IVF32,Flat", nprobe=1)
    with pytest.warns(FewHitsWarning, match=r"of 2,400 hits, since this IVF32,Flat index searched 1 of its cells"):
        scores, rows = index.search(vectors(4), N)
    assert np.isneginf(scores[rows == -1]).all()
    assert np.isfinite(scores[rows >= 0]).all()
    assert -1 in rows[0]
    some = int((rows[0] >= 0).sum())
    with pytest.warns(
        FewHitsWarning, match=rf"^found {some} of 600 hits, .*; a larger `probe`, such as 4, finds more$"
    ):
        hits = index.hits(vectors(N)[0], N)
    assert index.hits(vectors(N)[0], N, quiet=True) == hits
    assert [hit.position for hit in hits] == rows[0][rows[0] >= 0].tolist()
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))


@pytest.mark.parametrize("factory", ["IVF32,Flat", "HNSW4,Flat"])
def test_a_larger_probe_finds_what_is_missing(factory, tmp_path):
    index, queries = build(tmp_path / "x", factory, nprobe=1, ef_search=1), vectors(5)
    assert len(index.hits(queries[0], 100, quiet=True)) < 100
    rows = index.search(queries, 100, probe=600)[1]  # without a warning, which were an error here
    assert (rows >= 0).all()
    assert overlap(rows, brute_force(queries, vectors(N), 100)[1]) > 0.9
    assert len(index.hits(queries[0], 100, quiet=True)) < 100
    few = [number for number in range(N) if number % 60 == 0]
    if factory.startswith("IVF"):
        assert sorted(index.search(queries, 10, among=few, probe=32)[1][0].tolist()) == few
    with pytest.raises(ValueError, match="`probe` is 0; give 1 or more"):
        index.search(queries, 3, probe=0)


@pytest.mark.parametrize("factory", FACTORIES)
def test_search_agrees_with_brute_force(factory, tmp_path):
    index = build(tmp_path / "x", factory)
    queries = vectors(50, seed=1)
    scores, rows = index.search(queries, 10)
    expected_scores, expected_rows = brute_force(queries, vectors(N), 10)
    assert (scores.dtype, rows.dtype, len(index)) == (np.float32, np.int64, N)
    assert overlap(rows, expected_rows) >= FLOORS.get(factory, 0.9)
    if factory == "Flat":
        np.testing.assert_array_equal(rows, expected_rows)
        np.testing.assert_allclose(scores, expected_scores, atol=1e-6)  # float32 sums of 32 products
    true_scores, true_rows = brute_force(queries, vectors(N), N)
    of_found = np.take_along_axis(np.take_along_axis(true_scores, np.argsort(true_rows, 1), 1), rows, 1)
    np.testing.assert_allclose(scores, of_found, atol=0.15 if "PQ" in factory else 0.02)


def test_zero_rows_stay_zero_and_score_zero(tmp_path):
    points = vectors(5)
    points[2] = 0
    index = VectorIndex.build([(sentences(5), points)], tmp_path / "x", settings=BuildSettings())
    scores, rows = index.search(points, 5)
    assert (scores[2] == 0).all()
    assert scores[rows == 2].tolist() == [0] * 5


def test_unit_rows_survive_extreme_lengths():
    rows = np.array([[3e30, 4e30], [3e-30, 4e-30], [3, 4], [0, 0]], dtype=np.float32)
    expected = np.array([[0.6, 0.8]] * 3 + [[0, 0]], dtype=np.float32)
    np.testing.assert_allclose(unit_rows(rows), expected, rtol=1e-6)  # float32


@pytest.mark.parametrize("bad", [np.nan, 1e300])
def test_a_value_that_is_not_finite_is_refused_with_its_row(bad, tmp_path, flat):
    points = vectors(20).astype(np.float64)
    points[13, 5] = bad
    batches = [(sentences(10), points[:10]), (sentences(10), points[10:])]
    with pytest.raises(ValueError, match="row 13 holds"):
        VectorIndex.build(batches, tmp_path / "x", settings=BuildSettings())
    with pytest.raises(ValueError, match="row 3 holds"):
        flat.search(points[10:], 1)
    with pytest.raises(ValueError, match=f"row {N + 3} holds"):
        flat.add(sentences(10), points[10:])
    assert len(flat) == N
    assert not (tmp_path / "x").exists()


def test_k_is_cut_and_edges_keep_their_shapes(tmp_path):
    index = build(tmp_path / "x", count=4)
    scores, rows = index.search(vectors(2), 9)
    assert sorted(rows[0].tolist()) == [0, 1, 2, 3]
    assert scores.shape == (2, 4)
    scores, rows = index.search(np.empty((0, D), dtype=np.float32), 3)
    assert (scores.shape, rows.shape, scores.dtype, rows.dtype) == ((0, 3), (0, 3), np.float32, np.int64)
    index.remove([0, 1, 2, 3])
    assert index.search(vectors(2), 9)[1].shape == (2, 0)
    for bad in (0, -1):
        with pytest.raises(ValueError, match="give at least 1"):
            index.search(vectors(2), bad)


@pytest.mark.parametrize("factory", ["Flat", "IVF8,PQ16", "IDMap,Flat", "PCA24,IVF8,Flat"])
def test_edits_keep_texts_and_vectors_together(factory, tmp_path):
    """Removing, adding, saving, loading and again: each sentence is found by its own vector under its own row."""
    index = build(tmp_path / "x", factory, nprobe=8 if "IVF" in factory else None)
    points, expected = vectors(N + 40), dict(enumerate(sentences(N + 40)))
    for start in (N, N + 20):
        doomed = [start // 3, 0 if start == N else 1, start - 1, start // 2]
        assert index.remove(doomed) == 4
        added = index.add(sentences(20, start), points[start : start + 20])
        assert added.tolist() == list(range(start, start + 20))
        for row in doomed:
            del expected[row]
        index.save(tmp_path / "y")
        for opened in (index, VectorIndex.load(tmp_path / "y", "a1b2" * 16)):
            alive = [row for row in expected if row < start + 20]
            nearest = opened.search(points[alive], 3)[1]
            share = np.mean([row in answers for row, answers in zip(alive, nearest, strict=True)])
            assert share >= (0.9 if "PQ" in factory or "PCA" in factory else 1)
            assert set(nearest.ravel().tolist()) <= set(alive)
            assert opened.texts(alive) == [expected[row] for row in alive]
            assert (len(opened), opened.manifest.count, opened.manifest.rows) == (len(alive), len(alive), start + 20)
        index = VectorIndex.load(tmp_path / "y")


def test_hnsw_refuses_removal_and_stays_whole(tmp_path):
    index = build(tmp_path / "x", "HNSW32,Flat")
    with pytest.raises(ValueError, match="HNSW32,Flat cannot remove rows: remove_ids not implemented"):
        index.remove([3])
    assert index.texts([3]) == ["sentence 3 é"]
    assert len(index) == N
    index.add(["new"], vectors(1, seed=5))
    assert index.texts(index.search(vectors(1, seed=5), 1)[1][0]) == ["new"]


@pytest.mark.parametrize("factory", ["PQ8", "PQ8x4fs", "NSG16,Flat"])
def test_a_type_that_searches_all_rows_alone_says_so(factory, tmp_path):
    index = build(tmp_path / "x", factory)
    with pytest.raises(ValueError, match=r"FAISS cannot search some rows of this index: .*; search all rows, or build"):
        index.search(vectors(1), 2, among=[1, 2])


def test_a_type_that_ends_the_process_for_its_vectors_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"FAISS gives no vectors back: .* fs; build the index as Flat"):
        build(tmp_path / "x", "IVF16,PQ8x4fs").vectors([1])


@pytest.mark.parametrize("rows", [[-1], [N], [1.5]])
def test_unknown_rows_are_refused(rows, flat):
    for method in (flat.texts, flat.remove):
        with pytest.raises(ValueError, match="row"):
            method(rows)
    assert len(flat) == N


def test_removed_rows_are_gone(flat, tmp_path):
    flat.remove([7, 7])
    with pytest.raises(ValueError, match="row 7 was removed"):
        flat.texts([7])
    with pytest.raises(ValueError, match="row 7 was removed"):
        flat.remove([7])
    flat.save(tmp_path / "y")
    assert b"sentence 7 " not in (tmp_path / "y" / "texts.arrow").read_bytes()


def test_adding_checks_its_input(flat):
    with pytest.raises(ValueError, match="2 texts and 3 vectors"):
        flat.add(["a", "b"], vectors(3))
    with pytest.raises(ValueError, match=f"have 8 dimensions, not {D}"):
        flat.add(["a"], np.ones((1, 8)))
    with pytest.raises(ValueError, match="text 1 of the batch is None"):
        flat.add(["a", None], vectors(2))  # type: ignore[list-item]
    assert flat.add([], np.empty((0, D))).tolist() == []
    assert len(flat) == N


def test_edits_forget_recall_and_name_corpora(tmp_path):
    index = build(tmp_path / "x", "SQ8")
    assert (index.recall_at_10 or 0) > 0.9
    index.add(["more"], vectors(1), corpus="second")
    index.add(["more"], vectors(1), corpus="second")
    assert index.recall_at_10 is None
    index.save(tmp_path / "x")
    loaded = VectorIndex.load(tmp_path / "x").manifest
    assert (loaded.recall_at_10, loaded.corpora, loaded.count) == (None, ["demo", "second"], N + 2)
    assert build(tmp_path / "exact", "Flat").recall_at_10 == 1.0


def test_a_gpu_copy_follows_edits_and_failure_falls_back(tmp_path, monkeypatch):
    """One GPU whose clones are CPU copies."""

    def clone(resources: Any, device: int, index: Any) -> Any:
        sent.append(type(index).__name__)
        return faiss.clone_index(index)

    sent: list[str] = []
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", clone, raising=False)
    index = build(tmp_path / "x")
    index.search(vectors(1), 1)
    index.add(["new"], vectors(1, seed=8))
    assert index.texts(index.search(vectors(1, seed=8), 1)[1][0]) == ["new"]
    assert sent == ["IndexFlatIP", "IndexFlatIP"]

    def full(*_: Any) -> Any:
        raise RuntimeError("out of GPU memory")

    monkeypatch.setattr(faiss, "index_cpu_to_gpu", full)
    np.testing.assert_array_equal(VectorIndex.load(tmp_path / "x").search(vectors(3), 1)[1][:, 0], [0, 1, 2])


@pytest.mark.parametrize("batch", [7, N])
def test_texts_come_in_the_order_asked_from_one_batch_and_from_many(tmp_path, batch):
    index = VectorIndex.build(in_batches(batch), tmp_path / "x", settings=BuildSettings())
    rows = [N - 1, 0, 7, 7, 300]
    assert index.texts(rows) == index.texts(np.array(rows)) == [sentences(N)[row] for row in rows]
    assert index.texts([]) == []
    assert [hit.text for hit in index.hits(vectors(N)[7], 3)] == index.texts(index.search(vectors(N)[7:8], 3)[1][0])


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_queries_of_any_kind_of_number_are_left_as_they_were(tmp_path, kind):
    index = build(tmp_path / "x")
    queries = (2 * vectors(3)).astype(kind)
    before = queries.copy()
    np.testing.assert_array_equal(index.search(queries, 4)[1], index.search(vectors(3), 4)[1])
    np.testing.assert_array_equal(queries, before)


def test_half_of_a_surrogate_pair_is_kept_as_the_encoder_reads_it(tmp_path):
    texts = ["a \ud800 b", "\udfff", "whole \U0001f600 and \x00"]
    index = VectorIndex.build([(texts, np.eye(3, 4))], tmp_path / "x", settings=BuildSettings())
    index.add(["\ud800"], np.ones((1, 4)))
    assert index.texts(range(4)) == ["a ? b", "?", "whole \U0001f600 and \x00", "?"]
