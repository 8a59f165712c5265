"""A visitor's own sentences: what is read, what is refused, an index of their own, and nothing left behind."""

import json
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from app_models import write_model
from conftest import SENTENCES

import cse
from cse.app import validation
from cse.app.api.download import as_csv, as_json, curl_code, python_code
from cse.app.api.download_section import take
from cse.app.models.corpora import OWN_KEY, Corpus
from cse.app.models.own_corpora import GONE, Built, Step
from cse.app.models.state import AppState, open_state
from cse.app.sections import own_corpus
from cse.app.sections.clusters import MOST_LINES
from cse.app.sections.own_corpus import FACTORIES, MOST_SENTENCES, indexing, opened, sentences_of, uploaded
from cse.app.sections.own_section import choices_of, described
from cse.app.sections.search import corpus_of, find_all
from cse.app.server.bodies import MOST_BODY
from cse.vectors import unit_rows


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> AppState:
    root = tmp_path_factory.mktemp("own")
    folders = [write_model(root / name, bert_folder, name) for name in ("simcse", "promptbert")]
    broken = write_model(root / "broken", bert_folder, "simcse")
    (broken / "model.safetensors").write_bytes(b"cut off")
    return open_state([str(folder) for folder in (*folders, broken)], ())


def indexed(state: AppState, texts: list[str], factory: str = "Flat") -> Corpus:
    *_, built = indexing(state.models, texts, factory)
    assert isinstance(built, Built)
    return built.corpus


def kept(state: AppState, texts: list[str], key: str) -> Corpus | None:
    """The corpus once a visitor's texts were indexed."""
    assert state.own_corpora.begin(key, indexing(state.models, texts, "Flat")).wait(60)
    return state.own_corpora.corpus(key)


@pytest.mark.parametrize(
    ("name", "content", "column"),
    [
        ("a.txt", b"the cat\n\n a dog \n", ""),
        ("a.csv", b'sentence,n\n"the cat",1\na dog,2\n', ""),
        ("a.CSV", b"text\nthe cat\na dog\n", ""),
        ("a.tsv", b"body\tn\nthe cat\t1\na dog\t2\n", "body"),
        ("a.csv", b"the cat\na dog\n", ""),
        ("a.csv", b"pets\nthe cat\na dog\n", "pets"),
    ],
)
def test_an_uploaded_file_gives_its_sentences(tmp_path, name, content, column) -> None:
    (tmp_path / name).write_bytes(content)
    assert uploaded(str(tmp_path / name), column) == ["the cat", "a dog"]


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.txt", b" \n", "", "a.txt: no sentence in it; give a sentence a line."),
        ("a.txt", b"PK\x00\x03", "", "a.txt: line 1 holds a NUL byte; give a text file, not a binary one"),
        ("a.txt", b"ok\ncaf\xe9\n", "", "a.txt: line 2 is not UTF-8 (invalid continuation byte); convert it, "),
        ("a.txt", b"a\n" * 5001, "", "a.txt: more than 5,000 sentences; give a part of it."),
        ("a.txt", b"a" * (5 * 2**20 + 1), "", "a.txt: has more than 5 MB; give a part of it."),
        ("a.csv", b"a,b\n1,2\n", "", "a.csv: choose the column of the sentences: a or b."),
        ("a.csv", b"a,b\n1,2\n", "c", "a.csv: no column 'c'; choose the column of the sentences: a or b."),
        ("a.csv", b"cat\ndog\n", "", "a.csv: choose 'cat' if it is the column's name, or give a .txt file."),
        ("a.csv", b"a,b\n1,2\n1\n", "a", "a.csv: line 3 has 1 cells, not 2 as the first row; "),
        ("a.parquet", b"PAR1", "", "a.parquet: give a file of the kind .txt, .csv or .tsv."),
    ],
)
def test_a_bad_file_is_one_line_without_the_servers_folder(tmp_path, name, content, column, message) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=r"^a") as caught:
        uploaded(str(tmp_path / name), column)
    assert str(caught.value).startswith(message)
    assert str(tmp_path) not in str(caught.value)


def test_a_file_that_the_server_has_deleted_is_asked_for_again(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"^a\.txt: is no longer on the server; upload it again\.$"):
        uploaded(str(tmp_path / "a.txt"))


def test_a_table_shows_its_columns_and_first_rows_before_it_is_read(tmp_path) -> None:
    rows = [[str(number), f"pet {number}"] for number in range(9)]
    (tmp_path / "a.csv").write_text("id,body\n" + "".join(f"{each},{body}\n" for each, body in rows))
    assert opened(str(tmp_path / "a.csv")) == (["id", "body"], rows[:5], None)
    (tmp_path / "a.tsv").write_text("id\ttext\n1\ta cat\n")
    assert opened(str(tmp_path / "a.tsv")) == (["id", "text"], [["1", "a cat"]], "text")
    (tmp_path / "a.txt").write_text("id,body\n")
    assert opened(str(tmp_path / "a.txt")) == ([], [], None)


def test_a_table_that_is_asked_about_stays_and_a_file_that_cannot_be_read_goes(tmp_path) -> None:
    table, text = tmp_path / "a.csv", tmp_path / "a.txt"
    table.write_text("id,<b>\n1,<img src=x>\n")
    text.write_bytes(b"caf\xe9")
    _, column, rows, status = described(str(table))
    assert (column["choices"], column["value"], column["visible"]) == (["id", "<b>"], None, True)
    assert "Which column holds the sentences? Choose it, then index them." in status
    assert ("&lt;img src=x&gt;" in rows["value"], "<img" in rows["value"]) == (True, False)
    cleared, column, rows, status = described(str(text))
    assert (cleared, column["visible"], rows["visible"]) == (None, False, False)
    assert "a.txt: line 1 is not UTF-8" in status
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_pasted_lines_have_one_limit_and_a_request_has_room_for_them() -> None:
    tickets = [f"ticket {number:4} says that my printer on the third floor is broken" for number in range(2000)]
    assert {len(ticket) for ticket in tickets} == {61}
    assert validation.lines("\n".join(tickets), 1, MOST_LINES) == tickets
    assert sentences_of(None, "\n".join(tickets)) == tickets
    for most, character, length in (
        (MOST_SENTENCES, "a", 800),
        (MOST_SENTENCES, "\u732b", 130),
        (MOST_LINES, "\u732b", 340),
    ):
        body = json.dumps({"data": ["\n".join([character * length] * most)]})  # escaped, as Python clients send it
        assert len(body) < MOST_BODY - 2**14, (most, character)
    with pytest.raises(ValueError, match=r"^Line 2 of the list has 100,001 characters; give at most 100,000\.$"):
        validation.lines("a\n" + "b" * 100_001, 1, 2)
    with pytest.raises(ValueError, match="The list is not text"):
        validation.lines(["a"], 1, 2)


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
    *_, built = steps
    assert built.corpus.columns == columns
    assert "late" not in find_all(state, "a sad dog", 3, built.corpus)


def test_what_was_found_in_it_is_taken_away_without_code_that_could_not_repeat_it(state) -> None:
    secret = "a" * 32
    kept(state, ["the cat", "a sad dog"], secret)
    inputs = {"query": "a sad dog", "k": 1, "corpus": OWN_KEY, "threshold": 0.0, "own": secret}
    taken = take(state, {"search": lambda query, k=5, corpus="demo", threshold=0.0: {}}, "search", inputs)
    assert "error" in taken.answer.pop("broken")
    assert {name: rows[0]["text"] for name, rows in taken.answer.items()} == dict.fromkeys(taken.models, "a sad dog")
    assert secret not in as_json(taken) + as_csv(taken)
    with pytest.raises(ValueError, match=r"^There are no sentences of yours on this server\."):
        take(
            state,
            {"search": lambda query, k=5, corpus="demo", threshold=0.0: {}},
            "search",
            {**inputs, "own": "e" * 32},
        )
    for code in (python_code, curl_code):
        with pytest.raises(ValueError, match="No code repeats a search of your own sentences"):
            code(taken, "http://localhost/")


def test_a_corpus_is_its_visitors_alone_and_never_another_one_in_its_place(state) -> None:
    key, stranger = "b" * 32, "c" * 32
    corpus = kept(state, ["the cat"], key)
    assert corpus_of(state, OWN_KEY, key) is corpus
    assert choices_of(state, key)[-1] == ("Your sentences (1)", OWN_KEY)
    assert choices_of(state, stranger)[-1] == ("Your sentences", OWN_KEY)
    for other in (stranger, "", "demo"):
        with pytest.raises(ValueError, match=r"^There are no sentences of yours on this server\.") as caught:
            corpus_of(state, OWN_KEY, other)
        assert str(caught.value) == GONE
    with pytest.raises(ValueError, match="The corpus of your own sentences is on your page alone"):
        corpus_of(state, OWN_KEY, None)
