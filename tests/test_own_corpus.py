"""A visitor's own sentences: what is read, what is refused, an index of their own, and nothing left behind."""

import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from app_models import write_model
from conftest import SENTENCES

import cse
from cse.vectors import unit_rows
from ui import own_corpus
from ui.corpora import OWN_KEY, Corpus
from ui.own_corpus import FACTORIES, Step, indexing, kept, sentences_of, uploaded
from ui.search import corpus_of, find_all
from ui.state import MOST_OWN, AppState, open_state
from ui.take_section import take
from ui.takeaway import as_csv, as_json, curl_code, python_code


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> AppState:
    root = tmp_path_factory.mktemp("own")
    folders = [write_model(root / name, bert_folder, name) for name in ("simcse", "promptbert")]
    broken = write_model(root / "broken", bert_folder, "simcse")
    (broken / "model.safetensors").write_bytes(b"cut off")
    return open_state([str(folder) for folder in (*folders, broken)], ())


def indexed(state: AppState, texts: list[str], factory: str = "Flat") -> Corpus:
    *_, corpus = indexing(state.models, texts, factory)
    assert isinstance(corpus, Corpus)
    return corpus


@pytest.mark.parametrize(
    ("name", "content", "column"),
    [
        ("a.txt", b"the cat\n\n a dog \n", ""),
        ("a.csv", b'sentence,n\n"the cat",1\na dog,2\n', ""),
        ("a.tsv", b"body\tn\nthe cat\t1\na dog\t2\n", "body"),
    ],
)
def test_an_uploaded_file_gives_its_sentences_and_is_deleted(tmp_path, name, content, column) -> None:
    (tmp_path / name).write_bytes(content)
    assert uploaded(str(tmp_path / name), column) == ["the cat", "a dog"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b" \n", "a.txt: no sentence in it; give a sentence a line."),
        ("a.txt", b"PK\x00\x03", "a.txt: line 1 holds a NUL byte; give a text file, not a binary one"),
        ("a.txt", b"ok\ncaf\xe9\n", "a.txt: line 2 is not UTF-8 (invalid continuation byte); convert it, "),
        ("a.txt", b"a\n" * 5001, "a.txt: more than 5,000 sentences; give a part of it."),
        ("a.txt", b"a" * (5 * 2**20 + 1), "a.txt: has more than 5 MB; give a part of it."),
        ("a.csv", b"a,b\n1,2\n", "a.csv: which column holds the sentences? Pass `column`, one of a, b"),
        ("a.parquet", b"PAR1", "a.parquet: give a file of the kind .txt, .csv, .tsv."),
    ],
)
def test_a_bad_file_is_one_line_without_the_servers_folder_and_is_deleted(tmp_path, name, content, message) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=r"^a") as caught:
        uploaded(str(tmp_path / name))
    assert str(caught.value).startswith(message)
    assert str(tmp_path) not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_lines_are_taken_where_there_is_no_file() -> None:
    assert sentences_of(None, " the cat \n\na dog", "") == ["the cat", "a dog"]
    with pytest.raises(ValueError, match="The list is empty"):
        sentences_of(None, " \n", "")


def test_an_own_corpus_is_searched_exactly_in_every_model_and_leaves_no_file(state, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    corpus = indexed(state, SENTENCES)
    assert list(tmp_path.iterdir()) == []
    found = find_all(state, "a sad dog", 3, corpus)
    assert "damaged" in found.pop("broken").reason
    for column in state.models.columns[:2]:
        encoder = cse.load(column.model)
        scores = unit_rows(encoder.encode(SENTENCES)) @ unit_rows(encoder.encode(["a sad dog"]))[0]
        hits = found[column.name].hits
        assert [hit.text for hit in hits] == [SENTENCES[row] for row in np.argsort(-scores)]
        np.testing.assert_allclose([hit.score for hit in hits], np.sort(scores)[::-1], atol=1e-5)
        assert found[column.name].recall == 1.0


@pytest.mark.parametrize("factory", list(FACTORIES))
def test_an_index_of_each_offered_type_knows_its_recall(state, factory) -> None:
    corpus = indexed(state, SENTENCES, factory)
    found = find_all(state, "a sad dog", 3, corpus)["simcse"]
    assert (found.factory, found.recall) == (factory, 1.0)  # seven sentences hide from none


def test_models_are_free_between_the_steps_and_the_caller_may_stop(state, monkeypatch) -> None:
    monkeypatch.setattr(own_corpus, "BLOCK", 3)
    steps, answers = indexing(state.models, SENTENCES, "Flat"), []
    for step in steps:
        if isinstance(step, Step):
            other = threading.Thread(target=lambda: answers.append(state.models.apply(lambda *_: 1)["simcse"]))
            other.start()
            other.join(60)
            assert not other.is_alive()
        if len(answers) == 4:
            break
    assert answers == [1] * 4
    assert (step.name, step.done, step.total) == ("promptbert", 7, 21)
    steps.close()


def test_a_model_added_meanwhile_is_no_column_of_the_corpus(state, monkeypatch) -> None:
    steps, columns = indexing(state.models, SENTENCES, "Flat"), state.models.columns
    next(steps)
    monkeypatch.setattr(state.models, "own", (*columns, replace(columns[0], name="late")))
    *_, corpus = steps
    assert corpus.columns == columns
    assert "late" not in find_all(state, "a sad dog", 3, corpus)


def test_what_was_found_in_it_is_taken_away_without_code_that_could_not_repeat_it(state) -> None:
    secret, _ = kept(state, indexed(state, ["the cat", "a sad dog"]), None)
    inputs = {"query": "a sad dog", "k": 1, "corpus": OWN_KEY, "threshold": 0.0, "own": secret}
    taken = take(state, {"search": lambda query, k=5, corpus="demo", threshold=0.0: {}}, "search", inputs)
    assert "error" in taken.answer.pop("broken")
    assert {name: rows[0]["text"] for name, rows in taken.answer.items()} == dict.fromkeys(taken.models, "a sad dog")
    assert secret not in as_json(taken) + as_csv(taken)
    for code in (python_code, curl_code):
        with pytest.raises(ValueError, match="No code repeats a search of your own sentences"):
            code(taken, "http://localhost/")


def test_a_corpus_is_its_visitors_alone(state) -> None:
    corpus = indexed(state, ["the cat"])
    secret, update = kept(state, corpus, None)
    assert len(secret) == 32
    assert update["choices"][-1] == ("Your sentences (1)", OWN_KEY)
    assert corpus_of(state, OWN_KEY, secret) is corpus
    with pytest.raises(ValueError, match="The corpus of your own sentences is on your page alone"):
        corpus_of(state, OWN_KEY, None)
    later, _ = kept(state, indexed(state, ["a dog"]), secret)
    with pytest.raises(ValueError, match="no longer kept"):
        corpus_of(state, OWN_KEY, secret)
    for _ in range(MOST_OWN):
        kept(state, corpus, None)
    with pytest.raises(ValueError, match="The corpus is no longer kept"):
        corpus_of(state, OWN_KEY, later)
