"""Ranking measures against hand-worked cases, files read with their errors, and a set through the index."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from cse.evaluation.metrics import mean_difference
from cse.evaluation.retrieval import (
    known_item,
    known_item_values,
    measures,
    ranks,
    read_texts,
    score,
    units,
)
from cse.evaluation.tasks import TaskData


def exact(corpus: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-(queries @ corpus.T), axis=1, kind="stable")[:, :k]


def write(folder: Path, corpus: str, queries: str, qrels: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("corpus", corpus), ("queries_dev", queries), ("qrels_dev", qrels)):
        (folder / f"{name}.tsv").write_text(text)
    return folder


def test_measures_are_the_hand_worked_ones():
    scores = measures(["x", "a", "y", "b"], {"a", "b", "c"})
    gained = 1 / np.log2(3) + 1 / np.log2(5)
    assert scores["ndcg@10"] == pytest.approx(gained / (1 + 1 / np.log2(3) + 1 / np.log2(4)))
    assert scores["mrr@10"] == 0.5
    assert scores["recall@10"] == scores["recall@100"] == pytest.approx(2 / 3)
    late = measures([f"n{i}" for i in range(10)] + ["a"], {"a"})
    assert (late["ndcg@10"], late["mrr@10"], late["recall@10"], late["recall@100"]) == (0, 0, 0, 1)


def test_a_set_is_scored_and_a_query_that_is_a_document_does_not_find_itself(tmp_path):
    corpus = "1\tnorth\n2\tnorth east\n3\tsouth\n"
    folder = write(tmp_path / "s", corpus, "1\tnorth\nq\tsouth\nz\tunjudged\n", "1\t2\t1\n1\t3\t0\nq\t3\t2\n")
    vectors = {"north": [0, 1], "north east": [0.7, 0.7], "south": [0, -1]}
    (unit,) = units(TaskData(tmp_path, search=exact)).values()
    scores = unit(lambda texts: np.array([vectors[text] for text in texts], np.float32))
    assert scores == {
        "ndcg@10": 100.0, "mrr@10": 100.0, "recall@10": 100.0, "recall@100": 100.0, "queries": 2, "documents": 3,
    }  # fmt: skip
    assert list(units(TaskData(folder, search=exact))) == ["s"]
    (folder / "qrels_dev.tsv").write_text("1\t1\t1\nq\t3\t2\n")  # nothing is left for a query that finds itself
    assert score(lambda texts: np.array([vectors[text] for text in texts]), folder, exact)["queries"] == 1


def test_a_title_is_said_once_and_a_header_is_no_document(tmp_path):
    (tmp_path / "c.tsv").write_text("doc_id\ttitle\ttext\n1\tWings\tWings lift.\n2\tHeat\tIt flows.\n3\talone\n")
    assert read_texts(tmp_path / "c.tsv") == {"1": "Wings lift.", "2": "Heat It flows.", "3": "alone"}


@pytest.mark.parametrize(
    ("corpus", "qrels", "message"),
    [
        ("1\ta\tb\tc\n", "", "corpus.tsv: line 1 has 4 columns"),
        ("1\ta\n1\tb\n", "", "corpus.tsv: line 2 repeats the id '1'"),
        ("1\ta\n", "q\t9\t1\n", "line 1: no document '9'"),
        ("q\tsouth\n", "q\tq\t1\n", "no query has a relevant document other than itself"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path, corpus, qrels, message):
    folder = write(tmp_path / "s", corpus, "q\tsouth\n", qrels)
    with pytest.raises(ValueError, match=message):
        score(lambda texts: np.ones((len(texts), 2)), folder, exact)


@pytest.mark.parametrize(("pack", "inside"), [(bytes, True), (gzip.compress, False)])
def test_a_folder_of_beir_is_read_as_published(tmp_path, pack, inside):
    folder, end = tmp_path / "set", "" if pack is bytes else ".gz"
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": "d1", "title": "Post", "text": "it is late", "metadata": {}}]
    documents.append({"_id": "d2", "title": "", "text": "a cat", "metadata": {}})
    queries = [{"_id": "q1", "text": "where is it", "metadata": {}}, {"_id": "q2", "text": "unjudged"}]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl{end}").write_bytes(pack("\n".join(map(json.dumps, rows)).encode()))
    for split, row in (("dev", "q1\td1\t1"), ("train", "q1\td9\t1")):
        (folder / f"qrels/{split}.tsv{end}").write_bytes(pack(f"query-id\tcorpus-id\tscore\n{row}\n".encode()))
    assert read_texts(folder / f"corpus.jsonl{end}") == {"d1": "Post it is late", "d2": "a cat"}
    seen: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        seen.append(texts)
        return np.eye(2)[: len(texts)]

    (scored,) = units(TaskData(folder if inside else tmp_path, search=exact)).items()
    assert (scored[0], scored[1](encode)["ndcg@10"]) == ("set", 100)
    assert seen == [["Post it is late", "a cat"], ["where is it"]]
    (folder / f"qrels/test.tsv{end}").write_bytes(pack(b"query-id\tcorpus-id\tscore\nq1\td7\t1\n"))
    with pytest.raises(ValueError, match=r"test\.tsv.*: line 2: no document 'd7'$"):
        scored[1](encode)


NUMBERS = list(map(str, range(40)))


@pytest.mark.parametrize(
    ("text", "form", "sought"),
    [
        ("one two three four", "one three", "one two three four"),
        ("two words", "", "two words"),
        ("今天天气很好我们", "今天 很好", "今天天气很好我们"),
        (" ".join(NUMBERS[:21]), " ".join(NUMBERS[5:15]), " ".join(NUMBERS[:5] + NUMBERS[15:21])),
    ],
)
def test_a_long_text_is_asked_for_by_words_that_are_taken_out_of_it(text, form, sought, monkeypatch):
    monkeypatch.setattr("cse.corpus.words.segmenter", lambda language: None)
    assert known_item(text) == (form, sought)


def test_ranks_are_those_of_a_loop_over_each_draw():
    rng = np.random.default_rng(4)
    texts = rng.normal(size=(600, 4)).astype(np.float32)
    own = rng.permutation(600)[:520]
    queries = (texts[own] + rng.normal(scale=0.3, size=(520, 4))).astype(np.float32)
    draws = [rng.permutation(600)[:100], np.arange(600)]
    expected = np.empty((2, 520))
    for number, draw in enumerate(draws):
        for row, text in enumerate(own):
            cosines = {
                other: queries[row] @ texts[other] / np.linalg.norm(queries[row]) / np.linalg.norm(texts[other])
                for other in {*draw.tolist(), text}
            }
            expected[number, row] = sum(value >= cosines[text] - 1e-6 for value in cosines.values())
    np.testing.assert_array_equal(ranks(queries, own, texts, draws), expected)
    values = known_item_values(queries, own, texts, draws)
    np.testing.assert_allclose(values["recall@1"], (expected == 1).mean(axis=0))
    np.testing.assert_allclose(values["mrr"], (1 / expected).mean(axis=0))


def test_vectors_that_are_all_alike_or_no_numbers_find_nothing():
    for vector in (1.0, np.nan):
        texts = np.full((10, 3), vector, np.float32)
        np.testing.assert_array_equal(ranks(texts[:2], np.arange(2), texts, [np.arange(10)]), [[10, 10]])


def test_the_interval_of_a_gain_is_that_of_its_mean():
    rng = np.random.default_rng(1)
    first, second = rng.random(900) < 0.7, rng.random(900) < 0.6
    gain = mean_difference(first, second.astype(float))
    points = 100 * (first.astype(float) - second)
    assert gain.value == pytest.approx(points.mean(), abs=0.01)
    half = 1.96 * points.std(ddof=1) / 30
    assert (gain.low, gain.high) == pytest.approx((points.mean() - half, points.mean() + half), abs=0.6)
    assert mean_difference(first.astype(float), first).high == 0
