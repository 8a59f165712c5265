"""A cell of a .csv or .tsv is the text that stands in the file, and no row is lost without a word."""

import gzip
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cse.corpus.labelled import labelled_texts
from cse.corpus.sentences import sentences
from cse.evaluation.classification import labelled_rows


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("separator", [",", "\t"])
def test_words_for_nothing_and_numbers_are_sentences(tmp_path: Path, separator: str) -> None:
    texts = ["NA", "None", "null", "nan", "007", "1.50", "True"]
    path = tmp_path / ("a.csv" if separator == "," else "a.tsv")
    written(path, "\n".join(separator.join(row) for row in [("id", "text"), *((str(0), text) for text in texts)]))
    assert list(sentences(path, "text")) == texts


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_lone_column_without_a_header_keeps_its_first_row(tmp_path: Path, name: str) -> None:
    for first in ("The first sentence.", "First!", "Two words"):
        assert list(sentences(written(tmp_path / name, f"{first}\nThe second.\n"))) == [first, "The second."]
    for header in ("sentence", "text", "Text", "SENTENCE"):
        assert list(sentences(written(tmp_path / name, f"{header}\nThe first.\n"))) == ["The first."]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_word_that_may_be_a_header_or_a_sentence_is_asked_about(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, "\nbody\nThe first.\n")
    with pytest.raises(ValueError, match=r"line 2: 'body' may be .* pass `column` 'body' .*\.txt"):
        list(sentences(path))
    assert list(sentences(path, "body")) == ["The first."]


@pytest.mark.parametrize(
    ("name", "header", "separator"),
    [
        ("a.csv", "id|text", "comma"),
        ("a.csv", "id\ttext", "comma"),
        ("a.tsv", "id,text", "tab"),
        ("a.tsv", "id;text", "tab"),
    ],
)
def test_a_header_with_other_separators_is_refused(tmp_path: Path, name: str, header: str, separator: str) -> None:
    path = written(tmp_path / name, f"{header}\n1 a dog runs\n")
    for column in (None, "text"):
        with pytest.raises(ValueError, match=f"line 1 has no {separator} in .*; separate cells by {separator}s"):
            list(sentences(path, column))


@pytest.mark.parametrize("header", ["id;text", '"id";"text"', '"my id";text', "\ufeff\nid;text"])
def test_a_csv_of_a_spreadsheet_with_decimal_commas_has_semicolons(tmp_path: Path, header: str) -> None:
    rows = '1,5;A dog, a cat.\n2,5;"One; two"\n3,5;"He said ""no""."\n'
    path = written(tmp_path / "a.csv", f"{header}\n{rows}")
    assert list(sentences(path, "text")) == ["A dog, a cat.", "One; two", 'He said "no".']
    with pytest.raises(ValueError, match=r"line 2 has 3 cells, not 2 .* or quote cells that hold a separator"):
        list(sentences(written(path, "id;text\n1;A dog; a cat.\n"), "text"))


def test_semicolons_in_sentences_separate_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "A dog; a cat.\nOne; two\n")
    assert list(sentences(path)) == ["A dog; a cat.", "One; two"]


def test_a_row_of_a_tsv_with_a_tab_in_quotes_is_refused_with_a_cure_that_helps(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", 'id\ttext\n1\t"A dog\ta cat"\n')
    with pytest.raises(ValueError, match=r"line 2 has 3 cells, .* replace tabs .* quotes do not protect in a \.tsv"):
        list(sentences(path, "text"))


def test_a_columns_number_is_refused_where_the_table_has_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,body\n1,A dog runs.\n")
    with pytest.raises(ValueError, match="line 1 looks like a header: id, body; give the column by its name"):
        list(sentences(path, "2"))
    assert list(sentences(written(path, "id,A dog runs.\n7,Yes\n"), "2")) == ["A dog runs.", "Yes"]
    assert list(sentences(written(path, "7,Yes\n8,No\n"), "2")) == ["Yes", "No"]


def test_a_quote_in_a_tsv_is_a_character(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", 'id\ttext\n1\t"Never closed\n2\tA 5" disk\n3\t"Closed"\n')
    assert list(sentences(path, "text")) == ['"Never closed', 'A 5" disk', '"Closed"']


def test_quoted_cells_keep_their_separators_quotes_and_newlines(tmp_path: Path) -> None:
    rows = '\ufeffid,text\r\n1,"One, two"\r\n\r\n2,"He said ""no""."\r\n3,"First line\nsecond line"\r\n4,A 5" disk\r\n'
    expected = ["One, two", 'He said "no".', "First line\nsecond line", 'A 5" disk']
    assert list(sentences(written(tmp_path / "a.csv", rows), "text")) == expected
    assert list(sentences(written(tmp_path / "a.csv.gz", gzip.compress(rows.encode())), "text")) == expected


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('id,text\n1,fine\n2,"never closed\n3,lost\n', 3),
        ('id,text\n1,"two\nlines"\n2,"closed" and gone on\n', 4),
        ("id,text\n1,fine\n2," + "x" * 200_000 + "\n", 3),
        ("id,text\n1,fine\r2,old Macintosh\r", 2),
    ],
    ids=["open", "stray", "large", "return"],
)
def test_a_row_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, content: str, line: int) -> None:
    path = written(tmp_path / "a.csv", content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: line {line}: ") as caught:
        list(sentences(path, "text"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize(("row", "cells"), [("2;two;more", 3), ("2", 1)])
def test_a_row_of_another_width_is_named_with_its_line(tmp_path: Path, name: str, row: str, cells: int) -> None:
    separator = "," if name == "a.csv" else "\t"
    path = written(tmp_path / name, f"id;text\n1;one\n\n{row}\n".replace(";", separator))
    with pytest.raises(ValueError, match=rf"{name}: line 4 has {cells} cells, not 2"):
        list(sentences(path, "text"))


def test_a_column_that_stands_twice_is_refused_where_it_is_wanted(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "text,text,body\na,b,c\n")
    assert list(sentences(path, "body")) == ["c"]
    for column in (None, "text"):
        with pytest.raises(ValueError, match=r"a\.csv: 2 columns are called 'text'"):
            list(sentences(path, column))


def test_a_text_file_has_no_column(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="leave out `column`"):
        list(sentences(written(tmp_path / "a.txt", "One.\n"), "text"))


LABELLED = "1\tStocks fall again\nsports\tteam\n\n2\t  The team wins \n"


def test_a_tsv_of_labels_and_texts_is_read_as_the_evaluation_reads_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", LABELLED)
    assert list(sentences(path)) == [text for _, text in labelled_rows(path)]
    assert list(sentences(path)) == ["Stocks fall again", "team", "The team wins"]
    compressed = written(tmp_path / "a.tsv.gz", gzip.compress(LABELLED.encode()))
    assert list(sentences(compressed)) == list(sentences(path))
    headed = written(tmp_path / "b.tsv", f"label\tText\n{LABELLED}")
    assert labelled_rows(headed) == labelled_rows(path)
    assert list(sentences(headed, "Text")) == list(sentences(path))


@pytest.mark.parametrize(
    "row", ["label\ttitle", "ticket id\tticket title", "1\tone word\tmore words", "a question?\tan answer"]
)
def test_a_row_that_may_be_a_header_is_asked_about(tmp_path: Path, row: str) -> None:
    with pytest.raises(ValueError, match="which column holds the sentences"):
        list(sentences(written(tmp_path / "a.tsv", f"{row}\n{row}\n")))
    if row.count("\t") == 1:
        with pytest.raises(ValueError, match="which column holds the sentences"):
            list(sentences(written(tmp_path / "a.csv", f"{row}\n{row}\n".replace("\t", ","))))


def test_a_named_column_and_a_csv_have_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "id\tticket title\n1\tThe printer is broken\n")
    assert list(sentences(path, "ticket title")) == ["The printer is broken"]
    with pytest.raises(ValueError, match="which column holds the sentences"):
        list(sentences(written(tmp_path / "a.csv", "1,Stocks fall again\n2,The team wins\n")))


def test_a_missing_cell_of_a_number_column_is_no_label(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b", "c"], "label": [1.0, float("nan"), None]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert [row.label for row in labelled_texts(tmp_path / "a.parquet", "text", "label").rows] == ["1.0", "", ""]
