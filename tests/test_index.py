"""The index against brute force, its edits against a dictionary, its folder against every kind of damage."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pytest

from index import BuildSettings, Hit, IndexFolderError, VectorIndex, engine
from index.building import QUERIES, RecallProbe, take
from index.factories import DOCUMENTED_FACTORIES
from index.folder import file_records
from index.texts import checksum
from index.vectors import unit_rows

N, D, POOL = 600, 32, 700
FACTORIES = [factory.replace("{n}", "8") for factory in DOCUMENTED_FACTORIES]
# lowest overlap with brute force at k = 10 on this corpus; SQfp16 keeps 11 bits, SQ8 8, PQ16 4 a dimension
FLOORS = {"Flat": 1.0, "SQfp16": 0.99, "SQ8": 0.95, "HNSW32,Flat": 0.99, "IVF8,PQ16": 0.6}
CPU = {"device": "cpu"}


def sentences(count: int, start: int = 0) -> list[str]:
    return [f"sentence {number} é" for number in range(start, start + count)]


def vectors(count: int, seed: int = 0) -> np.ndarray:
    """(count, D): 20 loose clusters, rows of any length; a smaller count gives the first rows of a larger."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((20, D))
    points = centres[rng.integers(20, size=POOL)] + 0.5 * rng.standard_normal((POOL, D))
    return (points * rng.uniform(0.1, 9, (POOL, 1))).astype(np.float32)[:count]


def in_batches(size: int, count: int = N, seed: int = 0) -> Iterator[tuple[list[str], np.ndarray]]:
    texts, points = sentences(count), vectors(count, seed)
    for start in range(0, count, size):
        yield texts[start : start + size], points[start : start + size]


def build(folder: Path, factory: str = "Flat", count: int = N, **settings: Any) -> VectorIndex:
    chosen = BuildSettings(factory=factory, model="promptbert", fingerprint="a1b2" * 16, corpus="demo", **settings)
    return VectorIndex.build(in_batches(97, count), folder, settings=chosen)


def brute_force(queries: np.ndarray, stored: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and rows in float64, from the definition."""
    scores = queries.astype(np.float64) @ stored.T.astype(np.float64)
    scores /= np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(stored, axis=1)[None]
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, rows, 1), rows


def overlap(found: np.ndarray, expected: np.ndarray) -> float:
    return float(
        np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), expected.tolist(), strict=True)])
    )


@pytest.fixture
def flat(tmp_path: Path) -> VectorIndex:
    return build(tmp_path / "flat")


def test_hits_are_what_search_finds_for_one_query(tmp_path: Path) -> None:
    index = build(tmp_path / "x")
    index.remove([0, 3])
    query = 7 * vectors(N)[5]
    scores, rows = index.search(query[None], 4)
    assert index.hits(query, 4) == [
        Hit(rank, float(score), int(row), f"sentence {row} é")
        for rank, score, row in zip((1, 2, 3, 4), scores[0], rows[0], strict=True)
    ]
    assert index.hits(query, 1)[0] == Hit(1, pytest.approx(1, abs=1e-6), 5, "sentence 5 é")
    with pytest.raises(ValueError, match="shape"):
        index.hits(query[None], 4)


def test_hits_leave_out_what_an_approximate_type_does_not_find(tmp_path: Path) -> None:
    index = build(tmp_path / "x", "IVF32,Flat", nprobe=1)
    stored = vectors(N)
    rows = index.search(stored[:1], N)[1][0]
    assert -1 in rows
    found = index.hits(stored[0], N)
    assert [hit.row for hit in found] == rows[rows >= 0].tolist()
    assert [hit.rank for hit in found] == list(range(1, len(found) + 1))


@pytest.mark.parametrize("factory", FACTORIES)
def test_search_agrees_with_brute_force(factory: str, tmp_path: Path) -> None:
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


def test_documented_factories_are_built_silently(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number, factory in enumerate([*FACTORIES, "IVF64,SQ8"]):
        build(tmp_path / str(number), factory)
    assert capfd.readouterr() == ("", "")


def test_streaming_equals_one_shot(tmp_path: Path) -> None:
    for factory in ("Flat", "SQ8", "IVF8,Flat", "IVF8,PQ16"):
        settings = BuildSettings(factory=factory)
        a = VectorIndex.build(in_batches(7), tmp_path / "a", settings=settings)
        b = VectorIndex.build(in_batches(N), tmp_path / "b", settings=settings)
        assert a.manifest.files["index.faiss"] == b.manifest.files["index.faiss"]
        assert a.manifest.corpus_sha256 == b.manifest.corpus_sha256
        assert a.texts(range(N)) == b.texts(range(N)) == sentences(N)


def test_training_head_is_bounded_and_independent_of_batches() -> None:
    rows = np.arange(20, dtype=np.float32).reshape(10, 2)
    for size in (1, 3, 10):
        blocks = iter([rows[start : start + size] for start in range(0, 10, size)])
        head, rest = take(blocks, 4)
        np.testing.assert_array_equal(head, rows[:4])
        np.testing.assert_array_equal(np.concatenate([head, *rest, *blocks]), rows)
    assert engine.head_rows(engine.create(8, "Flat", 0)) == 1
    assert engine.head_rows(engine.create(8, "SQ8", 0)) == 65_536
    assert engine.head_rows(engine.create(8, "IVF600,Flat", 0)) == 600 * 256
    assert engine.head_rows(engine.create(8, "IVF4000,Flat", 0)) == 200_000
    assert engine.head_rows(engine.create(8, "IVF10000,Flat", 0)) == 390_000


@pytest.mark.parametrize("factory", ["PQ16", "IVF8,PQ16", "OPQ16,IVF8,PQ16"])
def test_product_quantizers_skip_the_slow_search_for_code_numbers(factory: str) -> None:
    index: Any = engine.create(D, factory, 0)
    coder: Any = index if factory == "PQ16" else faiss.downcast_index(faiss.extract_index_ivf(index))
    assert coder.do_polysemous_training is False


def test_vectors_beyond_the_head_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[int] = []
    original = engine.train

    def counting(index: Any, head: np.ndarray, factory: str) -> None:
        trained.append(len(head))
        original(index, head, factory)

    monkeypatch.setattr(engine, "head_rows", lambda index: 300)
    monkeypatch.setattr(engine, "train", counting)
    index = build(tmp_path / "x", "IVF8,Flat", nprobe=8)
    queries = vectors(20, seed=3)
    np.testing.assert_array_equal(index.search(queries, 5)[1], brute_force(queries, vectors(N), 5)[1])
    assert trained == [300]


def test_report_counts_rows(tmp_path: Path) -> None:
    seen: list[int] = []
    VectorIndex.build(in_batches(250), tmp_path / "x", settings=BuildSettings(), report=seen.append)
    assert seen == [250, 500, 600]


@pytest.mark.parametrize("factory", ["HNSW4,Flat", "IVF32,Flat", "IVF8,PQ16"])
def test_recall_in_manifest_equals_recomputed(factory: str, tmp_path: Path) -> None:
    index = build(
        tmp_path / "x", factory, nprobe=2 if "IVF" in factory else None, ef_search=10 if "HNSW" in factory else None
    )
    queries = RecallProbe(unit_rows(vectors(N)), seed=42).queries
    expected = overlap(index.search(queries, 10)[1], brute_force(queries, vectors(N), 10)[1])
    assert len(np.unique(queries, axis=0)) == QUERIES
    assert index.manifest.recall_at_10 == pytest.approx(expected, abs=1e-9)
    assert 0.2 < expected < 1


def test_recall_sees_the_vectors_after_the_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "head_rows", lambda index: 250)
    index = build(tmp_path / "x", "IVF32,Flat", nprobe=2)
    queries = RecallProbe(unit_rows(vectors(250)), seed=42).queries
    expected = overlap(index.search(queries, 10)[1], brute_force(queries, vectors(N), 10)[1])
    assert index.manifest.recall_at_10 == pytest.approx(expected, abs=1e-9)


def test_recall_counts_ties_as_right(tmp_path: Path) -> None:
    """Twenty multiples of each point, equal but for rounding: any ten of them are a right answer."""
    copies = np.repeat(vectors(15), 20, axis=0) * np.linspace(0.1, 7, 300)[:, None]
    settings = BuildSettings(factory="HNSW32,Flat")
    index = VectorIndex.build([(sentences(300), copies)], tmp_path / "x", settings=settings)
    assert index.manifest.recall_at_10 == 1.0


def test_recall_of_a_corpus_of_zeros_is_unknown(tmp_path: Path) -> None:
    settings = BuildSettings(factory="SQ8")
    index = VectorIndex.build([(sentences(3), np.zeros((3, D)))], tmp_path / "x", settings=settings)
    assert index.manifest.recall_at_10 is None


def test_zero_rows_stay_zero_and_score_zero(tmp_path: Path) -> None:
    points = vectors(5)
    points[2] = 0
    index = VectorIndex.build([(sentences(5), points)], tmp_path / "x", settings=BuildSettings())
    scores, rows = index.search(points, 5)
    assert (scores[2] == 0).all()
    assert scores[rows == 2].tolist() == [0] * 5


def test_unit_rows_survive_extreme_lengths() -> None:
    rows = np.array([[3e30, 4e30], [3e-30, 4e-30], [3, 4], [0, 0]], dtype=np.float32)
    expected = np.array([[0.6, 0.8]] * 3 + [[0, 0]], dtype=np.float32)
    np.testing.assert_allclose(unit_rows(rows), expected, rtol=1e-6)  # float32


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_a_value_that_is_not_finite_is_refused_with_its_row(bad: float, tmp_path: Path, flat: VectorIndex) -> None:
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


def test_k_is_cut_and_edges_keep_their_shapes(tmp_path: Path) -> None:
    index = build(tmp_path / "x", count=4)
    scores, rows = index.search(vectors(2), 9)
    assert sorted(rows[0].tolist()) == [0, 1, 2, 3]
    assert scores.shape == (2, 4)
    scores, rows = index.search(np.empty((0, D), dtype=np.float32), 3)
    assert (scores.shape, rows.shape, scores.dtype, rows.dtype) == ((0, 3), (0, 3), np.float32, np.int64)
    index.remove([0, 1, 2, 3])
    assert index.search(vectors(2), 9)[1].shape == (2, 0)
    for bad in (0, -1):
        with pytest.raises(ValueError, match="ask for 1 or more"):
            index.search(vectors(2), bad)


@pytest.mark.parametrize("shape", [(D,), (2, D + 1), (2, 2, D), (2, 0)])
def test_queries_of_another_shape_are_refused(shape: tuple[int, ...], flat: VectorIndex) -> None:
    with pytest.raises(ValueError, match="vectors have"):
        flat.search(np.ones(shape, dtype=np.float32), 1)


def test_missing_answers_are_minus_one(tmp_path: Path) -> None:
    index = build(tmp_path / "x", "IVF32,Flat", nprobe=1)
    scores, rows = index.search(vectors(4), N)
    assert (rows == -1).any()
    assert np.isneginf(scores[rows == -1]).all()
    assert np.isfinite(scores[rows >= 0]).all()


@pytest.mark.parametrize(
    "factory",
    ["Flat", "SQfp16", "SQ8", "IVF8,Flat", "IVF8,SQ8", "IVF8,PQ16", "IDMap,Flat", "PCA16,Flat", "PCA24,IVF8,Flat"],
)
def test_edits_keep_texts_and_vectors_together(factory: str, tmp_path: Path) -> None:
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
        for each in (index, VectorIndex.load(tmp_path / "y", "a1b2" * 16)):
            alive = [row for row in expected if row < start + 20]
            found = each.search(points[alive], 3)[1]
            share = np.mean([row in answers for row, answers in zip(alive, found, strict=True)])
            assert share >= (0.9 if "PQ" in factory or "PCA" in factory else 1)
            assert set(found.ravel().tolist()) <= set(alive)
            assert each.texts(alive) == [expected[row] for row in alive]
            assert (len(each), each.manifest.count, each.manifest.rows) == (len(alive), len(alive), start + 20)
        index = VectorIndex.load(tmp_path / "y")


def test_hnsw_refuses_removal_and_stays_whole(tmp_path: Path) -> None:
    index = build(tmp_path / "x", "HNSW32,Flat")
    with pytest.raises(ValueError, match="HNSW32,Flat cannot remove rows: remove_ids not implemented"):
        index.remove([3])
    assert index.texts([3]) == ["sentence 3 é"]
    assert len(index) == N
    index.add(["new"], vectors(1, seed=5))
    assert index.texts(index.search(vectors(1, seed=5), 1)[1][0]) == ["new"]


@pytest.mark.parametrize("rows", [[-1], [N], [1.5], [[1]], [True]])
def test_unknown_rows_are_refused(rows: Any, flat: VectorIndex) -> None:
    for method in (flat.texts, flat.remove):
        with pytest.raises(ValueError, match="row"):
            method(rows)
    assert len(flat) == N


def test_removed_rows_are_gone(flat: VectorIndex, tmp_path: Path) -> None:
    flat.remove([7, 7])
    with pytest.raises(ValueError, match="row 7 was removed"):
        flat.texts([7])
    with pytest.raises(ValueError, match="row 7 was removed"):
        flat.remove([7])
    flat.save(tmp_path / "y")
    assert b"sentence 7 " not in (tmp_path / "y" / "texts.arrow").read_bytes()


def test_adding_checks_its_input(flat: VectorIndex) -> None:
    with pytest.raises(ValueError, match="2 texts and 3 vectors"):
        flat.add(["a", "b"], vectors(3))
    with pytest.raises(ValueError, match=f"have 8 dimensions, not {D}"):
        flat.add(["a"], np.ones((1, 8)))
    with pytest.raises(ValueError, match="text 1 of the batch is None"):
        flat.add(["a", None], vectors(2))  # type: ignore[list-item]
    assert flat.add([], np.empty((0, D))).tolist() == []
    assert len(flat) == N


def test_edits_forget_recall_and_name_corpora(tmp_path: Path) -> None:
    index = build(tmp_path / "x", "SQ8")
    assert (index.manifest.recall_at_10 or 0) > 0.9
    index.add(["more"], vectors(1), corpus="second")
    index.add(["more"], vectors(1), corpus="second")
    index.save(tmp_path / "x")
    loaded = VectorIndex.load(tmp_path / "x").manifest
    assert (loaded.recall_at_10, loaded.corpora, loaded.count) == (None, ["demo", "second"], N + 2)


def test_manifest_says_what_was_built(tmp_path: Path) -> None:
    index = build(tmp_path / "x", "IVF8,SQ8", pooling="cls")
    manifest = json.loads((tmp_path / "x" / "manifest.json").read_text())
    text = "".join(f"{sentence}\n" for sentence in sentences(N))
    expected = {
        "format": "cse-index", "version": 1, "metric": "inner_product", "normalized": True, "model": "promptbert",
        "pooling": "cls", "fingerprint": "a1b2" * 16, "dimension": D, "factory": "IVF8,SQ8", "nprobe": 8,
        "ef_search": None, "seed": 42, "count": N, "rows": N, "corpora": ["demo"], "faiss": faiss.__version__,
        "corpus_sha256": hashlib.sha256(text.encode()).hexdigest(), "recall_at_10": index.manifest.recall_at_10,
    }  # fmt: skip
    assert {key: manifest[key] for key in manifest if key != "files"} == expected
    for name, record in manifest["files"].items():
        content = (tmp_path / "x" / name).read_bytes()
        assert record == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_checksum_skips_removed_sentences() -> None:
    column = pa.chunked_array([pa.array(["a", None], pa.large_string()), pa.array(["b"], pa.large_string())])
    assert checksum(column) == hashlib.sha256(b"a\nb\n").hexdigest()


@pytest.mark.parametrize(
    ("factory", "given", "expected"),
    [
        ("Flat", (None, None), (None, None)),
        ("IVF4,Flat", (None, None), (4, None)),
        ("IVF256,Flat", (None, None), (16, None)),
        ("IVF256,Flat", (300, 7), (256, None)),
        ("PCA16,IVF256,Flat", (None, None), (16, None)),
        ("HNSW8,Flat", (None, None), (None, 64)),
        ("HNSW8,SQ8", (5, 100), (None, 100)),
    ],
)
def test_search_parameters(
    factory: str, given: tuple[int | None, int | None], expected: tuple[int | None, int | None]
) -> None:
    index = engine.create(D, factory, 0)
    assert engine.tune(index, *given) == expected
    ivf = faiss.try_extract_index_ivf(index)
    actual = (None if ivf is None else ivf.nprobe, index.hnsw.efSearch if hasattr(index, "hnsw") else None)
    assert actual == expected


def test_search_parameters_survive_loading(tmp_path: Path) -> None:
    build(tmp_path / "x", "HNSW8,Flat", ef_search=99)
    index = VectorIndex.load(tmp_path / "x")
    assert index._index.hnsw.efSearch == 99


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        ("Flatt", "could not parse index string Flatt"),
        ("", "could not parse"),
        ("IVF{n},Flat", "could not parse"),
        ("PQ7", "should be a multiple"),
        ("LSH", "METRIC_L2"),
        ("IVF0,Flat", "a list or more"),
        ("HNSW1,Flat", "2 neighbours"),
        ("IVF8_HNSW0,Flat", "2 neighbours"),
        ("IVF99999999999999999999,Flat", "stoi"),
    ],
)
def test_a_factory_that_faiss_refuses_is_named_with_the_choices(factory: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        build(tmp_path / "x", factory)
    assert repr(factory) in str(caught.value)
    assert "SQ8 HNSW32,Flat IVF{n},Flat" in str(caught.value)
    assert "cpp" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("factory", "reason"), [("IVF64,Flat", "needs 64 sentences or more"), ("PQ16", "number of clusters")]
)
def test_a_corpus_too_small_for_its_factory_is_refused(factory: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"{factory} .*{reason}.*use Flat"):
        build(tmp_path / "x", factory, count=50)


def broken_batches(kind: str) -> Iterator[tuple[list[str], np.ndarray]]:
    yield sentences(300), vectors(300)
    if kind == "raises":
        raise RuntimeError("the encoder broke")
    if kind == "interrupted":
        raise KeyboardInterrupt
    if kind == "lengths":
        yield sentences(3), vectors(4)
    if kind == "dimension":
        yield sentences(3), np.ones((3, D + 1))
    if kind == "text":
        yield ["a", 3], vectors(2)  # type: ignore[list-item]


@pytest.mark.parametrize("factory", ["Flat", "IVF8,Flat"])
@pytest.mark.parametrize("kind", ["raises", "interrupted", "lengths", "dimension", "text"])
def test_a_failing_build_leaves_things_as_they_were(kind: str, factory: str, tmp_path: Path) -> None:
    settings = BuildSettings(factory=factory)
    expected = {"raises": RuntimeError, "interrupted": KeyboardInterrupt}.get(kind, ValueError)
    with pytest.raises(expected):
        VectorIndex.build(broken_batches(kind), tmp_path / "x", settings=settings)
    assert list(tmp_path.iterdir()) == []
    build(tmp_path / "x", count=9)
    with pytest.raises(expected):
        VectorIndex.build(broken_batches(kind), tmp_path / "x", settings=settings)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert VectorIndex.load(tmp_path / "x").texts(range(9)) == sentences(9)


def test_a_failing_swap_brings_the_old_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = build(tmp_path / "x", count=9)
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if ".new-" in self.name:
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="no"):
        index.save(tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert len(VectorIndex.load(tmp_path / "x")) == 9


@pytest.mark.parametrize("batches", [[], [([], np.empty((0, D)))]])
def test_an_empty_corpus_is_refused(batches: list[Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no sentence to index"):
        VectorIndex.build(batches, tmp_path / "x", settings=BuildSettings())
    assert list(tmp_path.iterdir()) == []


def untouched() -> Iterator[Any]:
    raise AssertionError("the corpus is encoded although the output is refused")
    yield


def test_only_an_index_is_ever_replaced(tmp_path: Path) -> None:
    """A file, a folder of something else, an index with a stranger in it: refused and kept."""
    index = build(tmp_path / "x", count=9)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    (tmp_path / "looks_alike").mkdir()
    (tmp_path / "looks_alike" / "manifest.json").write_text('{"format": "other"}')
    build(tmp_path / "guest", count=9)
    (tmp_path / "guest" / "notes.txt").write_text("mine")
    for name in ("file", "folder", "looks_alike", "guest"):
        with pytest.raises(ValueError, match="give the index another folder"):
            index.save(tmp_path / name)
        with pytest.raises(ValueError, match="give the index another folder"):
            VectorIndex.build(untouched(), tmp_path / name, settings=BuildSettings())
    assert (tmp_path / "folder" / "notes.txt").read_text() == (tmp_path / "guest" / "notes.txt").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    index.save(tmp_path / "empty")
    index.save(tmp_path / "new" / "deep")
    assert len(VectorIndex.load(tmp_path / "empty")) == len(VectorIndex.load(tmp_path / "new" / "deep")) == 9


def test_a_link_keeps_pointing_at_the_replaced_folder(tmp_path: Path) -> None:
    index = build(tmp_path / "x", count=9)
    (tmp_path / "link").symlink_to(tmp_path / "x")
    index.add(["more"], vectors(1))
    index.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert len(VectorIndex.load(tmp_path / "x")) == 10


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's, 2025-11-21")
@pytest.mark.parametrize("factory", ["Flat", "SQ8", "HNSW8,Flat", "IVF8,Flat", "IVF8,PQ16"])
def test_files_are_mapped_until_an_edit(factory: str, tmp_path: Path) -> None:
    build(tmp_path / "x", factory)
    index = VectorIndex.load(tmp_path / "x")
    before = Path("/proc/self/maps").read_text()
    assert f"{tmp_path}/x/index.faiss" in before
    assert f"{tmp_path}/x/texts.arrow" in before
    found = index.search(vectors(9), 3)[1]
    index.add(["new"], vectors(1, seed=9))
    assert f"{tmp_path}/x/index.faiss" not in Path("/proc/self/maps").read_text()
    np.testing.assert_array_equal(index.search(vectors(9), 3)[1], found)


def test_a_mapped_index_outlives_its_folder_being_replaced(tmp_path: Path) -> None:
    old = build(tmp_path / "x", count=50)
    build(tmp_path / "x", count=9)
    assert old.texts(old.search(vectors(50)[49:], 1)[1][0]) == ["sentence 49 é"]
    old.save(tmp_path / "y")
    assert VectorIndex.load(tmp_path / "y").texts(range(50)) == sentences(50)


def test_another_model_is_refused_with_the_cure(flat: VectorIndex, tmp_path: Path) -> None:
    assert len(VectorIndex.load(tmp_path / "flat", "a1b2" * 16)) == N
    with pytest.raises(IndexFolderError) as caught:
        VectorIndex.load(tmp_path / "flat", "c3d4" * 16, model="simcse")
    assert str(caught.value) == (
        f"{tmp_path / 'flat'}: built by promptbert (a1b2a1b2…), not simcse (c3d4c3d4…): "
        "search with `model` promptbert or rebuild it with scripts.build_index"
    )
    assert caught.value.exit_code == 4


def edit_manifest(folder: Path, **values: Any) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.update(values)
    (folder / "manifest.json").write_text(
        json.dumps({key: value for key, value in manifest.items() if value != "drop"})
    )


def damage(folder: Path, kind: str) -> None:
    name = "index.faiss" if "faiss" in kind else "texts.arrow" if "texts" in kind else "manifest.json"
    path = folder / name
    if "missing" in kind:
        path.unlink()
    elif "truncated" in kind:
        path.write_bytes(path.read_bytes()[:-100])
    elif "flipped" in kind:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif "garbage" in kind:
        path.write_bytes(b"\xff{not json")
    elif "list" in kind:
        path.write_text("[]")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("faiss missing", "index.faiss is missing"),
        ("faiss truncated", r"index.faiss has \d+ bytes, not \d+"),
        ("faiss flipped", "is not what manifest.json describes"),
        ("texts missing", "texts.arrow is missing"),
        ("texts truncated", r"texts.arrow has \d+ bytes, not \d+"),
        ("texts flipped", "is not what manifest.json describes"),
        ("manifest missing", "not an index folder, it has no manifest.json"),
        ("manifest garbage", "cannot read manifest.json"),
        ("manifest list", "is not of the format cse-index"),
    ],
)
def test_damage_is_refused_in_one_line_with_the_cure(
    kind: str, message: str, flat: VectorIndex, tmp_path: Path
) -> None:
    damage(tmp_path / "flat", kind)
    with pytest.raises(IndexFolderError, match=message) as caught:
        VectorIndex.load(tmp_path / "flat")
    assert str(caught.value).startswith(f"{tmp_path / 'flat'}: ")
    assert str(caught.value).endswith("rebuild it with scripts.build_index")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": "other"}, "not of the format"),
        ({"version": 2}, "has version 2 and this program reads 1 only"),
        ({"metric": "l2"}, "has metric 'l2'"),
        ({"normalized": False}, "has normalized False"),
        ({"surprise": 1}, "unknown keys: surprise"),
        ({"count": "drop"}, "missing or unknown keys: count"),
        ({"dimension": "32"}, "has dimension '32'"),
        ({"files": []}, "has files"),
        ({"files": {"index.faiss": 3, "texts.arrow": 3}}, "index.faiss is missing"),
        ({"dimension": 31}, "damaged index"),
        ({"count": 599}, "damaged index"),
        ({"rows": 601}, "damaged index"),
    ],
)
def test_a_foreign_manifest_is_refused(values: dict[str, Any], message: str, flat: VectorIndex, tmp_path: Path) -> None:
    edit_manifest(tmp_path / "flat", **values)
    with pytest.raises(IndexFolderError, match=message):
        VectorIndex.load(tmp_path / "flat")


@pytest.mark.parametrize("content", [b"", b"IxFI", b"not an index at all, but long enough to be read as one"])
@pytest.mark.parametrize("name", ["index.faiss", "texts.arrow"])
def test_files_that_only_the_manifest_believes_in(content: bytes, name: str, flat: VectorIndex, tmp_path: Path) -> None:
    (tmp_path / "flat" / name).write_bytes(content)
    files = dict(flat.manifest.files)
    files[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit_manifest(tmp_path / "flat", files=files)
    with pytest.raises(IndexFolderError, match="damaged index"):
        VectorIndex.load(tmp_path / "flat")


def test_a_foreign_table_is_refused(flat: VectorIndex, tmp_path: Path) -> None:
    table = pa.table({"other": [str(row) for row in range(N)]})
    with pa.OSFile(str(tmp_path / "flat" / "texts.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    edit_manifest(tmp_path / "flat", files=file_records(tmp_path / "flat"))
    with pytest.raises(IndexFolderError, match=r"its columns are \['other'\], not \['text'\]"):
        VectorIndex.load(tmp_path / "flat")


def test_a_path_without_an_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(IndexFolderError, match="is a file, not index folder"):
        VectorIndex.load(tmp_path / "file")
    with pytest.raises(IndexFolderError, match="no such index folder"):
        VectorIndex.load(tmp_path / "nothing")
    with pytest.raises(IndexFolderError, match="no manifest"):
        VectorIndex.load(tmp_path)


def pretend_gpu(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One GPU whose clones are CPU copies; the types sent there."""
    sent: list[str] = []

    def clone(resources: Any, device: int, index: Any) -> Any:
        sent.append(type(index).__name__)
        return faiss.clone_index(index)

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", clone, raising=False)
    return sent


ON_GPU = ("Flat", "SQfp16", "IVF8,Flat", "IVF8,SQ8", "IVF8,PQ16", "PCA16,Flat", "IDMap,Flat")
ON_CPU_ONLY = ("SQ8", "HNSW8,Flat", "PQ16", "SQ8,RFlat")


@pytest.mark.parametrize("factory", [*ON_GPU, *ON_CPU_ONLY])
def test_types_that_go_to_a_gpu(factory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = pretend_gpu(monkeypatch)
    index = build(tmp_path / "x", factory)
    for _ in range(2):
        index.search(vectors(2), 3)
    assert len(sent) == (factory in ON_GPU)
    before = len(sent)
    VectorIndex.load(tmp_path / "x", device="cpu").search(vectors(2), 3)
    assert len(sent) == before


def test_a_gpu_copy_follows_edits_and_failure_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = pretend_gpu(monkeypatch)
    index = build(tmp_path / "x")
    index.search(vectors(1), 1)
    index.add(["new"], vectors(1, seed=8))
    assert index.texts(index.search(vectors(1, seed=8), 1)[1][0]) == ["new"]
    assert sent == ["IndexFlatIP", "IndexFlatIP"]

    def full(*_: Any) -> Any:
        raise RuntimeError("out of GPU memory")

    monkeypatch.setattr(faiss, "index_cpu_to_gpu", full)
    np.testing.assert_array_equal(VectorIndex.load(tmp_path / "x").search(vectors(3), 1)[1][:, 0], [0, 1, 2])


def test_an_unknown_device_is_refused(flat: VectorIndex, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="choose auto or cpu"):
        VectorIndex.load(tmp_path / "flat", device="cuda")


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, index, scripts.build_index, scripts.search; print(sorted({*HEAVY} & set(sys.modules)))"
    heavy = ("faiss", "numpy", "pyarrow", "torch", "cse", "tqdm")
    done = subprocess.run([sys.executable, "-c", code.replace("HEAVY", repr(heavy))], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
