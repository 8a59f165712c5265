"""A corpus holds each row of a file of any kind, with its number, its columns and its text as they stand."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, IterableDataset, Value

from cse.corpus import Corpus
from cse.corpus import corpus as corpora
from cse.corpus.formats import Options
from cse.corpus.output import beside, write_rows
from cse.corpus.where import rows_where

TABLE = [
    ("id", "label", "body"),
    ("T-1", "billing", "my card was declined today"),
    ("T-2", "parcel", "where is my parcel now?"),
]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def delimited(delimiter: str) -> str:
    return "".join(delimiter.join(row) + "\n" for row in TABLE)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_the_delimiter_is_told_from_the_content_whatever_the_name(tmp_path, delimiter, name):
    corpus = Corpus.read(written(tmp_path / name, delimited(delimiter)))
    assert corpus.text == "body"
    assert corpus.texts == [row[2] for row in TABLE[1:]]
    assert corpus.fields(1) == {"id": "T-2", "label": "parcel"}
    assert corpus.rows.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "content", "texts", "line"),
    [
        ("sep.csv", "sep=;\nid;text\n1;hello there\n", ["hello there"], "semicolons"),
        ("sts.csv", "cap\t01\t2.5\tA girl, tall, brushes.\ncap\t02\t3.6\tMen play, too.\n", None, "tabs, no header"),
        ("short.csv", "label,text,,\nham,see you,,\nspam,call now,\nham,thanks\n",
         ["see you", "call now", "thanks"], "com"),
        ("quotes.tsv", 'id\ttext\n1\t"Never closed\n2\tA 5" disk\n', ['"Never closed', 'A 5" disk'], "quotes are char"),
        ("quoted.csv", 'id,text\n1,"One, two"\n2,"He said ""no""."\n3,"a\nb"\n',
         ["One, two", 'He said "no".', "a\nb"], ""),
        ("blank_first.csv", "\ufeff\n \nid;text\n1;NA\n2;null\n", ["NA", "null"], "semicolons"),
        ("decimal.csv", "id;text\n1,5;A dog, a cat.\n2,5;one\n", ["A dog, a cat.", "one"], "semicolons"),
        ("blank.csv", "id,text\n\n1,a b\n\n2,\n3,  c \n", ["a b", "  c "], "1 row without a text"),
        ("prose.txt", "A dog, a cat.\n\nHello.\n", ["A dog, a cat.", "Hello."], "2 lines"),
        ("commas.txt", "Hello, world\nGood, morning\nYes, please\n", ["Hello, world", "Good, morning", "Yes, please"],
         "3 lines"),
        ("pairs.tsv", "a man plays chess\t0\na cat is asleep\t1\n", ["a man plays chess", "a cat is asleep"],
         "no header"),
        ("mark.csv", "Ticket No.,It says,Is it open?\n" + "009,a parcel is late again,no\n" * 9,
         ["a parcel is late again"] * 9, "texts from `It says`"),
        ("title.csv", "Export of May,\n\n,\nNr,What they say\n1,one dog and\n2,two cats in a row\n",
         ["one dog and", "two cats in a row"], "2 rows above the table left out"),
        ("capitals.csv", "ID,Text,Note\n1,a b,c d\n", ["a b"], "texts from `Text`"),
        ("bracket.txt", "[laughs] hello\n{x} is set\n", ["[laughs] hello", "{x} is set"], "2 lines"),
    ],
)  # fmt: skip
def test_tables_as_people_write_them(tmp_path, name, content, texts, line):
    corpus = Corpus.read(written(tmp_path / name, content), None if texts else "4")
    assert corpus.texts == (texts or ["A girl, tall, brushes.", "Men play, too."])
    assert line in corpus.understood()


def test_a_first_row_that_may_be_a_header_is_asked_about(tmp_path):
    path = written(tmp_path / "a.tsv", "hello there\thi\ngood morning\tyo\nsee you\tbye\n")
    with pytest.raises(ValueError, match=r"first row may name the columns: hello there, hi; .*header=yes or header=no"):
        Corpus.read(path)
    assert Corpus.read(path, "1").texts == ["hello there", "good morning", "see you"]
    assert Corpus.read(path, "hello there").texts == ["good morning", "see you"]
    assert Corpus.read(path, "2", options=Options.of(["header=no"])).texts == ["hi", "yo", "bye"]


def test_a_text_file_counts_its_lines_and_a_table_its_rows(tmp_path):
    assert Corpus.read(written(tmp_path / "a.txt", "one\n\nthree\n")).rows.tolist() == [1, 3]
    corpus = Corpus.read(written(tmp_path / "a.csv", "id,text\n1,the parcel\n2,\n3,my card\n4,a cat\n"))
    assert corpus.rows.tolist() == [1, 3, 4]
    assert corpus.fields(1) == {"id": "3"}
    assert corpus.table.num_rows == 4


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8-sig", "Ça va très bien"),
        ("utf-16", "Ça va très bien"),
        ("cp1252", "Où est la plage aujourd’hui ?"),
        ("cp1251", "Привет как дела? Сегодня хорошая погода."),
        ("shift_jis", "今日は天気がいいですね。散歩に行きましょう。"),
        ("gb18030", "今天天气很好，我们去公园散步吧。"),
    ],
)
def test_the_encoding_is_told_from_the_bytes(tmp_path, encoding, text):
    corpus = Corpus.read(written(tmp_path / "a.csv", f"id\ttext\n1\t{text}\n".encode(encoding)))
    assert corpus.texts == [text]


def test_lines_of_two_encodings_are_read_each_in_its_own(tmp_path):
    corpus = Corpus.read(written(tmp_path / "a.csv", b"id,text\n1,caf\xc3\xa9\n2,caf\xe9 au lait\n3,plain\n"))
    assert corpus.texts == ["café", "café au lait", "plain"]
    assert "utf-8 and windows-1252" in corpus.understood()


def test_what_cannot_be_decoded_is_read_and_its_rows_are_named(tmp_path):
    lines = [b"id,text", *(b"%d,caf\xe9 au lait" % row for row in range(1, 9)), b"9,a \x9d b", b"10,fine"]
    corpus = Corpus.read(written(tmp_path / "a.csv", b"\n".join(lines)))
    assert corpus.texts[7:] == ["café au lait", "a \ufffd b", "fine"]
    assert "windows-1252, 1 row with undecoded characters (9)" in corpus.understood()
    assert Corpus.read(tmp_path / "a.csv", options=Options.of(["encoding=latin-1"])).texts[8] == "a \x9d b"


@pytest.mark.parametrize("pack", [gzip.compress, None])
def test_packed_files_are_told_from_their_content(tmp_path, pack):
    path, content = tmp_path / "a.csv", delimited(",").encode()
    if pack is None:
        with zipfile.ZipFile(path := tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("b.csv", content)
    else:
        path.write_bytes(pack(content))  # type: ignore[operator]
    assert Corpus.read(path).fields(0) == {"id": "T-1", "label": "billing"}


ROWS = [{"id": 1, "text": "hello there", "tags": ["a"]}, {"id": 2, "text": "bye now", "tags": []}]


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(map(json.dumps, ROWS)),
        json.dumps(ROWS, indent=1),
        json.dumps({"data": ROWS}),
        json.dumps({key: [row[key] for row in ROWS] for key in ROWS[0]}),
        json.dumps({key: {str(n): row[key] for n, row in enumerate(ROWS)} for key in ROWS[0]}),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.txt"])
def test_json_of_any_shape_keeps_its_values(tmp_path, content, name):
    corpus = Corpus.read(written(tmp_path / name, content))
    assert corpus.texts == ["hello there", "bye now"]
    assert [corpus.fields(row) for row in (0, 1)] == [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": []}]


def test_nested_texts_have_a_path_and_later_rows_may_have_other_kinds(tmp_path, monkeypatch):
    monkeypatch.setattr("cse.corpus.source.BATCH_ROWS", 2)
    rows = [{"m": {"content": f"text {row}", "n": [{"c": "x"}]}, "v": "a" if row < 3 else row} for row in range(5)]
    rows[4]["late"] = True
    path = written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    corpus = Corpus.read(path, "m.content")
    assert corpus.texts == [f"text {row}" for row in range(5)]
    assert [corpus.fields(row)["v"] for row in range(5)] == ["a", "a", "a", 3, 4]
    assert [corpus.fields(row)["late"] for row in (0, 4)] == [None, True]
    assert Corpus.read(path, "m.n.0.c").texts == ["x"] * 5
    with pytest.raises(ValueError, match=r"which column holds the texts\? .*m\.content"):
        Corpus.read(path)


def test_a_large_table_is_mapped_from_a_file_and_is_the_same(tmp_path, monkeypatch):
    path = written(tmp_path / "a.csv", "id,text\n" + "".join(f"{row},some text {row}\n" for row in range(1000)))
    expected = Corpus.read(path)
    monkeypatch.setattr(corpora, "MAX_MEMORY_BYTES", 1000)
    monkeypatch.setattr("cse.corpus.source.BATCH_ROWS", 64)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    corpus = Corpus.read(path)
    assert corpus.table.equals(expected.table)
    assert not list((tmp_path / "t").iterdir())
    assert [len(block) for block in corpus.blocks(400)] == [400, 400, 200]


def test_parquet_arrow_and_xlsx_are_told_from_their_content(tmp_path):
    table = pa.table({"id": [1, 2], "text": ["hello there", None]})
    pq.write_table(table, tmp_path / "a.csv")
    feather.write_feather(table, tmp_path / "b.bin")
    for name in ("a.csv", "b.bin"):
        corpus = Corpus.read(tmp_path / name)
        assert (corpus.texts, corpus.fields(0), corpus.without_text) == (["hello there"], {"id": 1}, 1)
    book = openpyxl.Workbook()
    for row in (["id", "text", "when"], [1, "hello there", pd.Timestamp("2024-01-02")], [], [2, "007", 1.5]):
        book.active.append(row)
    book.create_sheet("other").append(["text", "x"])
    book.save(tmp_path / "c.xlsx")
    corpus = Corpus.read(tmp_path / "c.xlsx")
    assert corpus.rows.tolist() == [1, 3]
    assert corpus.fields(0) == {"id": "1", "when": "2024-01-02"}
    assert (corpus.texts[1], corpus.fields(1)["when"]) == ("007", "1.5")


def test_a_folder_that_datasets_saved_is_read_and_another_names_a_file(tmp_path):
    saved = Dataset.from_dict({"text": list("abc"), "n": [1, 2, 3]})
    DatasetDict(train=saved).save_to_disk(tmp_path / "set", num_shards={"train": 2})
    corpus = Corpus.read(tmp_path / "set" / "train")
    assert (corpus.texts, corpus.fields(2)) == (["a", "b", "c"], {"n": 3})
    with pytest.raises(ValueError, match=r"is a folder, not a file; give a file, such as .*set/train"):
        Corpus.read(tmp_path / "set")


def test_labels_that_datasets_numbered_have_their_names(tmp_path):
    labels = Features({"text": Value("string"), "label": ClassLabel(names=["World", "Sports"])})
    data = Dataset.from_dict({"text": list("abc"), "label": [1, -1, 0]}, features=labels)
    data.to_parquet(tmp_path / "a.parquet")
    data.save_to_disk(tmp_path / "set")
    for source in (data, data.to_iterable_dataset(), tmp_path / "a.parquet", tmp_path / "set"):
        assert Corpus.of(source, labels="label").labels == ["Sports", "", "World"]


def test_a_sheet_is_read_below_its_title_and_the_first_empty_one_is_passed(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.create_sheet("Tickets")
    head = (["Export of May"], [], ["No.", "When", "It says"])
    for row in (*head, ["01", 2.5, "the dog_x000D_\nruns away"], ["02", 3, "a cat is here"]):
        sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    corpus = Corpus.read(tmp_path / "a.xlsx")
    assert corpus.text == "It says"
    assert corpus.row(1) == {"row": 2, "text": "a cat is here", "fields": {"No.": "02", "When": "3"}}
    assert "sheet 'Tickets', 1 row above the table left out" in corpus.understood()
    below = Corpus.read(tmp_path / "a.xlsx", "3", options=Options.of(["skip=3", "header=no"]))
    assert below.texts == corpus.texts == ["the dog\r\nruns away", "a cat is here"]  # as Excel stores such a line's end


LONG = "id\ttext\n" + "".join(f"{row}\tticket {row} is about a late parcel\n" for row in range(401))


@pytest.mark.parametrize("row", ['402\t"my card\nwas declined"\n403\ta cat\n', '402\t"He said ""no"" and left"\n'])
def test_a_quoted_cell_after_many_lines_without_one_is_asked_about(tmp_path, row):
    path = written(tmp_path / "a.tsv", LONG + row)
    with pytest.raises(ValueError, match="line 403: a quoted cell, and none before it; say quotes=yes, or quotes=no"):
        Corpus.read(path)
    assert Corpus.read(path, options=Options(quotes=True)).texts[401:] == [*pd.read_csv(path, sep="\t")["text"][401:]]
    assert Corpus.read(path, options=Options(quotes=False)).texts[401].startswith('"')
    characters = Corpus.read(written(tmp_path / "b.tsv", LONG + '402\t"No" is what he said\n403\t5" of rain\n'))
    assert characters.texts[-2:] == ['"No" is what he said', '5" of rain']


def test_a_quote_too_many_is_named_with_its_line_and_a_header_in_quotes_is_one(tmp_path):
    rows = "".join(f'{row},"the parcel, of today, is late"\n' for row in range(20))
    with pytest.raises(ValueError, match=r"line 22: cannot read this row \(',' expected after"):
        Corpus.read(written(tmp_path / "a.csv", f'id,text\n{rows}21,"He said "hi", loudly"\n22,"rain"\n'))
    quoted = Corpus.read(written(tmp_path / "r.tsv", '"text"\t"label"\n"the parcel"\t"a"\n"a card"\t"b"\n'))
    assert (quoted.texts, quoted.columns) == (["the parcel", "a card"], ["text", "label"])


def test_what_is_in_memory_is_a_corpus_too():
    frame = pd.DataFrame({"id": [7, 8], "text": ["a dog", None], "mixed": [1, "x"]})
    assert (corpus := Corpus.of(frame)).texts == ["a dog"]
    assert corpus.fields(0) == {"id": 7, "mixed": 1}
    assert Corpus.of(["a", "", " b "]).texts == ["a", " b "]
    assert list(Corpus.of(["a", "", " b "])) == ["a", "b"]  # as they are encoded
    assert Corpus.of(["a", "", " b "]).rows.tolist() == [1, 3]
    assert Corpus.of([{"id": 3, "body": "q"}], "body").fields(0) == {"id": 3}
    assert Corpus.of(corpus) == corpus or Corpus.of(corpus).texts == corpus.texts
    for data in ("a", 3, {"text": ["a"]}, [1, 2]):
        with pytest.raises(ValueError, match=r"no such file|give a list of texts"):
            Corpus.of(data)


BAD_FILES = [
    ("many.csv", "id,text\n1,a,b\n", r"line 2 has 3 cells, not 2 as the first row; quote cells"),
    ("one.csv", "text\nHello, you\n", r"not 1 as the first row; .* one column \(delimiter=tab\), or skip lines"),
    ("open.csv", 'id,text\n1,"a, b"\n2,"never, closed\n3,"lost, too"\n', r"line [34]: cannot read this row"),
    ("prose.csv", "A dog, a cat and a man.\nHello.\nOne, two.\n", r"may be a text a line; say which: format=text"),
    ("body.csv", "body\nThe first.\n", r"its first line 'body' may be the column's name or a sentence"),
    ("twice.csv", "text,x,text\na b,1,c d\n", "several columns are called 'text'"),
    ("two.csv", "title,body\nThe title of a text,The body of the text\nAnother long title,Another long body\n",
     r"which column holds the texts\? Pass `column`, one of title, body"),
    ("binary.txt", b"\x7fELF\0\1\2\3 a b c", r"line 1 holds a NUL byte"),
    ("old.xls", b"\xd0\xcf\x11\xe0" + b"\0" * 600, r"workbook of the old format .xls; save it as .xlsx or .csv"),
    ("wide.csv", ",".join(f"c{n}" for n in range(3000)) + "\n" + "," * 2999 + "\n", "3,000 columns"),
    ("bomb.txt.gz", gzip.compress((b"dog " * 10_000 + b"\n") * 5_100), "unpacks to more than 200 times its size"),
    ("bad.jsonl", '{"text": "one"}\n{"text": \n', "line 2: cannot read it as JSON"),
    ("cut.csv.gz", gzip.compress(b"id,text\n" + bytes(range(97, 123)) * 500)[:-40], "damaged compressed file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "error"), BAD_FILES, ids=[row[0] for row in BAD_FILES])
def test_bad_input_is_one_line_with_the_cure(tmp_path, name, content, error):
    with pytest.raises(ValueError, match=error) as caught:
        Corpus.read(written(tmp_path / name, content))
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_what_leaves_is_what_came_in(tmp_path, suffix):
    texts = [
        "=1+1", "@shop; it's", "a\nb", '"q"', "tab\there", " end ", "-5 degrees", "'", "a,b;c|d", "\u2028x", "a\rb",
    ]  # fmt: skip
    table = pa.table({"id": list(map(str, range(len(texts)))), "text": texts})
    write_rows(tmp_path / f"a{suffix}", table)
    corpus = Corpus.read(tmp_path / f"a{suffix}")
    assert corpus.texts == texts
    assert [corpus.fields(row)["id"] for row in range(len(texts))] == table.column("id").to_pylist()
    write_rows(tmp_path / "b.csv", table, for_spreadsheets=True)
    assert Corpus.read(tmp_path / "b.csv").texts == ["'=1+1", "'@shop; it's", *texts[2:6], "'-5 degrees", *texts[7:]]


def test_options_are_understood_or_refused():
    assert Options.of(["delimiter=tab", "header=no"]) == Options(delimiter="\t", header=False)
    for word in ("delimeter=;", "header=maybe", "format=pdf", "delimiter=ab", "skip=x"):
        with pytest.raises(ValueError, match=word.split("=")[0]):
            Options.of([word])


def test_a_text_leaves_with_its_row_and_the_source_has_no_column_of_a_path(tmp_path):
    lines = ['{"id": 1, "message": {"content": " hi "}}', '{"id": 2}', '{"id": 3, "message": {"content": "ho"}}']
    corpus = Corpus.read(written(tmp_path / "a.jsonl", "\n".join(lines)), "message.content")
    assert corpus.row(1) == {"row": 3, "text": "ho", "fields": {"id": 3, "message": {"content": "ho"}}}
    write_rows(tmp_path / "b.jsonl", corpus.source_table)
    missing = {"id": 2, "message": None}
    assert [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()] == [
        json.loads(lines[0]), missing, json.loads(lines[2])
    ]  # fmt: skip
    assert corpus.with_text.numbers.tolist() == [1, 3]


def test_the_columns_of_a_source_keep_their_names_beside_further_ones():
    table = pa.table({"Row": ["x"], "cse_row": ["y"], "text": ["z"]})
    further = {"row": pa.array([1]), "group": pa.array([2])}
    assert beside(further, table).schema.names == ["cse_cse_row", "group", "Row", "cse_row", "text"]
    assert beside(further, table, last=True).to_pylist() == [
        {"Row": "x", "cse_row": "y", "text": "z", "cse_cse_row": 1, "group": 2}
    ]


def test_a_header_with_a_name_twice_is_a_header(tmp_path):
    corpus = Corpus.read(written(tmp_path / "a.csv", "id;text;;id\n1;a cat sleeps here;x;9\n;;;\n"))
    assert (corpus.columns, corpus.texts) == (["id", "text", "3", "id.2"], ["a cat sleeps here"])
    assert corpus.fields(0) == {"id": "1", "3": "x", "id.2": "9"}


def test_fields_are_values_that_json_can_hold():
    day = datetime(2026, 11, 2, tzinfo=timezone.utc)
    table = pa.table({"text": ["one"], "a": [float("nan")], "b": [float("inf")], "c": [day], "d": [[{"on": day}]]})
    fields = Corpus.of(table).fields(0)
    assert json.loads(json.dumps(fields, allow_nan=False)) == {
        "a": None, "b": "inf", "c": str(day), "d": [{"on": str(day)}],
    }  # fmt: skip


def test_a_stream_that_never_ends_is_a_corpus_of_its_first_rows():
    def rows() -> Iterator[dict[str, Any]]:
        for number in count():
            assert number < 10, "read beyond the limit"
            yield {"id": number, "text": f"text {number}"}

    corpus = Corpus.of(IterableDataset.from_generator(rows), limit=5)
    assert corpus.texts == [f"text {number}" for number in range(5)]
    assert corpus.row(4) == {"row": 5, "text": "text 4", "fields": {"id": 4}}


def test_a_condition_picks_rows_as_pandas_does(tmp_path, caplog):
    rows = pd.DataFrame(
        {"id": ["007", "7", "8"], "price": ["9", "10.5", ""], "label": ["a", "b", "it's"], "text": list("xyz")}
    )
    rows.to_csv(tmp_path / "a.csv", index=False)
    table = Corpus.read(tmp_path / "a.csv").table
    for condition, positions in {
        "price > 9.5": [1],
        "id = '7'": [1],
        "price is null": [2],
        "label in ('a', 'b')": [0, 1],
        "label = 'it''s' or price < 10": [0, 2],
        "not label like 'a%'": [1, 2],
        "\"label\" == 'b'": [1],
    }.items():
        assert rows_where(table, condition).tolist() == positions, condition
    assert not caplog.records
    ids = pa.table({"id": ["9400111899223100000001", "9400111899223100000002"]})  # as numbers they would be one
    assert rows_where(ids, "id = '9400111899223100000002'").tolist() == [1]
    prices = pa.table({"a": ["1,5", "10,25", ""], "b": ["1,500", "2", "3"]})
    assert rows_where(prices, "a > 2").tolist() == [1]
    assert rows_where(prices, "b = '1,500'").tolist() == [0]
    nested = [{"text": "a", "n": 3, "ok": True, "m": {"x": 1}}, {"text": "b", "n": None, "ok": False, "m": {}}]
    for condition in ("n >= 3 and ok", "json_extract(m, '$.x') = 1"):
        assert rows_where(Corpus.of(nested).table, condition).tolist() == [0]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("colour = 1", "cannot read the condition .* columns label, day"),
        ("1); drop table rows; --", "cannot read the condition"),
        ("load_extension('x')", "cannot read the condition"),
        ("label in (with recursive t(n) as (select 1 union all select n + 1 from t) select n from t)", "cannot read"),
        ('label = "b"', "no column is called"),  # SQLite takes an unknown name in quotes for a text
        ("day > 2025-01-01", "without quotes is a calculation"),
    ],
)
def test_a_condition_that_means_something_else_or_does_more_is_refused(condition, message):
    with pytest.raises(ValueError, match=message):
        rows_where(pa.table({"label": ["a", "b"], "day": ["2024-12-30", "2025-01-30"]}), condition)


@pytest.mark.parametrize(
    ("cells", "condition", "note"),
    [
        (["3", "10", "x"], "n > 2", "'n' is compared as text, by which '9' > '10', since it holds 'x'"),
        (["$900", "80"], "n > 10", "'n' is compared as text"),
        (["2024-12-30", "26.01.2024"], "n >= '2025-01-01'", "'n' is compared as text"),
        (["a", ""], "n is null or n = 'a'", "an empty cell of 'n' is no NULL"),
        (["True", "False", "True"], "n = true", "'n' holds texts, such as 'True', 'False'"),
        (["2024-12-30", "2025-01-30"], "n >= '2025-01-01'", ""),
    ],
)
def test_a_condition_that_may_pick_other_rows_is_noted(cells, condition, note):
    notes: list[str] = []
    rows_where(pa.table({"n": cells}), condition, note=notes.append)
    assert [line.startswith(note) for line in notes] == [True] * bool(note)
