"""Indexes of tables: each hit has its row's number and its other columns, through edits, files and conditions."""

from __future__ import annotations

from pathlib import Path

import faiss
import pyarrow as pa
import pytest
from index_corpus import vectors

from cse.corpus import Corpus
from index import BuildSettings, Hit, VectorIndex
from index.folder import file_records
from index.manifest import Manifest, write_manifest

TICKETS = "id,label,body\nT-1,billing,  the parcel \nT-2,other,\nT-3,billing,=my card\nT-4,other,a cat\n"


def tickets(folder: Path, text: str = TICKETS, name: str = "tickets.csv") -> Corpus:
    (folder / name).write_text(text)
    return Corpus.read(folder / name, "body")


def indexed(corpus: Corpus, folder: Path) -> VectorIndex:
    settings = BuildSettings(corpus="tickets.csv")
    return VectorIndex.build([(corpus, vectors(len(corpus)))], folder, settings=settings)


def by_position(index: VectorIndex) -> list[Hit]:
    return sorted(index.hits(vectors(1)[0], len(index)), key=lambda hit: hit.position)


def shown(index: VectorIndex) -> list[tuple[int, int, str, dict]]:
    return [(hit.position, hit.row, hit.text, hit.fields) for hit in by_position(index)]


def test_a_folder_of_an_earlier_version_opens_with_its_texts_alone(tmp_path):
    """Written here by hand, as such a version wrote it."""
    texts, points = ["one", None, "three"], vectors(2)
    index = faiss.IndexFlatIP(points.shape[1])
    index.add(points)
    (tmp_path / "old").mkdir()
    faiss.write_index(index, str(tmp_path / "old" / "index.faiss"))
    schema = pa.schema([("text", pa.large_string())])
    with pa.OSFile(str(tmp_path / "old" / "texts.arrow"), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array(texts, pa.large_string())], schema=schema))
    facts = {"nprobe": None, "ef_search": None, "recall_at_10": None, "faiss": "1.9", "corpus_sha256": ""}
    manifest = Manifest.of(
        BuildSettings(corpus="old.txt"), dimension=points.shape[1], count=2, rows=3,
        files=file_records(tmp_path / "old"), **facts,
    )  # fmt: skip
    write_manifest(tmp_path / "old", manifest)
    opened = VectorIndex.load(tmp_path / "old")
    assert shown(opened) == [(0, 1, "one", {}), (2, 3, "three", {})]
    opened.remove([0])
    opened.save(tmp_path / "old")
    assert shown(VectorIndex.load(tmp_path / "old")) == [(2, 3, "three", {})]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ('{"body": "a", "n": 1}', "n,body\n2,b\n", [1, "2"]),  # numbers, then texts
        ("n,body\n2,b\n", '{"body": "a", "n": 1}', ["2", "1"]),
        ('{"body": "a", "n": {"k": [1]}}', '{"body": "b", "n": null}', [{"k": [1]}, None]),
    ],
)
def test_columns_of_another_type_are_converted(first, second, expected, tmp_path):
    kinds = [".jsonl" if text.startswith("{") else ".csv" for text in (first, second)]
    index = indexed(tickets(tmp_path, first, f"a{kinds[0]}"), tmp_path / "x")
    index.add(tickets(tmp_path, second, f"b{kinds[1]}"), vectors(1), corpus="b")
    index.save(tmp_path / "x")
    assert [hit.fields["n"] for hit in by_position(VectorIndex.load(tmp_path / "x"))] == expected


def test_values_of_several_types_do_not_fit_a_column_of_numbers(tmp_path):
    numbers = Corpus.of(pa.table({"body": ["a"], "n": [1]}), "body")
    index = indexed(numbers, tmp_path / "x")
    mixed = tickets(tmp_path, '{"body": "b", "n": 2}\n{"body": "c", "n": "unknown"}\n', "b.jsonl")
    with pytest.raises(ValueError, match="have values of several types in 'n', and the index int64; give the same"):
        index.add(mixed, vectors(2), corpus="b")
    assert len(index) == 1


def test_a_condition_picks_no_removed_rows(tmp_path):
    index = indexed(tickets(tmp_path), tmp_path / "x")
    index.remove([0])
    assert index.where("label = 'billing' or label is null").tolist() == [1]
    assert [hit.row for hit in index.hits(vectors(3)[2], 5, among=index.where("label = 'billing'"))] == [3]
    assert index.hits(vectors(1)[0], 5, among=index.where("label = 'none'")) == []
