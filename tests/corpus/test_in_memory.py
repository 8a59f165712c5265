"""Examples and pairs in memory: the rows of a file with the same content, and one line for anything else."""

from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from pandas import DataFrame, Series

from cse.corpus.sentences import given_examples, given_pairs, load_examples, scored_pairs

TEXTS = ["a cat", "  the dog runs ", "", "a man"]
ROWS = [("p", "e", "c"), (" P", "E ", "C")]


def test_texts_in_memory_are_read_as_lines_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    of_file = load_examples(str(tmp_path / "a.txt"), None, False)
    columns = Dataset.from_dict({"number": [1, 2, 3, 4], "text": TEXTS})
    for data in (
        TEXTS,
        tuple(TEXTS),
        iter(TEXTS),
        Series(TEXTS),
        np.array(TEXTS),
        columns,
        columns.with_format("pandas"),
    ):
        assert given_examples(data)[:] == of_file[:]
    assert given_examples(columns, column="number")["0"] == ["1", "2", "3", "4"]
    assert given_examples(TEXTS, limit=2)[:] == of_file[:2]


def test_tuples_in_memory_are_read_as_a_supervised_file(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("\n".join("\t".join(row) for row in ROWS))
    of_file = load_examples(str(tmp_path / "a.tsv"), None, True)
    names = dict(zip(("sent0", "sent1", "hard_neg"), zip(*ROWS, strict=True), strict=True))
    for data in (ROWS, [list(row) for row in ROWS], Dataset.from_dict({**names, "id": [1, 2]})):
        assert given_examples(data, supervised=True)[:] == of_file[:]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([], {}, "no sentence in them"),
        (["", " "], {}, "no sentence in them"),
        (["a", 5], {}, "item 2 is 5, not a text; give a list of texts"),
        (["a", float("nan")], {}, "item 2 is nan, not a text"),
        ([("a", "b")], {}, r"item 1 is \('a', 'b'\), not a text"),
        (b"bytes", {}, "item 1 is 98, not a text"),
        (["a\ud800"], {}, "item 1 holds half of a surrogate pair"),
        ({"train": ["a"]}, {}, "data is a dict; give a list of texts such as a column, one split of a dataset, or a"),
        (DataFrame({"text": ["a"], "label": [1]}), {}, "data is a DataFrame; give a list of texts such as a column"),
        (5, {}, "data is a int; give"),
        (["a"], {"supervised": True}, "item 1 has 1 texts or an empty one; give two or three everywhere"),
        ([("a", "b"), ("a", "b", "c")], {"supervised": True}, "item 2 has 3 texts"),
        ([("a", " ")], {"supervised": True}, "item 1 has 2 texts or an empty one"),
        (Dataset.from_dict({"a": ["x"], "b": ["y"]}), {}, "which column holds the sentences?"),
        (Dataset.from_dict({"a": [["x"]]}), {}, "row 1 has a list as 'a', not text"),
        (Dataset.from_dict({"a": ["x"]}), {"column": "b"}, "no column 'b'; it has a"),
    ],
)
def test_anything_else_is_refused_in_one_line(data: object, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        given_examples(data, **options)
    assert "\n" not in str(error.value)


def test_pairs_in_memory_are_read_as_those_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("4.5\ta cat\tone cat \n0\ta\tb\n")
    assert given_pairs([(4.5, "a cat", "one cat "), [0, "a", "b"]], "dev") == scored_pairs(tmp_path / "dev.tsv")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "dev: no pair in it"),
        ([("a", "b")], r"dev: pair 1 is \('a', 'b'\); give \(score, sentence, sentence\)"),
        ([(1, "a", "b"), ("2", "a", "b")], "dev: pair 2: the score '2' is no finite number"),
        ([(float("nan"), "a", "b")], "the score nan is no finite number"),
        ([([1], "a", "b")], r"the score \[1\] is no finite number"),
        ([(1, "a", None)], "dev: pair 1 is None, not a text"),
    ],
)
def test_pairs_that_are_none_are_refused(pairs: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        given_pairs(pairs, "dev")
