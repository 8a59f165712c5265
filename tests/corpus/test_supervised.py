"""Pairs, hard negatives and scores are told by the names of columns or their content, and labels are never texts."""

import json
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from pandas import DataFrame, Series

from cse.corpus import Corpus
from cse.corpus.formats import Options
from cse.corpus.supervised import Examples, pairs_in_memory, scored_pairs, training_examples

NLI = [
    ("the shop is open", "the store is open", "entailment"),
    ("the shop is open", "the shop is shut", "contradiction"),
    ("we ate soup", "we ate", "entailment"),
    ("we ate soup", "it was hot", "neutral"),
    ("we ate soup", "it was cold", "-"),
]
PAIRS = [("the shop is open", "the store is open"), ("we ate soup", "we ate")]


def written(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def rows_of(examples: Examples) -> list[tuple[str, ...]]:
    return list(zip(*examples[:].values(), strict=True))


def read(path: Path, **options: object) -> list[tuple[str, ...]]:
    return rows_of(training_examples(path, supervised=True, **options))  # type: ignore[arg-type]


def lines(rows: list[tuple[str, ...]], delimiter: str = "\t") -> str:
    return "".join(delimiter.join(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    "names",
    [
        ("sentence1", "sentence2", "gold_label"), ("sentence_A", "sentence_B", "entailment_judgment"),
        ("text1", "text2", "relation"), ("first", "second", "relation"), None,
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_labels_of_inference_are_used_as_labels(tmp_path, names, name):
    content = lines([*([names] if names else []), *NLI], "," if name == "a.csv" else "\t")
    examples = training_examples(written(tmp_path / name, content), supervised=True)
    assert [row[:2] for row in rows_of(examples)] == PAIRS
    assert examples[:]["2"][0] == "the shop is shut"
    assert "2 pairs, 1 with a hard negative" in examples.understood
    assert "1 neutral row left out; 1 row without a label left out" in examples.understood


def test_numbers_are_codes_of_entailment_or_of_duplicates_and_what_they_mean_is_said(tmp_path):
    codes = {"entailment": "0", "neutral": "1", "contradiction": "2", "-": "-1"}
    three = [(first, second, codes[label]) for first, second, label in NLI]
    examples = training_examples(
        written(tmp_path / "a.tsv", lines([("premise", "hypothesis", "label"), *three])), supervised=True
    )
    assert [row[:2] for row in rows_of(examples)] == PAIRS
    quora = (
        "id,qid1,qid2,question1,question2,is_duplicate\n"
        '0,1,2,How do I cook rice?,"How, please, is rice cooked?",1\n'
        "1,1,3,How do I cook rice?,How do I cook beans?,0\n2,4,5,What is it?,Who is it?,0\n"
    )
    examples = training_examples(written(tmp_path / "q.csv", quora), supervised=True)
    assert rows_of(examples) == [("How do I cook rice?", "How, please, is rice cooked?", "How do I cook beans?")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a man walks\ta person walks\tgood\na man walks\tnobody walks\tbad\n", "`3` holds 'good', 'bad'; labels are"),
        ("sentence1\tsentence2\tscore\na man walks\tone walks\t4.2\n", "which column holds the labels of its pairs"),
        ("anchor\tpositive\tnegative_1\na\tb\tc\n", "`negative_1` would not be read"),
        ("4.2\ta man walks\tone walks\n1\ta cat\ta dog\n", "column '1' holds labels or numbers"),
        ("cooking\tlet the steak rest\ncooking\tboil an egg\n", "column '1' holds labels or numbers"),
        ("sent0\tsent1\thard_neg\na man\tone man\tneutral\n", "`hard_neg` holds labels, not hard negatives"),
        ("one\ttwo\tthree\tfour\n", "needs two or three columns"),
        ("a text a line\n", "needs two or three columns, and this holds a text a line"),
        ("sentence1\tsentence2\tlabel\na b\tc d\tneutral\n", "no pair in it .*; 1 neutral row left out"),
    ],
)
def test_what_cannot_be_decided_is_asked_for_and_labels_are_never_texts(tmp_path, content, message):
    with pytest.raises(ValueError, match=rf"a\.txt: .*{message}") as caught:
        read(written(tmp_path / "a.txt", content))
    assert "\n" not in str(caught.value)


def test_pairs_and_triplets_have_names_or_none(tmp_path):
    sentences = [("a dog runs", "an animal moves", "a cat sleeps"), ("a man", "a person", "a car")]
    pairs = [row[:2] for row in sentences]
    for names in (("sent0", "sent1", "hard_neg"), ("query", "positive", "negative")):
        assert read(written(tmp_path / "a.tsv", lines([names, *sentences]))) == sentences
        assert read(written(tmp_path / "a.csv", lines([names[:2], *pairs], ","))) == pairs
    for same in (sentences, pairs, [("cat", "kitten", "dog"), ("house", "flat", "dog")]):
        assert read(written(tmp_path / "b.tsv", lines(same))) == same
    wide = written(tmp_path / "c.tsv", lines([("x", "1", *row) for row in sentences]))
    assert read(wide, column="3,4") == [row[:2] for row in sentences]
    assert read(wide, column="3,4,5", options=Options(header=False)) == sentences


def test_a_pair_without_a_hard_negative_takes_anothers_and_rows_without_a_text_are_counted(tmp_path):
    rows = [("a", "b", "c"), ("d", "e", ""), ("f", "", "g"), ("h", "i", "j"), ("k", "l", ""), ("m", "n", "")]
    path = written(tmp_path / "a.tsv", lines([("anchor", "positive", "negative"), *rows]))
    examples = training_examples(path, supervised=True)
    assert examples[:]["2"] == ["c", "c", "j", "j", "c"]
    assert examples.understood.endswith("1 row without a text left out")
    few = [("anchor", "positive", "negative"), ("a", "b", "c"), *((str(row), "e", "") for row in range(20))]
    examples = training_examples(written(tmp_path / "b.tsv", lines(few)), supervised=True)
    assert (len(examples), len(examples.views)) == (21, 2)
    assert "so few hard negatives are not used" in examples.understood
    late = [few[0], *((str(row), "e", "") for row in range(1500)), *((str(row), "e", "g") for row in range(1500))]
    examples = training_examples(written(tmp_path / "c.tsv", lines(late)), supervised=True)
    assert "3,000 pairs, 1,500 with a hard negative" in examples.understood


def test_the_pairs_of_a_premise_share_its_contradictions(tmp_path):
    rows = [("p", "e1", "0"), ("p", "c1", "2"), ("p", "e2", "0"), ("p", "c2", "2"), ("p", "e3", "0"), ("q", "e", "0")]
    path = written(tmp_path / "a.tsv", lines([("premise", "hypothesis", "label"), *rows]))
    assert read(path) == [("p", "e1", "c1"), ("p", "e2", "c2"), ("p", "e3", "c1"), ("q", "e", "c1")]


def test_texts_in_memory_are_read_as_lines_of_a_file(tmp_path):
    texts = ["a cat", "  the dog runs ", "", "a man"]
    columns = Dataset.from_dict({"number": [1, 2, 3, 4], "text": texts})
    frame = DataFrame({"number": [1, 2, 3, 4], "text": texts})
    for data in (
        written(tmp_path / "a.txt", "\n".join(texts)), texts, iter(texts), Series(texts),
        columns, frame, Corpus.of(frame),
    ):  # fmt: skip
        assert training_examples(data)[:] == {"0": ["a cat", "the dog runs", "a man"]}
    assert training_examples(columns, "number")[:]["0"] == ["1", "2", "3", "4"]


def test_tuples_and_tables_in_memory_are_read_as_a_supervised_file():
    rows = [("p", "e", "c"), (" P", "E ", "C")]
    names = dict(zip(("sent0", "sent1", "hard_neg"), zip(*rows, strict=True), strict=True))
    for data in (
        rows, Dataset.from_dict({**names, "id": [1, 2]}), DataFrame(names), Corpus.of(DataFrame(names), "sent0"),
        [dict(zip(names, row, strict=True)) for row in rows],
    ):  # fmt: skip
        assert rows_of(training_examples(data, supervised=True)) == [("p", "e", "c"), ("P", "E", "C")]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (["", " "], {}, "no sentence in them"),
        (["a", float("nan")], {}, "item 2 is nan, not a text"),
        (["a\ud800"], {}, "item 1 holds half of a surrogate pair"),
        ({"train": ["a"]}, {}, "data is a dict; give a list of texts"),
        ([("a", "b"), ("a", "b", "c")], {"supervised": True}, "item 2 has 3 texts"),
        ([("a", " ")], {"supervised": True}, "item 1 has 2 texts or an empty one"),
        (Dataset.from_dict({"a": ["x"], "b": ["y"]}), {"supervised": True}, "which columns hold pairs?"),
        (Dataset.from_dict({"a": ["x"]}), {"column": "b"}, "no column 'b'; it has a"),
    ],
)
def test_anything_else_is_refused_in_one_line(data, options, message):
    with pytest.raises(ValueError, match=message) as error:
        training_examples(data, **options)
    assert "\n" not in str(error.value)


def test_a_limit_counts_examples_and_labels_are_those_of_the_whole(tmp_path):
    path = written(tmp_path / "a.csv", "id,text\n1,\n2,a\n3,\n4,b\n5,\n6,c\n")
    assert training_examples(path, limit=2)[:]["0"] == ["a", "b"]
    assert training_examples(path, limit=9)[:]["0"] == ["a", "b", "c"]
    rows = [("a b", "n", "1"), ("a b", "c", "0"), ("d e", "f", "0"), ("d e", "g", "2")]
    nli = written(tmp_path / "b.tsv", lines([("sentence1", "sentence2", "label"), *rows]))
    assert [row[:2] for row in read(nli, limit=1)] == [("a b", "c")]


def test_examples_are_read_in_any_order_from_a_table_of_many_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("cse.corpus.corpus.MAX_MEMORY_BYTES", 1000)
    monkeypatch.setattr("cse.corpus.source.BATCH_ROWS", 7)
    monkeypatch.setattr("cse.corpus.supervised.BLOCK", 9)
    texts = [f"text {number}" for number in range(100)]
    examples = training_examples(written(tmp_path / "a.txt", "\n".join(texts)))
    order = np.random.default_rng(0).permutation(100)
    assert examples[order]["0"] == [texts[number] for number in order]
    assert list(examples.anchors()) == texts
    assert examples.select([5, 60])[:]["0"] == ["text 5", "text 60"]


STS_B = (
    'main-captions\tMSRvid\t2012test\t0001\t5.000\tA man "with a hat.\tA man wearing a hat.\n'
    "main-news\theadlines\t2015\t0009\t3.6\tMen play.\tBoys play.\tlicence\thttp://x\n"
)
SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    '6\tA man "with a hat.\tA man wearing a hat.\t5\tNEUTRAL\n7\tMen play.\tBoys play.\t3.6\tENTAILMENT\n'
)
SCORED = [(5.0, 'A man "with a hat.', "A man wearing a hat."), (3.6, "Men play.", "Boys play.")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tsv", '5\tA man "with a hat.\tA man wearing a hat. \n\n3.6\tMen play.\tBoys play.\n', "a.tsv: 2 pairs"),
        ("sts-test.csv", STS_B, "2 pairs in the columns of STS-B as published"),
        ("SICK.txt", SICK, "scores from `relatedness_score`, sentences from `sentence_A` and `sentence_B`"),
        ("a.jsonl", "\n".join(json.dumps({"sentence1": a, "sentence2": b, "score": s}) for s, a, b in SCORED),
         "scores from `score`, sentences from `sentence1` and `sentence2`"),
        ("a.csv", 'id,left,right,grade\n1,"A man ""with a hat.",A man wearing a hat.,5\n2,Men play.,Boys play.,3.6\n',
         "scores from `grade`, sentences from `left` and `right`"),
        ("b.tsv", 'A man "with a hat.\tA man wearing a hat.\t5\nMen play.\tBoys play.\t3.6\n', "scores from `3`"),
    ],
)  # fmt: skip
def test_scored_pairs_are_read_as_they_are_published(tmp_path, name, content, said):
    notes: list[str] = []
    assert scored_pairs(written(tmp_path / name, content), notes.append) == SCORED
    assert said in notes[0]


def test_scored_pairs_in_memory_are_those_of_a_file():
    score, first, second = zip(*SCORED, strict=True)
    frame = DataFrame({"text1": first, "text2": second, "gold": score})
    for data in (frame, Dataset.from_pandas(frame), Corpus.of(frame, "text1")):
        assert scored_pairs(data) == SCORED
    assert pairs_in_memory([(5, 'A man "with a hat.', " A man wearing a hat."), [*SCORED[1]]], "dev") == SCORED


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\ta\n", "which columns hold the score and the two sentences"),
        ("1\ta\tb\n2\ta\n3\ta\tb\n", "line 2 has 2 columns, not score, sentence, sentence"),
        ("nan\ta\tb\n1\ta\tb\n", "line 1: the score 'nan' is not finite"),
        ("1\ta\tb\n2\t\tb\n", "line 2: the first sentence is missing"),
        ("score\tsentence1\tsentence2\n1\ta\tb\n\ta\tb\n", "row 2: the score '' is no number"),
        ("sentence1\tsentence2\tlabel\na b\tc d\tneutral\n", "which columns hold the score"),
        ("\n", "no pair in it"),
    ],
)
def test_malformed_pairs_are_named_with_file_and_line(tmp_path, content, message):
    with pytest.raises(ValueError, match=rf"dev\.tsv: {message}"):
        scored_pairs(written(tmp_path / "dev.tsv", content))
