"""Text of every kind comes in alike, and bad files are named with their line."""

import gzip
import json
import lzma
from pathlib import Path

import pytest

from cse.corpus.sentences import examples, load_examples, scored_pairs, sentences, text_lines

LINES = ["One sentence.", "", "  Another, with spaces.  ", "Emoji 🎸 and עברית."]
KEPT = ["One sentence.", "Another, with spaces.", "Emoji 🎸 and עברית."]


def test_plain_gzip_and_xz_files_give_the_same_sentences(tmp_path: Path) -> None:
    raw = "\n".join(LINES).encode()
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + raw)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "c.txt.xz").write_bytes(lzma.compress(raw.replace(b"\n", b"\r\n")))
    for name in ("a.txt", "b.txt.gz", "c.txt.xz"):
        assert list(sentences(tmp_path / name)) == KEPT


def test_tables_give_the_named_column(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "a.csv").write_text('id,body\n1,"One, quoted"\n2,Two\n')
    (tmp_path / "b.tsv").write_text("id\tbody\n1\tOne, quoted\n2\tTwo\n")
    (tmp_path / "c.jsonl").write_text('{"id": 1, "body": "One, quoted"}\n{"id": 2, "body": "Two"}\n')
    pq.write_table(pa.table({"id": [1, 2], "body": ["One, quoted", "Two"]}), tmp_path / "d.parquet")
    for name in ("a.csv", "b.tsv", "c.jsonl", "d.parquet"):
        assert list(sentences(tmp_path / name, "body")) == ["One, quoted", "Two"], name
        with pytest.raises(ValueError, match="no column 'text'; it has id, body"):
            list(sentences(tmp_path / name, "text"))
        with pytest.raises(ValueError, match="Pass `column`, one of id, body"):
            list(sentences(tmp_path / name))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"good\n" * 2000 + b"\xff\xfe\n", "line 2001 is not UTF-8 .* iconv -f windows-1252 -t utf-8 OLD > NEW"),
        ("good\n".encode("utf-16"), "is UTF-16; convert it, for example by iconv -f utf-16 -t utf-8 OLD > NEW"),
        (b"good\ngood\nbad\x00\n", "line 3 holds a NUL byte"),
    ],
)
def test_binary_and_wrongly_encoded_files_are_named_with_their_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(text_lines(tmp_path / "a.txt"))


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
        list(sentences(tmp_path / name))


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
        list(sentences(tmp_path / "none.csv"))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"text\n" * 9000)[:30])
    with pytest.raises(ValueError, match=r"cut\.csv\.gz"):
        list(sentences(tmp_path / "cut.csv.gz"))
    (tmp_path / "notes.md").write_text("Any other suffix is text.\n")
    assert list(sentences(tmp_path / "notes.md")) == ["Any other suffix is text."]
    with pytest.raises(ValueError, match="nobody/nothing: no such file, and the data hub cannot be reached"):
        list(sentences("nobody/nothing"))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize(
    "content",
    [b"text\n\xff\xfe\n", b"text\nfine\nb,c,d\te\tf\n", b"\x00\x01\x02" * 50, b"text\nfine\n" * 20000 + b"x\x00\n"],
    ids=["latin", "ragged", "binary", "late"],
)
def test_damaged_tables_are_one_line_that_names_the_file(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")) as caught:
        list(sentences(tmp_path / name, "text"))
    assert "\n" not in str(caught.value)


def test_examples_are_counted_once_limited_and_read_again_when_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("\n".join(LINES))
    assert load_examples(str(file), None, False)["0"] == KEPT
    assert load_examples(str(file), None, False, limit=2)["0"] == KEPT[:2]
    file.write_text("Changed now.\n")
    assert load_examples(str(file), None, False)["0"] == ["Changed now."]
    file.write_text("\n \n")
    with pytest.raises(ValueError, match="no sentence in it"):
        load_examples(str(file), None, False)


def test_supervised_examples_come_from_bare_tsv_and_named_columns(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("p\te\tc\nP\tE\tC\n")
    (tmp_path / "b.csv").write_text("sent0,sent1,hard_neg\np,e,c\nP,E,C\n")
    (tmp_path / "c.csv").write_text("sent0,sent1\np,e\n")
    expected = [("p", "e", "c"), ("P", "E", "C")]
    assert list(examples(tmp_path / "a.tsv", supervised=True)) == expected
    assert list(examples(tmp_path / "b.csv", supervised=True)) == expected
    assert list(examples(tmp_path / "c.csv", supervised=True)) == [("p", "e")]
    (tmp_path / "d.tsv").write_text("p\te\tc\nP\tE\n")
    with pytest.raises(ValueError, match="line 2 has 2 columns"):
        list(examples(tmp_path / "d.tsv", supervised=True))
    (tmp_path / "e.txt").write_text("p\n")
    with pytest.raises(ValueError, match="needs two or three columns"):
        list(examples(tmp_path / "e.txt", supervised=True))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\ta\n", "line 1 has 2 columns"),
        ("1\ta\tb\nx\ta\tb\n", "line 2: the score 'x' is no number"),
        ("nan\ta\tb\n", "not finite"),
        ("\n", "no pair in it"),
    ],
)
def test_malformed_pairs_are_named_with_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "dev.tsv").write_text(content)
    with pytest.raises(ValueError, match=message):
        scored_pairs(tmp_path / "dev.tsv")


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.json", "empty.parquet", "empty.csv", "empty.tsv", "empty.txt"])
def test_an_empty_file_holds_no_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert list(sentences(tmp_path / name)) == []


def test_a_number_names_a_column_of_a_table_without_a_header(tmp_path: Path) -> None:
    file = tmp_path / "rows.tsv"
    file.write_text("x\ta text here\ny\tanother text\n")
    assert list(sentences(file, "2")) == ["a text here", "another text"]
    with pytest.raises(ValueError, match="no column '3'; it has 1, 2"):
        list(sentences(file, "3"))
    file.write_text("2\t1\nfirst\tsecond\n")  # a header of numbers stays one
    assert list(sentences(file, "2")) == ["first"]
