"""Exports of an index, as datasets, pandas and NumPy read them; copies without paths of the machine that built it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import load_from_disk
from index_corpus import build, sentences, vectors
from model_files import run_card

from cse.corpus import Corpus
from cse.files.writing import write_folder
from cse.models.export import EXPORT
from cse.vectors import unit_rows
from index import BuildSettings, VectorIndex
from index.export import copy_index, fill
from index.manifest import read_manifest

COUNT = 60


def exported(index: VectorIndex, to: str, folder: Path, points: dict | None = None) -> Path:
    write_folder(folder, lambda target: fill(index, to, target, points), EXPORT)
    return folder


@pytest.mark.parametrize("factory", ["Flat", "HNSW32,Flat"])
def test_a_dataset_finds_what_the_index_finds(tmp_path, factory):
    index = build(tmp_path / "index", factory, COUNT)
    folder = exported(index, "datasets", tmp_path / "out")
    dataset = load_from_disk(str(folder))
    dataset.load_faiss_index("vector", str(folder / "vectors.faiss"))
    assert dataset["text"][:] == sentences(COUNT)
    np.testing.assert_allclose(np.array(dataset["vector"][:]), unit_rows(vectors(COUNT)), atol=1e-6)
    for query in unit_rows(vectors(4, seed=1)).astype(np.float32):
        scores, examples = dataset.get_nearest_examples("vector", query, k=5)
        hits = index.hits(query, 5)
        assert examples["text"] == [hit.text for hit in hits]
        np.testing.assert_allclose(scores, [hit.score for hit in hits], atol=1e-6)
    assert sentences(1)[0] in run_card(folder)


def test_removed_sentences_are_left_out_and_the_numbers_fit(tmp_path):
    index = build(tmp_path / "index", "Flat", COUNT)
    index.remove([0, 7])
    folder = exported(index, "datasets", tmp_path / "out")
    dataset = load_from_disk(str(folder))
    assert dataset["row"][:3] == [2, 3, 4]
    dataset.load_faiss_index("vector", str(folder / "vectors.faiss"))
    _, examples = dataset.get_nearest_examples("vector", np.array(dataset[10]["vector"], dtype=np.float32), k=1)
    assert examples["text"] == [dataset[10]["text"]]


def test_a_type_that_keeps_row_numbers_is_refused_after_removals(tmp_path):
    index = build(tmp_path / "index", "IVF4,Flat", COUNT)
    index.remove([3])
    with pytest.raises(ValueError, match="rows were removed from this IVF4,Flat index"):
        exported(index, "datasets", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    table = pd.read_parquet(exported(index, "parquet", tmp_path / "out") / "index.parquet")
    left = [row for row in range(COUNT) if row != 3]
    assert table["row"].tolist() == [row + 1 for row in left]
    np.testing.assert_allclose(np.stack(table["vector"]), unit_rows(vectors(COUNT))[left], atol=1e-6)


TABLE = pa.table(
    {
        "row": ["r1", "r2"], "body": ["one\ttext", ""], "vector": [1.5, 2.5], "x": [None, 1], "text": ["a", "b"],
        "cse_row": [True, False],
    }
)  # fmt: skip


@pytest.mark.parametrize("form", ["parquet", "datasets"])
def test_an_export_has_all_columns_under_the_users_names(form, tmp_path):
    twice = pa.concat_tables([TABLE, TABLE])
    settings = BuildSettings(model="m", corpus="a.csv")
    index = VectorIndex.build([(Corpus.of(twice, "body"), np.eye(2, 4))], tmp_path / "x", settings=settings)
    index.add(Corpus.of(TABLE, "body"), np.eye(1, 4, 2), corpus="/home/me/b.csv")
    folder = exported(index, form, tmp_path / "out", {"x": [0, 1, 2], "y": [3, 4, 5]} if form == "parquet" else None)
    table = pd.read_parquet(folder / "index.parquet") if form == "parquet" else load_from_disk(str(folder)).to_pandas()
    own = ["cse_vector", "cse_x", "y"] if form == "parquet" else ["cse_vector"]
    assert list(table) == ["cse_cse_row", "corpus", "body", "row", "vector", "x", "text", "cse_row", *own]
    assert table["cse_cse_row"].tolist() == [1, 3, 1]
    assert table["corpus"].tolist() == ["a.csv", "a.csv", "b.csv"]
    assert table["body"].tolist() == ["one\ttext"] * 3
    assert (table["row"].tolist(), table["vector"].tolist()) == (["r1"] * 3, [1.5] * 3)
    np.testing.assert_array_equal(np.stack(table["cse_vector"]), np.eye(3, 4))
    assert run_card(folder)
    assert "--text body --vector cse_vector" in (folder / "README.md").read_text() or form == "datasets"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/home/me/clients/acme/secret.txt", "secret.txt"), ("clients\\acme\\notes", "notes"),
        ("EXISTING/notes", "notes"), ("me/texts-1.0@0123abcd", "me/texts-1.0@0123abcd"),
    ],
)  # fmt: skip
def test_a_copy_to_pass_on_tells_the_names_of_corpora_but_not_where_they_lay(typed, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "EXISTING" / "notes").mkdir(parents=True)
    VectorIndex.build(
        [(["one", "two", "three"], np.eye(3))], tmp_path / "mine", settings=BuildSettings(model="m", corpus=typed)
    )
    assert copy_index(tmp_path / "mine", tmp_path / "copy").corpora == [told]
    assert read_manifest(tmp_path / "copy").corpora == [told]
    assert read_manifest(tmp_path / "mine").corpora == [typed]
