"""Corpora and indexes at addresses of fsspec: equal to those in folders, and refused in one line when half there."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import numpy as np
import pytest
from command_line import ran, refused, run
from index_corpus import N, build, in_batches, sentences, vectors

from cse.corpus.corpus import Corpus
from index import BuildSettings, IndexFolderError, VectorIndex

TABLE = "id,text\n7,a cat sleeps\n8,\n9,the dog runs\n"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[fsspec.AbstractFileSystem]:
    """The files of memory://, and a cache of this test alone."""
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "cache"))
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.fixture
def served(store: fsspec.AbstractFileSystem, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address of a web server that serves it."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_table_at_an_address_is_read_as_a_file_and_anew_when_it_changes(store, served):
    folder, address = served
    (folder / "pets.csv").write_text(TABLE)
    store.pipe("bucket/pets.csv", TABLE.encode())
    for name in ("memory://bucket/pets.csv", f"{address}/pets.csv"):
        corpus = Corpus.read(name)
        assert (corpus.texts, corpus.rows.tolist(), corpus.cells("id")) == (
            ["a cat sleeps", "the dog runs"],
            [1, 3],
            ["7", "9"],
        )
        assert corpus.name == name
    changed = TABLE.replace("cat", "cow")  # of the same size
    (folder / "pets.csv").write_text(changed)
    store.pipe("bucket/pets.csv", changed.encode())
    for name in ("memory://bucket/pets.csv", f"{address}/pets.csv"):
        assert Corpus.read(name).texts[0] == "a cow sleeps"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("memory://bucket/bad.parquet", r"^cannot read 'memory://bucket/bad\.parquet' \(Parquet magic bytes"),
        ("memory://bucket/none.csv", r"^memory://bucket/none\.csv: no such file; check the address$"),
        ("http://127.0.0.1:9/a.csv", r"^http://127\.0\.0\.1:9/a\.csv: no"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_names_the_address(store, tmp_path, address, message):
    store.pipe("bucket/bad.parquet", b"PAR1 nothing")
    with pytest.raises(ValueError, match=message) as raised:
        Corpus.read(address)
    assert "\n" not in str(raised.value)
    assert str(tmp_path) not in str(raised.value)


def test_an_index_at_an_address_answers_as_one_in_a_folder_and_grows(store, tmp_path):
    here = build(tmp_path / "here")
    there = VectorIndex.build(in_batches(100), "memory://bucket/there", settings=BuildSettings())
    for mine, theirs in zip(here.search(vectors(5), 7), there.search(vectors(5), 7), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    there.add(sentences(2), vectors(2))
    there.save("memory://bucket/there")
    assert len(VectorIndex.load("memory://bucket/there")) == N + 2
    with pytest.raises(ValueError, match=r"^memory://bucket: holds something else; give an index another address$"):
        VectorIndex.holds_index("memory://bucket")
    with pytest.raises(IndexFolderError, match=r"^memory://bucket/none: no such file; check the address$"):
        VectorIndex.load("memory://bucket/none")


def test_an_index_that_was_half_written_is_refused(store, tmp_path, monkeypatch):
    address = "memory://bucket/index"
    VectorIndex.build(in_batches(100), address, settings=BuildSettings())
    whole = {name: store.cat_file(name) for name in store.ls("bucket/index", detail=False)}
    put = type(store).put_file

    def killed(self: object, local: str, remote: str, **options: object) -> None:
        if remote.endswith("manifest.json"):
            raise KeyboardInterrupt
        put(self, local, remote, **options)

    monkeypatch.setattr(type(store), "put_file", killed)
    with pytest.raises(KeyboardInterrupt):
        VectorIndex.build(list(in_batches(100))[:1], address, settings=BuildSettings())
    monkeypatch.setattr(type(store), "put_file", put)
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "another"))
    with pytest.raises(IndexFolderError, match=rf"^{address}: index\.faiss has \d+ bytes, not \d+"):
        VectorIndex.load(address)
    for name, content in whole.items():
        store.pipe(name, content)
    assert len(VectorIndex.load(address)) == N  # the damaged copy is not kept


def test_commands_take_addresses(store, bert_folder):
    store.pipe("bucket/pets.csv", TABLE.encode())
    address = "memory://bucket/index"
    store.pipe("bucket/index/index.faiss", b"an upload that was killed")
    ran("build_index", "memory://bucket/pets.csv", "--model", bert_folder, "--output", address)
    assert run("build_index", "memory://bucket/pets.csv", "--model", bert_folder, "--output", address).exit_code == 3
    done = ran("search", address, "the dog runs", "-k", 1, "--json")
    assert '"row": 3' in done.stdout
    assert '"id": "9"' in done.stdout


def test_the_cache_keeps_the_last_versions_of_an_address(store, tmp_path):
    for number in range(6):
        store.pipe("bucket/texts.txt", f"version {number}".encode())
        assert Corpus.read("memory://bucket/texts.txt").texts == [f"version {number}"]
    copies = sorted(path.read_text() for path in (tmp_path / "cache").rglob("texts.txt"))
    assert copies == ["version 4", "version 5"]


def test_keys_and_passwords_in_an_address_are_not_recorded(store, served, bert_folder, tmp_path):
    (served[0] / "pets.csv").write_text(TABLE)
    address = served[1].replace("http://", "http://me:secret@")
    done = ran(
        "build_index", f"{address}/pets.csv?signature=secret", "--model", bert_folder, "--output", tmp_path / "i"
    )
    assert VectorIndex.load(tmp_path / "i").manifest.corpora == [f"{served[1]}/pets.csv"]
    texts = Corpus.read(f"{address}/pets.csv?signature=secret&file=a.txt")
    assert (texts.name, len(texts), texts.text) == (f"{served[1]}/pets.csv", 2, "text")
    (served[0] / "four.csv").write_text("id,text\n1,the dog\n2,a cat\n3,the sun\n4,my card\n")
    ran("topics", f"{address}/four.csv?signature=secret", "--model", bert_folder, "--json", tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["data"] == f"{served[1]}/four.csv"
    done = run(
        "build_index", f"{address}/none.csv?signature=secret", "--model", bert_folder, "--output", tmp_path / "n"
    )
    assert "secret" not in done.output


def test_an_output_that_is_no_address_does_not_become_a_folder_called_after_one(bert_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("the dog\nthe cat\n")
    words = ("a.txt", "--model", bert_folder, "--output", "memory://bucket/v.npy")
    refused(run("encode", *words), 3, "memory:/bucket/", "is an address")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
