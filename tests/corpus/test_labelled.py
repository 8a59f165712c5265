"""Texts with labels and whole rows from any file; files that hold none are refused with the cure."""

import io
import re
from pathlib import Path

import pytest

from cse.corpus.labelled import (  # fmt: skip
    LabelledText,
    check_texts,
    distinct_sample,
    labelled_texts,
    left_out,
    looks_like_labels,
    write_table,
)
from cse.corpus.sentences import sentences


def read(*arguments: object) -> tuple[tuple[str, ...], list[tuple[str, str, tuple[str, ...]]]]:
    table = labelled_texts(*arguments)
    return table.columns, [(row.text, row.label, row.cells) for row in table.rows]


def test_rows_keep_all_their_cells_in_the_order_of_the_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text,topic\n1,"One, quoted",x\n2,,y\n3,Three,\n')
    expected = [("One, quoted", "x", ("1", "One, quoted", "x")), ("Three", "", ("3", "Three", ""))]
    assert read(tmp_path / "a.csv", None, "topic") == (("id", "text", "topic"), expected)
    assert [row[1] for row in read(tmp_path / "a.csv", "text")[1]] == ["", ""]
    (tmp_path / "b.jsonl").write_text('{"n": 1, "text": "One", "tags": ["a"]}\n{"text": "Two"}\n')
    assert read(tmp_path / "b.jsonl")[1] == [("One", "", ("1", "One", '["a"]')), ("Two", "", ("", "Two", ""))]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "id,text\n\n1,One\n2,\n3, \n4,Two\n,\n"),
        ("one.csv", 'text\nOne\n""\n\n""\nTwo\n""\n'),  # as pandas writes a table of one column
        ("a.tsv", "id\ttext\n1\tOne\n2\t\n3\t\n\n4\tTwo\n5\t\n"),
        ("a.jsonl", '{"text": "One"}\n\n{"text": ""}\n{"text": null}\n{"text": "Two"}\n{"id": 5}\n'),
        ("a.json", '[{"text": "One"}, {"text": ""}, {"text": null}, {"text": "Two"}, {"text": null}]'),
    ],
)
def test_rows_without_a_text_are_counted_and_keep_their_number(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    table = labelled_texts(tmp_path / name)
    assert [(row.row, row.text) for row in table.rows] == [(1, "One"), (4, "Two")]
    assert table.without_text == 3
    every = list(labelled_texts(tmp_path / name).every)
    assert [(row.row, row.text) for row in every] == [(1, "One"), (2, ""), (3, ""), (4, "Two"), (5, "")]
    assert every[3].cells[-1] == "Two"


def test_a_blank_line_is_no_row(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One\n\n \nTwo\n\n")
    (tmp_path / "a.tsv").write_text("sentence\nOne\n\nTwo\n")
    for name in ("a.txt", "a.tsv"):
        table = labelled_texts(tmp_path / name)
        assert [(row.row, row.text) for row in table.rows] == [(1, "One"), (2, "Two")]
        assert table.without_text == 0


def test_left_out_rows_are_said_in_words() -> None:
    assert left_out(1) == "1 row without a text was left out"
    assert left_out(1200) == "1,200 rows without a text were left out"


def test_a_text_file_has_one_column_called_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One\n\n Two \n")
    assert read(tmp_path / "a.txt") == (("text",), [("One", "", ("One",)), ("Two", "", ("Two",))])
    for options, name in ((("topic",), "column"), ((None, "topic"), "labels")):
        with pytest.raises(ValueError, match=f"has no column 'topic'; leave out `{name}` or give a table"):
            read(tmp_path / "a.txt", *options)


def test_numbers_name_the_columns_of_a_table_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("3\tOne text\n3\tOther text\n")
    expected = [("One text", "3", ("3", "One text")), ("Other text", "3", ("3", "Other text"))]
    assert read(tmp_path / "a.tsv", "2", "1") == (("1", "2"), expected)
    assert read(tmp_path / "a.tsv", None, "1") == (("1", "2"), expected)  # the only other column
    with pytest.raises(ValueError, match="no column '7'; it has 1, 2"):
        read(tmp_path / "a.tsv", "7")
    (tmp_path / "b.csv").write_text("2,text\nx,One\n")  # a header may consist of numbers
    assert read(tmp_path / "b.csv", None, "2")[1] == [("One", "x", ("x", "One"))]
    (tmp_path / "c.jsonl").write_text('{"text": "One"}\n')
    with pytest.raises(ValueError, match="give a column by its name"):
        read(tmp_path / "c.jsonl", "1")


def test_unknown_and_equal_columns_and_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,topic\nOne,x\n")
    with pytest.raises(ValueError, match="no column 'label'; it has text, topic"):
        read(tmp_path / "a.csv", "text", "label")
    with pytest.raises(ValueError, match="no column 'words'"):
        read(tmp_path / "a.csv", "words")
    with pytest.raises(ValueError, match="texts and labels are both in 'text'"):
        read(tmp_path / "a.csv", "text", "text")
    with pytest.raises(ValueError, match="no such file"):
        read(tmp_path / "none.csv")
    (tmp_path / "empty.csv").write_text("")
    assert read(tmp_path / "empty.csv") == ((), [])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "no text in it"),
        (["a dog"], "only 1 text in it; groups needs at least 2 different texts"),
        (["a dog"] * 9, "all its texts are the same; groups"),
        (["Sports", "World news"] * 100, "200 rows hold only 2 different short texts, which look like labels"),
    ],
)
def test_texts_that_serve_no_purpose_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_texts("a.txt", texts, 2, "groups")


@pytest.mark.parametrize("number", [3, 0, -1, 2.0, True, ["n"]])
def test_a_column_that_is_no_text_is_a_line(tmp_path: Path, number: object) -> None:
    for name, content in (("a.csv", "a man plays,1\nthe dog runs,2\n"), ("a.jsonl", '{"text": "a man", "n": 1}')):
        (tmp_path / name).write_text(content)
        with pytest.raises(
            ValueError, match=rf"{name}: a column is {re.escape(repr(number))}, not text; give its name"
        ):
            labelled_texts(tmp_path / name, None, number)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=rf"{name}: a column is"):
            list(sentences(tmp_path / name, number))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"a\.csv: no column '3'; it has 1, 2"):
        labelled_texts(tmp_path / "a.csv", "1", "3")


def test_only_many_repetitions_of_few_short_texts_look_like_labels() -> None:
    assert looks_like_labels(["a", "b"] * 50)
    assert not looks_like_labels(["a", "b"] * 20)
    assert not looks_like_labels(["a"] * 100)  # copies of one text
    assert not looks_like_labels([f"{number % 10}" for number in range(100)])
    assert not looks_like_labels(["a dog was here", "b"] * 50)


def test_a_sample_has_the_first_row_of_each_text_in_their_order() -> None:
    rows = [LabelledText(f"text {number % 50}", str(number), ()) for number in range(100)]
    assert [int(row.label) for row in distinct_sample(rows, 50, seed=0)] == list(range(50))
    sample = [int(row.label) for row in distinct_sample(rows, 20, seed=0)]
    assert sample == sorted(set(sample))
    assert set(sample) < set(range(50))
    assert len(sample) == 20
    assert sample != [int(row.label) for row in distinct_sample(rows, 20, seed=1)]


def test_a_written_table_is_read_back_as_it_was(tmp_path: Path) -> None:
    rows = [("=1+1", "a"), ('say "hi", then\n- go', "b"), ("plain", "")]
    file = io.StringIO()
    write_table(file, ("text", "label"), rows)
    (tmp_path / "a.csv").write_text(file.getvalue())
    assert [row.cells for row in labelled_texts(tmp_path / "a.csv").rows] == rows
    assert list(sentences(tmp_path / "a.csv")) == [text for text, _ in rows]
    assert file.getvalue().splitlines()[0] == "text,label"
