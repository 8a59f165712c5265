"""Text of every kind comes in alike, and bad files are named with their line."""

import gzip
import json
import lzma
from pathlib import Path

import pytest

from cse.corpus import Corpus
from cse.corpus.lines import text_lines


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("a.jsonl", ["a", "b"], "list"),
        ("a.jsonl", {"a": "b"}, "dict"),
        ("a.parquet", ["a", "b"], "list"),
        ("a.parquet", {"a": "b"}, "dict"),
        ("a.parquet", b"a", "bytes"),
    ],
)
def test_a_value_that_is_no_text_is_named_with_its_row_and_type(tmp_path: Path, name: str, value: object, kind: str):
    import pyarrow as pa
    import pyarrow.parquet as pq

    if name == "a.parquet":
        pq.write_table(pa.table({"text": [None, value]}), tmp_path / name)
    else:
        (tmp_path / name).write_text("".join(json.dumps({"text": text}) + "\n" for text in (None, value)))
    with pytest.raises(ValueError, match=rf"{name}: row 2 has a {kind} as 'text', not text; give a column of texts"):
        len(Corpus.read(tmp_path / name))


def test_missing_files_folders_and_damaged_archives_are_named(tmp_path: Path) -> None:
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"a\n" * 9000)[:30])
    (tmp_path / "cut.txt.xz").write_bytes(lzma.compress(b"a\n" * 9000)[:40])
    whole = gzip.compress(bytes(range(10, 127)) * 900)
    (tmp_path / "hurt.txt.gz").write_bytes(whole[:40] + b"\xff" * 8 + whole[48:])
    for name, message in {
        "none.txt": "no such file",
        "": "is a folder",
        "cut.txt.gz": "damaged compressed",
        "cut.txt.xz": "damaged compressed",
        "hurt.txt.gz": "damaged compressed",
    }.items():
        with pytest.raises(ValueError, match=message):
            list(text_lines(tmp_path / name))
    with pytest.raises(ValueError, match="no such file"):
        len(Corpus.read(tmp_path / "none.csv"))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"text\n" * 9000)[:30])
    with pytest.raises(ValueError, match=r"cut\.csv\.gz"):
        len(Corpus.read(tmp_path / "cut.csv.gz"))
    (tmp_path / "notes.md").write_text("Any other suffix is text.\n")
    assert Corpus.read(tmp_path / "notes.md").texts == ["Any other suffix is text."]
    with pytest.raises(ValueError, match="nobody/nothing: no such file, and the data hub cannot be reached"):
        len(Corpus.read("nobody/nothing"))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize(
    "content",
    [b"text\nfine\nb,c,d\te\tf\n", b"\x00\x01\x02" * 50, b"text\nfine\n" * 20000 + b"x\x00\n"],
    ids=["ragged", "binary", "late"],
)
def test_damaged_tables_are_one_line_that_names_the_file(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")) as caught:
        len(Corpus.read(tmp_path / name, "text"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.json", "empty.parquet", "empty.csv", "empty.tsv", "empty.txt"])
def test_an_empty_file_holds_no_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert Corpus.read(tmp_path / name).texts == []
