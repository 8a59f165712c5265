"""A collection on a Milvus server beside the index folder: the same answers, edits, refusals; nothing half is whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from index_corpus import D, N, brute_force, in_batches, overlap, sentences, vectors
from milvus_server import free_port, needs_server, served

from cse.corpus import Corpus
from index import BuildSettings, IndexFolderError
from index.milvus import MilvusIndex
from index.stores import location_of, manifest_at, open_at, store_of

FINGERPRINT = "a1b2" * 16
SETTINGS = BuildSettings(model="promptbert", fingerprint=FINGERPRINT, corpus="demo")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("milvus") / "data") as address:
        yield address


@pytest.fixture
def location(server: str, request: pytest.FixtureRequest) -> str:
    """A collection that no other test has."""
    return f"{server}/{re.sub(r'[^a-z0-9]+', '_', request.node.name.lower())}"


def build(location: Path | str, factory: str = "Flat", count: int = N) -> Any:
    settings = replace(SETTINGS, factory=factory)
    return store_of(location).build(in_batches(97, count), location, settings=settings, report=lambda rows: None)


def collections(location: str) -> list[str]:
    """The server's collections of the index at `location`."""
    client, name = client_of(location), location.rpartition("/")[2]
    return [kept for kept in client.list_collections() if re.fullmatch(rf"{name}(_[0-9a-f]{{8}})?", kept)]


def client_of(location: str) -> Any:
    from index.milvus import connect

    return connect(location)


pytestmark = [needs_server, pytest.mark.filterwarnings("ignore::DeprecationWarning:pymilvus")]


def test_the_collection_answers_as_the_folder_does(location, tmp_path):
    folder, collection = build(tmp_path / "x"), build(location)
    queries = vectors(300, seed=1)
    scores, rows = collection.search(queries, 10)
    expected_scores, expected_rows = folder.search(queries, 10)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-6)  # float32 sums of 32 products
    assert (scores.dtype, rows.dtype, len(collection)) == (np.float32, np.int64, N)
    assert [hit.text for hit in collection.hits(queries[0], 3)] == [hit.text for hit in folder.hits(queries[0], 3)]
    assert collection.texts([7, 0, 7]) == [sentences(N)[row] for row in (7, 0, 7)]
    kept, of_folder = collection.manifest, folder.manifest
    assert replace(kept, faiss="", files={}) == replace(of_folder, faiss="", files={})
    assert (collection.recall_at_10, kept.faiss.split()[0]) == (1.0, "milvus")
    assert manifest_at(location) == kept


@pytest.mark.parametrize("what", ["folder", "collection"])
def test_only_chosen_rows_are_answers(what, location, tmp_path):
    index = build(tmp_path / "x" if what == "folder" else location, count=200)
    chosen = np.array([150, 3, 77, 8])
    queries = vectors(20, seed=1)
    scores, rows = index.search(queries, 3, among=chosen)
    expected_scores, order = brute_force(queries, vectors(200)[chosen], 3)
    np.testing.assert_array_equal(rows, chosen[order])
    np.testing.assert_allclose(scores, expected_scores, atol=1e-6)
    assert index.search(queries, 10, among=chosen)[1].shape == (20, 4)
    assert index.hits(queries[0], 1, among=[8])[0].position == 8
    with pytest.raises(ValueError, match="row 200 does not exist"):
        index.search(queries, 3, among=[200])


@pytest.mark.parametrize("factory", ["HNSW32,Flat", "IVF8,SQ8"])
def test_approximate_types_find_most_and_say_how_many(factory, location):
    collection = build(location, factory)
    queries = vectors(50, seed=1)
    share = overlap(collection.search(queries, 10)[1], brute_force(queries, vectors(N), 10)[1])
    assert share >= 0.9
    assert collection.recall_at_10 == pytest.approx(share, abs=0.1)
    assert collection.manifest.factory == factory


def test_additions_are_those_of_the_folder_and_last(location, tmp_path):
    folder, collection = build(tmp_path / "x", count=300), build(location, count=300)
    more = vectors(700)[300:340]
    for index in (folder, collection):
        assert index.add(sentences(40, 300), more, corpus="more").tolist() == list(range(300, 340))
    queries = vectors(50, seed=1)
    for opened in (collection, None):
        if opened is None:
            collection.save(location)
            folder.save(tmp_path / "x")
        index = opened or open_at(location, FINGERPRINT)
        np.testing.assert_array_equal(index.search(queries, 10)[1], folder.search(queries, 10)[1])
        assert (len(index), index.manifest.rows, index.manifest.corpora) == (340, 340, ["demo", "more"])
    assert manifest_at(location).corpus_sha256 != build(tmp_path / "y", count=300).manifest.corpus_sha256
    assert index.add(["x"], more[:1]).tolist() == [340]


def test_an_index_that_lost_sentences_is_refused(location):
    build(location, count=200).add(sentences(20), vectors(220)[200:])  # never saved, and none of the 200
    client, alias = client_of(location), location.rpartition("/")[2]
    client.delete(alias, ids=list(range(50, 100)))
    with pytest.raises(IndexFolderError, match=r"holds 150 sentences, and its manifest says 200, so some were lost"):
        open_at(location)


def test_a_killed_addition_is_left_out_and_made_again(location):
    build(location, count=300).add(sentences(40), vectors(340)[300:])  # and never saved
    again = open_at(location)
    assert (len(again), again.manifest.rows) == (300, 300)
    queries = vectors(340)[300:]
    assert again.search(queries, 5)[1].max() < 300
    with pytest.raises(ValueError, match="row 300 does not exist"):
        again.texts([300])
    assert again.add(["new"], queries[:1]).tolist() == [300]
    again.save(location)
    last = open_at(location)
    assert (len(last), last.hits(queries[0], 1)[0].text) == (301, "new")


def test_who_reads_while_another_appends_gets_all_answers_and_deletes_nothing(location):
    build(location, count=200)
    reader, writer, query = open_at(location), open_at(location), vectors(1, seed=1)[0]
    _, expected = brute_force(query[None], vectors(200), 5)
    assert [hit.position for hit in reader.hits(query, 5)] == expected[0].tolist()
    near = query + vectors(20, seed=2) / 100
    for first in (200, 220):  # the second time a search knows that there are such rows
        writer.add(sentences(20, first), near)
        writer.save(location)
        assert [hit.position for hit in reader.hits(query, 5)] == expected[0].tolist()
    assert set(open_at(location).search(query[None], 20)[1][0]) <= set(range(200, 240))
    reader.add(["x"], near[:1])  # which takes the rows for nothing that a killed addition left
    assert open_at(location).texts([201, 239]) == [sentences(40, 200)[at] for at in (1, 39)]


def test_an_unfinished_build_is_no_index_and_the_old_one_stays(location):
    def broken() -> Any:
        yield from in_batches(97, 200)
        raise KeyboardInterrupt

    for held in (0, 1):
        with pytest.raises(KeyboardInterrupt):
            MilvusIndex.build(broken(), location, settings=SETTINGS)
        assert len(collections(location)) == held
        if not held:
            with pytest.raises(IndexFolderError, match=r"no such collection; build it with python -m scripts"):
                open_at(location)
            build(location, count=100)
    assert len(open_at(location)) == 100


def test_an_index_that_was_built_again_does_not_answer_from_the_new_one(location):
    opened = build(location, count=100)
    build(location, count=200)
    with pytest.raises(IndexFolderError, match="no such collection"):
        opened.hits(vectors(1)[0], 3)


def test_a_temporary_index_leaves_nothing(location):
    with MilvusIndex.temporary(in_batches(97, 100), location, settings=SETTINGS) as index:
        assert len(index) == 100
        with pytest.raises(ValueError, match="holds an index already; give a new name"):
            MilvusIndex.temporary(in_batches(97, 100), location, settings=SETTINGS).__enter__()
    assert collections(location) == []


def test_another_model_dimension_or_collection_is_refused(location, server):
    collection = build(location, count=100)
    with pytest.raises(IndexFolderError, match=r"built by promptbert \(a1b2a1b2…\), not simcse \(ffffffff…\): search"):
        open_at(location, "f" * 64, model="simcse")
    with pytest.raises(ValueError, match="vectors have 7 dimensions, not 32"):
        collection.search(np.ones((1, 7)), 3)
    with pytest.raises(ValueError, match="can only be saved there"):
        collection.save(f"{server}/elsewhere")
    with pytest.raises(ValueError, match="Milvus has no 'SQfp16'; choose Flat"):
        build(location, "SQfp16")
    with pytest.raises(ValueError, match="longer than the 65535 bytes"):
        collection.add(["é" * 40_000], vectors(1))


def test_a_foreign_collection_is_neither_opened_nor_replaced(location):
    client_of(location).create_collection(location.rpartition("/")[2], dimension=D)
    with pytest.raises(IndexFolderError, match="is not a complete index of this project"):
        open_at(location)
    with pytest.raises(ValueError, match="is a collection of another program; give the index another name"):
        build(location)


def test_a_server_that_is_away_is_one_line(tmp_path):
    nobody = f"milvus://127.0.0.1:{free_port()}/x"
    with pytest.raises(IndexFolderError, match="no Milvus server there"):
        open_at(nobody)
    with served(tmp_path / "data") as address:
        location = f"{address}/x"
        collection = build(location, count=100)
    with pytest.raises(IndexFolderError, match=r"^x: ") as refused:
        collection.search(vectors(1), 3)
    assert "\n" not in str(refused.value)


def test_a_bad_address_is_refused_before_anything_is_asked():
    with pytest.raises(ValueError, match="is not the address of a collection"):
        open_at(location_of("milvus://name:secret@localhost:19530/x"))
    with pytest.raises(ValueError, match="is not the address of a store, which begins with milvus://"):
        open_at(location_of("redis://localhost/a"))


def table(**more: Any) -> Corpus:
    """Rows with the names that a collection uses itself."""
    return Corpus.of(
        pa.table({"body": ["one ", "", "three"], "row": ["r1", "r2", "r3"], "n": [1, 2, None], **more}), "body"
    )


def rows_of(index: Any) -> list[tuple[int, int, str, dict[str, Any], str | None]]:
    hits = sorted(index.hits(vectors(1)[0], 9), key=lambda hit: hit.position)
    return [(hit.position, hit.row, hit.text, hit.fields, hit.corpus) for hit in hits]


def test_a_table_gives_the_rows_of_its_folder(location, tmp_path):
    for place in (tmp_path / "x", location):
        options: dict[str, Any] = {"settings": SETTINGS, "report": lambda rows: None}
        store_of(place).build([(table(), vectors(2))], place, **options)
        index = open_at(place, FINGERPRINT)
        assert index.columns == ["body", "row", "n"]
        assert rows_of(index) == [
            (0, 1, "one ", {"row": "r1", "n": 1}, None), (1, 3, "three", {"row": "r3", "n": None}, None),
        ]  # fmt: skip
        index.add(table().take([1]), vectors(1), corpus="b.csv")
        index.save(place)
        for opened in (index, open_at(place)):
            assert rows_of(opened)[1:] == [
                (1, 3, "three", {"row": "r3", "n": None}, "demo"), (2, 3, "three", {"row": "r3", "n": None}, "b.csv"),
            ]  # fmt: skip
        for other in (table(queue=["a"] * 3), ["a list"]):
            with pytest.raises(ValueError, match="the columns differ: the new rows"):
                index.add(other, vectors(len(other)))
        assert len(index) == 3
