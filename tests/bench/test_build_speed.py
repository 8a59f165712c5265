"""The figures of `tests.bench index`: those of given vectors, a folder's and a server's side by side."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import refused, run
from index_corpus import brute_force, overlap, vectors
from milvus_server import needs_server, served

from index import BuildSettings, VectorIndex
from tests.bench.index import measure


def test_recall_is_that_of_the_built_index_for_the_last_rows(tmp_path: Path) -> None:
    given = vectors(600)
    (speed,) = measure(given, "PQ8", None, rounds=3)
    index = VectorIndex.build([([""] * 400, given[:400])], tmp_path / "x", settings=BuildSettings(factory="PQ8"))
    found = index.search(given[400:], 10)[1]
    assert speed.recall == pytest.approx(overlap(found, brute_force(given[400:], given[:400], 10)[1]))
    assert 0.5 < speed.recall < 1
    assert (speed.where, speed.rows, speed.dimension) == ("folder", 400, 32)
    assert 0 < speed.one <= speed.one_p95
    assert min(speed.build, speed.open, speed.together) > 0
    with pytest.raises(ValueError, match="209 vectors are too few to measure; give 210 or more"):
        measure(given[:209], "Flat", None, rounds=1)


def test_sentences_are_encoded_alone_and_into_an_index_of_each_type(
    tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.txt").write_text("\n".join(f"sentence {number}" for number in range(50)))
    monkeypatch.setattr("index.faiss_index.BLOCK", 16)
    words = ("bench", "index", "--model", bert_folder, "--input", tmp_path / "s.txt", "--rows", 40)
    done = run(*words, "--factory", "Flat", "--factory", "IVF2,Flat", "--rounds", 1, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["sentences"] == 40
    assert list(told["works"]) == ["encoding alone", "encoding and Flat", "encoding and IVF2,Flat"]
    assert told["works"]["encoding alone"]["times"] == [1, 1, 1]


@needs_server
def test_the_command_measures_a_store_and_deletes_it(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", vectors(400))
    with served(tmp_path / "data") as address:
        words = ("bench", "index", "--vectors", tmp_path / "vectors.npy", "--store", f"{address}/measured")
        for _ in range(2):
            done = run(*words, "--rounds", 1, "--json")
            assert done.exit_code == 0, done.output
        refused(run(*words[:-1], "milvus://x"), 3, "milvus://HOST:PORT/COLLECTION")
    folder, store = json.loads(done.stdout)["speeds"]
    assert (folder["where"], store["where"], store["bytes"]) == ("folder", "store", None)
    assert folder["recall"] == store["recall"] == 1
