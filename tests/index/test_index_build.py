"""Building: streams, training heads, measured recall, what the manifest says."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import faiss
import numpy as np
import pytest
from datasets import Dataset
from index_corpus import D, N, brute_force, build, in_batches, overlap, sentences, vectors

from index import BuildSettings, VectorIndex, faiss_engine
from index.faiss_index import RECALL_QUERIES, RecallProbe, encoded
from index.folder import unit_rows


def test_streaming_equals_one_shot(tmp_path):
    for factory in ("Flat", "SQ8", "IVF8,Flat", "IVF8,PQ16"):
        settings = BuildSettings(factory=factory)
        a = VectorIndex.build(in_batches(7), tmp_path / "a", settings=settings)
        b = VectorIndex.build(in_batches(N), tmp_path / "b", settings=settings)
        assert a.manifest.files["index.faiss"] == b.manifest.files["index.faiss"]
        assert a.manifest.corpus_sha256 == b.manifest.corpus_sha256
        assert a.texts(range(N)) == b.texts(range(N)) == sentences(N)


def test_vectors_beyond_the_head_are_added(tmp_path, monkeypatch):
    monkeypatch.setattr(faiss_engine, "head_rows", lambda index: 300)
    index = build(tmp_path / "x", "IVF8,Flat", nprobe=8)
    queries = vectors(20, seed=3)
    np.testing.assert_array_equal(index.search(queries, 5)[1], brute_force(queries, vectors(N), 5)[1])


@pytest.mark.parametrize("factory", ["HNSW4,Flat", "IVF8,PQ16"])
def test_recall_in_manifest_equals_recomputed(factory, tmp_path):
    index = build(
        tmp_path / "x", factory, nprobe=2 if "IVF" in factory else None, ef_search=10 if "HNSW" in factory else None
    )
    queries = RecallProbe(unit_rows(vectors(N)), seed=42).queries
    expected = overlap(index.search(queries, 10)[1], brute_force(queries, vectors(N), 10)[1])
    assert len(np.unique(queries, axis=0)) == RECALL_QUERIES
    assert index.manifest.recall_at_10 == pytest.approx(expected, abs=1e-9)
    assert 0.2 < expected < 1


def test_recall_counts_ties_as_right(tmp_path):
    """Twenty multiples of each point, equal but for rounding: any ten of them are a right answer."""
    copies = np.repeat(vectors(15), 20, axis=0) * np.linspace(0.1, 7, 300)[:, None]
    settings = BuildSettings(factory="HNSW32,Flat")
    index = VectorIndex.build([(sentences(300), copies)], tmp_path / "x", settings=settings)
    assert index.manifest.recall_at_10 == 1.0


def test_manifest_says_what_was_built(tmp_path):
    index = build(tmp_path / "x", "IVF8,SQ8", pooling="cls")
    manifest = json.loads((tmp_path / "x" / "manifest.json").read_text())
    text = "".join(f"{sentence}\n" for sentence in sentences(N))
    expected = {
        "format": "cse-index", "version": 2, "metric": "inner_product", "normalized": True, "model": "promptbert",
        "pooling": "cls", "fingerprint": "a1b2" * 16, "dimension": D, "factory": "IVF8,SQ8", "nprobe": 8,
        "ef_search": None, "seed": 42, "count": N, "rows": N, "corpora": ["demo"], "faiss": faiss.__version__,
        "corpus_sha256": hashlib.sha256(text.encode()).hexdigest(), "recall_at_10": index.manifest.recall_at_10,
    }  # fmt: skip
    assert {key: manifest[key] for key in manifest if key not in ("files", "digest")} == expected
    for name, record in manifest["files"].items():
        content = (tmp_path / "x" / name).read_bytes()
        assert record == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        ("Flatt", "could not parse index string Flatt"), ("PQ7", "should be a multiple"), ("LSH", "METRIC_L2"),
        ("IVF0,Flat", "at least 1 list"),
    ],
)  # fmt: skip
def test_a_factory_that_faiss_refuses_is_named_with_the_choices(factory, reason, tmp_path):
    with pytest.raises(ValueError, match=reason) as caught:
        build(tmp_path / "x", factory)
    assert repr(factory) in str(caught.value)
    assert "SQ8 HNSW32,Flat IVF{n},Flat" in str(caught.value)
    assert "cpp" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_what_goes_wrong_while_adding_is_raised_and_leaves_the_index_that_was_there(tmp_path, monkeypatch):
    build(tmp_path / "x", count=5)
    really = faiss.IndexFlat.add

    def failing(index: Any, block: np.ndarray) -> None:
        if index.ntotal + len(block) == 300:
            raise MemoryError("no memory")
        really(index, block)

    monkeypatch.setattr(faiss.IndexFlat, "add", failing)
    with pytest.raises(ValueError, match=r"^FAISS cannot add to this index: no memory; rebuild it"):
        VectorIndex.build(in_batches(100), tmp_path / "x", settings=BuildSettings())
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert len(VectorIndex.load(tmp_path / "x")) == 5


def test_a_stream_and_a_dataset_are_encoded_with_their_columns(tmp_path):
    dataset = Dataset.from_dict({"id": ["a", "b", "c"], "text": sentences(3)})
    for number, data in enumerate((dataset, dataset.to_iterable_dataset())):
        index = VectorIndex.build(
            encoded(data, lambda texts: vectors(len(texts))), tmp_path / str(number), settings=BuildSettings()
        )
        hit = index.hits(vectors(3)[1], 1)[0]
        assert (hit.row, hit.text, hit.fields) == (2, sentences(3)[1], {"id": "b"})
