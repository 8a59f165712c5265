"""A corpus holds each row of a file of any kind, with its number, its columns and its text as they stand."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zipfile
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, IterableDataset, Value

from cse.corpus import Corpus, formats
from cse.corpus import corpus as corpora
from cse.corpus.formats import Options
from cse.corpus.output import beside, csv_text, write_rows
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
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a"])
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
        ("mac.txt", "one dog\rtwo cats\r", ["one dog", "two cats"], "2 lines"),
        ("prose.txt", "A dog, a cat.\n\nHello.\n", ["A dog, a cat.", "Hello."], "2 lines"),
        ("comma.txt", 'a man, "0" rain\na dog, "1" rain\n', ['a man, "0" rain', 'a dog, "1" rain'], "2 lines"),
        ("short.txt", "hello there, friend\ngood day, all\n", ["hello there, friend", "good day, all"], "2 lines"),
        ("commas.txt", "Hello, world\nGood, morning\nYes, please\n", ["Hello, world", "Good, morning", "Yes, please"],
         "3 lines"),
        ("pairs.tsv", "a man plays chess\t0\na cat is asleep\t1\n", ["a man plays chess", "a cat is asleep"],
         "no header"),
        ("mark.csv", "Ticket No.,It says,Is it open?\n" + "009,a parcel is late again,no\n" * 9,
         ["a parcel is late again"] * 9, "texts from `It says`"),
        ("title.csv", "Export of May,\n\n,\nNr,What they say\n1,one dog and\n2,two cats in a row\n",
         ["one dog and", "two cats in a row"], "2 rows above the table left out"),
        ("price.csv", "Nr;Price, net;Text\n" + "".join(f"{n};18;The parcel is late again.\n" for n in range(80)),
         ["The parcel is late again."] * 80, "semicolons; texts from `Text`"),
        ("decimals.csv", "id;price;text\n" + "".join(f"{n};12,50;The parcel is late\n" for n in range(80)),
         ["The parcel is late"] * 80, "semicolons"),
        ("numbers.csv", "".join(f"{n};12,50;The parcel is late\n" for n in range(80)),
         ["The parcel is late"] * 80, "semicolons, no header"),
        ("bars.csv", "id|text\n" + "".join(f"{n}|Late, again\n" for n in range(80)), ["Late, again"] * 80, "bars"),
        ("labels.csv", "positive,A great phone\n" + "negative,The screen is dead\npositive,It works very well\n" * 9,
         ["A great phone", *["The screen is dead", "It works very well"] * 9], "no header; texts from `2`"),
        ("joined.csv", "label,What they say\n" + "a,The screen broke at once\nlabel,What they say\n" * 2,
         ["The screen broke at once", "What they say"] * 2, "texts from `What they say`"),
        ("names.tsv", "".join(f"ticket_{n}\tThe printer does not work\n" for n in range(9)),
         ["The printer does not work"] * 9, "no header"),
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
        ("utf-8-sig", "Ça va très bien"), ("utf-16", "Ça va très bien"), ("utf-16-le", "plain words here"),
        ("cp1252", "Où est la plage aujourd’hui ?"), ("cp1252", "El niño comió más. ¿Qué pasó mañana?"),
        ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy."), ("cp1251", "Привет как дела? Сегодня хорошая погода."),
        ("shift_jis", "今日は天気がいいですね。散歩に行きましょう。"), ("gb18030", "今天天气很好，我们去公园散步吧。"),
        ("euc_kr", "오늘은 날씨가 좋네요. 산책하러 갑시다."),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, None])
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
        "\n".join(map(json.dumps, ROWS)), json.dumps(ROWS), json.dumps(ROWS, indent=1), json.dumps({"data": ROWS}),
        json.dumps({key: [row[key] for row in ROWS] for key in ROWS[0]}),
        json.dumps({key: {str(n): row[key] for n, row in enumerate(ROWS)} for key in ROWS[0]}),
        json.dumps({"columns": list(ROWS[0]), "index": [0, 1], "data": [list(row.values()) for row in ROWS]}),
        json.dumps([list(ROWS[0]), *(list(row.values()) for row in ROWS)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.txt"])
def test_json_of_any_shape_keeps_its_values(tmp_path, content, name):
    corpus = Corpus.read(written(tmp_path / name, content))
    assert corpus.texts == ["hello there", "bye now"]
    assert [corpus.fields(row) for row in (0, 1)] == [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": []}]


@pytest.mark.parametrize("text", ['"one"\n"two"\n', '["one"]\n["two"]\n', '[["one"], ["two"]]'])
def test_rows_of_json_may_be_texts_and_lists_of_cells(tmp_path, text):
    assert Corpus.read(written(tmp_path / "a.jsonl", text)).texts == ["one", "two"]


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
    assert "parquet by its content, though named .csv" in Corpus.read(tmp_path / "a.csv").understood()
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "text", "when"], [1, "hello there", pd.Timestamp("2024-01-02")], [], [2, "007", 1.5]):
        book.active.append(row)
    book.create_sheet("other").append(["text", "x"])
    book.save(tmp_path / "c.xlsx")
    corpus = Corpus.read(tmp_path / "c.xlsx")
    assert corpus.rows.tolist() == [1, 3]
    assert corpus.fields(0) == {"id": "1", "when": "2024-01-02"}
    assert (corpus.texts[1], corpus.fields(1)["when"]) == ("007", "1.5")
    with pytest.raises(ValueError, match="has no sheet 'x'; it has Sheet, other"):
        Corpus.read(tmp_path / "c.xlsx", options=Options.of(["sheet=x"]))
    for name in ("c.xlsx", "a.csv", "b.bin"):
        packed = written(tmp_path / f"{name}.gz", gzip.compress((tmp_path / name).read_bytes()))
        assert Corpus.read(packed).texts == Corpus.read(tmp_path / name).texts
    with zipfile.ZipFile(tmp_path / "c.xlsx") as whole, zipfile.ZipFile(tmp_path / "cut.xlsx", "w") as cut:
        for name in whole.namelist():
            content = whole.read(name)
            cut.writestr(name, content[:-100] if name.endswith("sheet1.xml") else content)
    with pytest.raises(
        ValueError, match=r"cut\.xlsx' \(unclosed token.*\); open it in a spreadsheet, and save it again"
    ):
        Corpus.read(tmp_path / "cut.xlsx")
    renamed = written(tmp_path / "c.csv", (tmp_path / "c.xlsx").read_bytes())
    assert Corpus.read(renamed).texts == corpus.texts


def test_a_text_that_looks_like_the_start_of_a_day_stays_as_it_is(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["text", "when"], ["the cat sleeps on the mat", "2024-01-02T00:00:00"], ["a dog barks at night", "x"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert Corpus.read(tmp_path / "a.xlsx").fields(0) == {"when": "2024-01-02T00:00:00"}


def test_a_cell_beyond_the_columns_of_a_sheet_is_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "text"], *[[1, "a b"]] * 400, [2, "c d", "lost"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(ValueError, match="row 401 has 3 cells, and the first 400 rows at most 2"):
        Corpus.read(tmp_path / "a.xlsx")


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
    table = data.with_format("arrow")[:]
    for cells, labels in (([1, 7, None], ["Sports", "7", ""]), (["x", "y", "z"], ["x", "y", "z"])):
        changed = table.set_column(1, "label", pa.array(cells)).replace_schema_metadata(table.schema.metadata)
        assert Corpus.of(changed, labels="label").labels == labels


def test_a_sheet_is_read_below_its_title_and_the_first_empty_one_is_passed(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
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
    with pytest.raises(ValueError, match="skip is 9, but the sheet begins with 5 rows; give fewer"):
        Corpus.read(tmp_path / "a.xlsx", options=Options.of(["skip=9"]))
    with pytest.raises(ValueError, match="skip is 'x'; give the number of lines"):
        Options.of(["skip=x"])


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


def test_a_backslash_before_a_quote_is_an_escape_only_where_the_table_cannot_be_read_without(tmp_path):
    path = tmp_path / "escaped.csv"
    path.write_text(
        'body,label\n"She said \\"yes, now\\" and left the room",a\n"The folder C:\\\\temp is full now",b\n'
    )
    assert Corpus.read(path, "body").texts == [
        'She said "yes, now" and left the room',
        "The folder C:\\temp is full now",
    ]
    path.write_text('body,label\n"The folder C:\\temp\\",a\n"A ""doubled"" quote",b\n')
    assert Corpus.read(path, "body").texts == ["The folder C:\\temp\\", 'A "doubled" quote']
    path.write_text('body,label\n"She said \\"no\\" and left",a\n"The folder C:\\temp\\new is full",b\n')
    assert Corpus.read(path, "body").texts == ['She said "no" and left', "The folder C:\\temp\\new is full"]


def test_a_quote_too_many_is_named_with_its_line_and_a_header_in_quotes_is_one(tmp_path):
    for cell in ("the parcel is late", "the parcel, of today, is late"):
        rows = "".join(f'{row},"{cell}"\n' for row in range(20))
        with pytest.raises(ValueError, match=r"line 22: cannot read this row \(',' expected after"):
            Corpus.read(written(tmp_path / "a.csv", f'id,text\n{rows}21,"He said "hi", loudly"\n22,"rain"\n'))
    quoted = Corpus.read(written(tmp_path / "r.tsv", '"text"\t"label"\n"the parcel"\t"a"\n"a card"\t"b"\n'))
    assert (quoted.texts, quoted.columns) == (["the parcel", "a card"], ["text", "label"])


def test_what_our_commands_write_of_a_table_without_names_is_read_as_such(tmp_path):
    table = Corpus.read(written(tmp_path / "h.tsv", "bill\tmy card was declined\nbill\tmy parcel is late now\n"))
    further = {name: pa.array(["1", "2"]) for name in ("row", "words")}
    for added in ({}, further):
        write_rows(tmp_path / "u.csv", beside(added, table.table))
        again = Corpus.read(tmp_path / "u.csv", "2")
        assert (again.texts, again.columns) == (table.texts, [*added, "1", "2"])


def test_long_questions_above_numbers_and_dates_are_a_header(tmp_path):
    names = (
        "Timestamp,How satisfied were you with the service today?,What could we do better next time in your opinion?"
    )
    rows = "2026/01/01 10:00,4,the staff was friendly but slow\n2026/01/02 11:00,3,parking was hard to find at noon\n"
    corpus = Corpus.read(written(tmp_path / "a.csv", f"{names}\n{rows}"))
    assert (len(corpus), corpus.text) == (2, names.rpartition(",")[2])
    assert len(Corpus.read(written(tmp_path / "b.csv", rows), "3")) == 2


def test_a_sheet_is_read_whole_whatever_size_it_says_it_has(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "text", "label"], ["01", "the dog runs away", "x"], ["02", "a cat is here", "y"]):
        book.active.append(row)
    book.save(tmp_path / "right.xlsx")
    with zipfile.ZipFile(tmp_path / "right.xlsx") as right, zipfile.ZipFile(tmp_path / "small.xlsx", "w") as small:
        for name in right.namelist():
            assert (b'ref="A1:C3"' in right.read(name)) == name.endswith("sheet1.xml")
            small.writestr(name, right.read(name).replace(b'ref="A1:C3"', b'ref="A1:B2"'))
    corpus = Corpus.read(tmp_path / "small.xlsx", labels="label")
    assert (corpus.texts, corpus.labels) == (["the dog runs away", "a cat is here"], ["x", "y"])


def test_a_first_line_of_json_may_be_long(tmp_path):
    lines = [{"text": "word " * 4000, "id": 1}, {"text": "a cat is here", "id": 2}]
    content = "".join(f"{json.dumps(line)}\n" for line in lines)
    for name in ("a.jsonl", "a.json", "a.txt", "a"):
        assert Corpus.read(written(tmp_path / name, content)).texts == [line["text"] for line in lines]


@pytest.mark.parametrize("where", ["file", "memory"])
def test_columns_that_the_first_rows_of_json_lack_are_there(tmp_path, where):
    plain, late = {"text": "a cat", "m": None}, {"text": "a dog", "m": {"x": "an owl"}, "label": "z"}
    rows = [plain] * 16_384 + [late, plain]
    path = written(tmp_path / "a.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    source = path if where == "file" else rows
    corpus = Corpus.of(source, labels="label")
    assert (corpus.labels[16_383:], len(corpus)) == (["", "z", ""], 16_386)
    nested = Corpus.of(source, "m.x")
    assert (nested.texts, nested.rows.tolist()) == (["an owl"], [16_385])
    assert Corpus.of(corpus, "m.x").texts == ["an owl"]
    assert corpus.cells("m.x")[16_383:] == ["", "an owl", ""]
    first = [{"text": "a cat", "m": {"x": "a bat"}}] * 16_384 + [{"text": "a dog"}]
    assert len(Corpus.of(first, "m.x")) == 16_384
    assert len(Corpus.of(source, "m.x.y")) == 0  # it leads nowhere
    for name in ("labels", "text.x", "q.x"):
        with pytest.raises(ValueError, match=f"no column {name!r}; it has text, m, label"):
            Corpus.of(source, "text", name)


def test_a_column_with_a_dot_and_a_number_is_not_another_of_its_name(tmp_path):
    survey = Corpus.read(written(tmp_path / "a.csv", "Q1,Q1.1,Q1.2\nthe dog runs away,2,3\na cat is here,3,4\n"), "Q1")
    assert survey.texts == ["the dog runs away", "a cat is here"]
    for source in (written(tmp_path / "b.csv", "a,a,a.2\n1,2,3\n"), pa.table([[1], [2], [3]], ["a", "a", "a.2"])):
        assert Corpus.of(source, "a.2").columns == ["a", "a.3", "a.2"]
        with pytest.raises(ValueError, match="several columns are called 'a'; give each another name"):
            Corpus.of(source, "a")


def test_an_error_names_a_file_of_this_folder_and_its_own_cure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.csv", "id,text\n1,a dog, a cat, rain\n2,x\n3,y\n4,z\n5,w\n6,v\n")
    with pytest.raises(ValueError, match=r"^a\.csv: line 2 has 4 cells, not 2 as the first row; quote cells that hold"):
        Corpus.read("./a.csv")


def test_an_empty_batch_of_arrow_holds_no_row(tmp_path):
    schema = pa.schema([("text", pa.string())])
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), schema) as writer:
        for texts in ([], ["a cat"], [], ["a dog"]):
            writer.write_batch(pa.record_batch([pa.array(texts, pa.string())], schema=schema))
    corpus = Corpus.read(tmp_path / "a.arrow")
    assert (corpus.texts, corpus.rows.tolist()) == (["a cat", "a dog"], [1, 2])


@pytest.mark.parametrize("first", ["[1]", "[ ]", "{}", "[TODO] buy milk"])
def test_a_text_file_may_begin_with_brackets(tmp_path, first):
    notes = Corpus.read(written(tmp_path / "notes.txt", f"{first}\nThe first note is about cats.\n"))
    assert notes.texts == [first, "The first note is about cats."]


def test_labels_that_differ_in_capitals_alone_are_named(tmp_path):
    table = "text,topic\na b,Billing\nc d,billing\ne f,Parcel\ng h,\n"
    corpus = Corpus.read(written(tmp_path / "a.csv", table), "text", "topic")
    assert corpus.understood().endswith("; labels that differ in capitals alone: 'Billing' and 'billing'")
    assert "capitals" not in Corpus.read(tmp_path / "a.csv", "text").understood()
    assert corpus.labels == ["Billing", "billing", "Parcel", ""]


def test_what_is_no_corpus_in_memory_is_said_and_a_series_of_polars_is_read():
    frame = pd.concat([pd.DataFrame({"text": ["a cat", "a dog"]}), pd.DataFrame({"text": ["x", "y"]})], axis=1)
    with pytest.raises(ValueError, match="several columns are called 'text'; give each another name"):
        Corpus.of(frame)
    assert Corpus.of(pa.chunked_array([["a cat"], ["a dog"]])).texts == ["a cat", "a dog"]
    with pytest.raises(ValueError, match=r"data is a DatasetDict; give .* one split of a dataset"):
        Corpus.of(DatasetDict({"train": Dataset.from_dict({"text": ["a"]})}))


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
    ("semi.csv", "id;text\n1;A dog; a cat.\n", r"line 2 has 3 cells, not 2 as the first row; quote cells"),
    ("many.csv", "id,text\n1,a,b\n", r"line 2 has 3 cells, not 2 as the first row; quote cells"),
    ("one.csv", "text\nHello, you\n", r"not 1 as the first row; .* one column \(delimiter=tab\), or skip lines"),
    ("title.csv", "# by a tool\n#\nid,text\n1,a b\n", r"line 3 has 2 cells, .* \(skip=2\)"),
    ("mixed.csv", "id,text\r\n1,a\n2,b c\r3,d\n", r"line 3: .*carriage return within it\); end every row"),
    ("open.csv", 'id,text\n1,"a, b"\n2,"never, closed\n3,"lost, too"\n', r"line [34]: cannot read this row"),
    ("prose.csv", "A dog, a cat and a man.\nHello.\nOne, two.\n", r"may be a text a line; say which: format=text"),
    ("body.csv", "body\nThe first.\n", r"its first line 'body' may be the column's name or a sentence"),
    ("two.csv", "title,body\nThe title of a text,The body of the text\nAnother long title,Another long body\n",
     r"which column holds the texts\? Pass `column`, one of title, body"),
    ("binary.xlsx", b"\x7fELF\0\1\2\3 a b c", r"is no \.xlsx file, or a damaged one; save it again"),
    ("words.xlsx", "one line of words\n", r"is no \.xlsx file, or a damaged one; save it again"),
    ("binary.txt", b"\x7fELF\0\1\2\3 a b c", r"line 1 holds a NUL byte"),
    ("photo.png", b"\x89PNG\r\n\x1a\n", r"is a picture, not a text file; save its text as .txt"),
    ("paper.pdf", b"%PDF-1.4\n1 0 obj", r"is a PDF document, not a text file; save its text as .txt"),
    ("clone.csv", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n", "run git lfs pull"),
    ("login.csv", "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", "is a web page, not a table; download"),
    ("old.xls", b"\xd0\xcf\x11\xe0" + b"\0" * 600, r"workbook of the old format .xls; save it as .xlsx or .csv"),
    ("wide.csv", ",".join(f"c{n}" for n in range(3000)) + "\n" + "," * 2999 + "\n", "3,000 columns"),
    ("cell.csv", "id,text\n1,fine\n2," + "x" * 10_000_001 + "\n", "line 3"),
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


def test_a_condition_picks_rows_as_pandas_does(tmp_path, caplog):
    rows = pd.DataFrame(
        {"id": ["007", "7", "8"], "price": ["9", "10.5", ""], "label": ["a", "b", "it's"], "text": list("xyz")}
    )
    rows.to_csv(tmp_path / "a.csv", index=False)
    table = Corpus.read(tmp_path / "a.csv").table
    for condition, positions in {
        "price > 9.5": [1],
        "id = '007'": [0],
        "id = '7'": [1],
        "price is null": [2],
        "label in ('a', 'b')": [0, 1],
        "label = 'it''s' or price < 10": [0, 2],
        "not label like 'a%'": [1, 2],
        "\"label\" == 'b'": [1],
    }.items():
        assert rows_where(table, condition).tolist() == positions, condition
    assert not caplog.records
    rows_where(pa.table({"n": ["3", "10", "x"]}), "n > 2")
    assert "'n' is compared as text, by which '9' > '10', since it holds 'x'" in caplog.text
    notes: list[str] = []
    rows_where(pa.table({"n": ["3,5", "10", "x"], "m": ["a", "b", ""]}), "n > 2 or m is null", note=notes.append)
    assert [note.split("; ")[1] for note in notes] == [
        "for numbers write all of them with a decimal point, and nothing beside them", "write \"m\" = ''"
    ]  # fmt: skip
    notes.clear()
    padded = pa.table({"q": ["Billing", "Billing  ", "x "], "text": ["a", "b", "b"]})
    assert rows_where(padded, "q = 'Billing' and text != ''", note=notes.append).tolist() == [0]
    assert notes == ["'q' has cells such as 'Billing  ' with blanks; trim(\"q\") compares without them"]
    notes.clear()
    assert rows_where(padded, "trim(q) = 'Billing'", note=notes.append).tolist() == [0, 1]
    assert notes == []
    capitals = pa.table({"q": ["Billing", "billing", "x"]})
    assert rows_where(capitals, "q = 'billing'", note=notes.append).tolist() == [1]
    assert notes == ["'q' has 'Billing', too; lower(\"q\") = 'billing' meets any capitals"]
    notes.clear()
    assert rows_where(capitals, "q = 'BILLING'", note=notes.append).tolist() == []
    assert notes[0] == "'q' has 'Billing'; lower(\"q\") = 'billing' meets any capitals"
    both = pa.table({"q": ["Billing", "billing", "billing "]})
    notes.clear()
    assert rows_where(both, "q = 'billing'", note=notes.append).tolist() == [1]
    (said,) = notes
    assert rows_where(both, said.partition("; ")[2].partition(" meets")[0]).tolist() == [0, 1, 2]
    notes.clear()
    assert rows_where(capitals, "lower(q) = 'billing'", note=notes.append).tolist() == [0, 1]
    assert rows_where(capitals, "q != 'x'", note=notes.append).tolist() == [0, 1]
    assert notes == []
    assert rows_where(padded, "trim(q) = 'Billing'", note=notes.append).tolist() == [0, 1]
    with pytest.raises(ValueError, match="give one such as text = 'b', of"):
        rows_where(padded, "label = 1")
    corpus = Corpus.of([{"text": f"row {number}", "queue": "Billing"} for number in range(4)])
    with pytest.raises(ValueError, match="give one such as queue = 'Billing', of"):
        rows_where(corpus.table, "label = 1")
    for condition in (
        "colour = 1",
        "label = ",
        "1); drop table rows; --",
        "load_extension('x')",
        "id in (with recursive t(n) as (select 1 union all select n + 1 from t) select n from t)",
    ):
        with pytest.raises(ValueError, match=r"cannot read the condition .* columns id, price, label, text"):
            rows_where(table, condition)
    for condition, reason in (("price >", "it ends too early"), ("(price > 1", "it ends too early"),
                              ("label = 'a", "a text has no quote at its end"),
                              ("label = high", "there is no column high; a text stands in single quotes, as 'high'"),
                              ):  # fmt: skip
        with pytest.raises(ValueError, match=reason):
            rows_where(table, condition)
    for condition in ("\"due dates\" > '2026'", 'label = "b"'):  # SQLite takes an unknown name in quotes for a text
        with pytest.raises(ValueError, match=r"no column is called .*; write a text in single quotes, or give one of"):
            rows_where(table, condition)
    ids = pa.table({"id": ["9400111899223100000001", "9400111899223100000002"], "position": ["nurse", "cook"]})
    assert rows_where(ids, "id = '9400111899223100000002' and position = 'cook'").tolist() == [1]
    assert rows_where(pa.table({"score": ["0.12345678901234567", "1e-05"]}), "score > 0.001").tolist() == [0]
    notes.clear()
    rows_where(pa.table({"price": ["$900", "$1,200", "$80"]}), "price > 100", note=notes.append)
    assert notes[0].startswith("'price' is compared as text, by which '9' > '10', since it holds '$1,200'")
    notes.clear()
    days = pa.table({"day": ["2024-12-30", "26.01.2024", "2025-01-30"], "text": ["a", "b", "c"]})
    assert rows_where(days, "day >= '2025-01-01' and day < '2026'", note=notes.append).tolist() == [2]
    assert notes[0].startswith("'day' is compared as text, and '26.01.2024' is out of order there; write dates as")
    for condition in ("day > 2025-01-01", "day = '2025-01-01' or day < 1/2/2025"):
        with pytest.raises(ValueError, match=r"without quotes is a calculation; write '(2025-01-01|1/2/2025)'"):
            rows_where(days, condition)
    notes.clear()
    assert not len(rows_where(pa.table({"read": ["True", "False", "True"]}), "read = true", note=notes.append))
    assert notes == ["'read' holds texts, such as 'True', 'False'"]
    capitals = pa.table({"Status": ["x", "y"], "status": ["y", "x"], "group": ["a", "a"]})
    with pytest.raises(ValueError, match="'Status', 'status' differ in capitals alone"):
        rows_where(capitals, "status = 'x'")
    with pytest.raises(ValueError, match="give one such as \"group\" = 'a', of"):
        rows_where(capitals, "group = 'a'")
    with pytest.raises(ValueError, match="give one such as \"group\" = 'a', of"):
        rows_where(capitals.append_column("label", pa.array([["x"], ["x"]])), "lable = 'x'")
    umlaut = pa.table({"Änderung": ["x", "y"], "änderung": ["y", "x"]})
    assert rows_where(umlaut, "\"änderung\" = 'x' and Änderung = 'y'").tolist() == [1]
    with pytest.raises(ValueError, match='no column is called "änderung"'):
        rows_where(umlaut.select([0]), "\"änderung\" <> 'x'")
    prices = pa.table({"a": ["1,5", "10,25", ""], "b": ["1,500", "2", "3"], "empty": ["", "", ""]})
    assert rows_where(prices, "a > 2").tolist() == [1]
    assert rows_where(prices, "b = '1,500' and empty is null").tolist() == [0]
    rows = [{"text": "a", "n": 3, "ok": True, "m": {"x": 1}}, {"text": "b", "n": None, "ok": False, "m": {}}]
    for condition in ("n >= 3 and ok", "json_extract(m, '$.x') = 1"):
        assert rows_where(Corpus.of(rows).table, condition).tolist() == [0]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_what_leaves_is_what_came_in(tmp_path, suffix):
    texts = [
        "=1+1", "@shop; it's", "a\nb", '"q"', "tab\there", " end ", "-5 degrees", "'", "a,b;c|d", "\u2028x", "naïve",
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
    for word in ("delimiter", "delimiter=", "delimeter=;", "header=maybe", "format=pdf", "delimiter=ab"):
        with pytest.raises(ValueError, match=word.split("=")[0]):
            Options.of([word])
    with pytest.raises(ValueError, match=r"'delimiter=;'; give .*, each once"):
        Options.of(["delimiter=tab", "delimiter=;"])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["format=text", "skip=1"], "is read as text, which has no skip; leave out skip="),
        (["sheet=a"], "is read as csv, which has no sheet"),
        (["encoding=base64"], "unknown encoding 'base64'"),
        (["skip=9"], "skip is 9, and no row comes after"),
    ],
)
def test_an_option_is_obeyed_or_refused(tmp_path, words, error):
    with pytest.raises(ValueError, match=error):
        Corpus.read(written(tmp_path / "a.csv", "id,text\n1,a b\n"), options=Options.of(words))


def test_rows_are_taken_with_their_cells(tmp_path):
    corpus = Corpus.read(written(tmp_path / "a.csv", "id,text\n1,a\n2,\n3,b\n4,a\n"))
    part = corpus.take([1, 2])
    assert (part.texts, part.rows.tolist(), part.cells("id")) == (["b", "a"], [3, 4], ["3", "4"])
    assert sorted(corpus.distinct_sample(5, 0).rows) == [1, 3]
    np.testing.assert_array_equal(corpus.distinct_sample(1, 0).rows, corpus.distinct_sample(1, 0).rows)


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


def test_the_usual_name_of_texts_may_be_in_capitals(tmp_path):
    assert Corpus.read(written(tmp_path / "a.csv", "ID,Text,Note\n1,a b,c d\n")).texts == ["a b"]
    assert Corpus.read(written(tmp_path / "b.csv", "Text,text\na b,c d\n")).texts == ["c d"]


def test_a_header_with_a_name_twice_is_a_header(tmp_path):
    corpus = Corpus.read(written(tmp_path / "a.csv", "id;text;;id\n1;a cat sleeps here;x;9\n;;;\n"))
    assert (corpus.columns, corpus.texts) == (["id", "text", "3", "id.2"], ["a cat sleeps here"])
    assert corpus.fields(0) == {"id": "1", "3": "x", "id.2": "9"}
    thrice = Corpus.read(written(tmp_path / "b.csv", "text,text.2,text\none,two,three\n"), "text.2")
    assert (thrice.columns, thrice.texts) == (["text", "text.2", "text.3"], ["two"])


def test_a_text_that_is_stored_once_for_many_rows_does_not_fill_the_memory(tmp_path, monkeypatch):
    texts = ["x" * 10_000, "y", "x" * 10_000] * 100
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    monkeypatch.setattr("cse.corpus.source.MAX_BATCH_BYTES", 100_000)
    batches = list(formats.read(str(tmp_path / "a.parquet")).batches)
    assert [text for _, batch in batches for text in batch.column(0).to_pylist()] == texts
    assert [int(number) for numbers, _ in batches for number in numbers] == list(range(1, 301))
    assert max(batch.nbytes for _, batch in batches) < 110_000
    with pytest.raises(ValueError, match=r"a\.parquet: unpacks to more than 1 MB; give a part of it"):
        Corpus.read(tmp_path / "a.parquet", max_bytes=1 << 20)


def test_a_cell_with_a_carriage_return_comes_back_from_every_table(tmp_path):
    texts = ["a\rb", "\r", "a\r\nb", "plain, with a comma"]
    for suffix in (".csv", ".tsv"):
        write_rows(tmp_path / f"a{suffix}", pa.table({"id": list("1234"), "text": texts}))
        assert Corpus.read(tmp_path / f"a{suffix}", "text").table.column("text").to_pylist() == texts
    (tmp_path / "b.csv").write_text(csv_text(["id", "text"], enumerate(texts)), newline="")
    assert Corpus.read(tmp_path / "b.csv").table.column("text").to_pylist() == texts


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
