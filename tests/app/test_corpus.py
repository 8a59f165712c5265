"""The chosen corpus: what is read from files and lines, what is refused, vectors, exact search, nothing left behind."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from app_models import write_model
from conftest import SENTENCES

import cse
from cse.app import validation
from cse.app.api.download import as_csv, as_json, curl_code, python_code
from cse.app.api.download_section import take
from cse.app.corpus.chosen import ChosenCorpus, choices_of, chosen_corpus
from cse.app.corpus.reading import file_texts, preview
from cse.app.corpus.texts_form import described, keep
from cse.app.models.corpora import DEMO_KEY, OWN_KEY
from cse.app.models.own_corpora import GONE
from cse.app.models.state import AppState, open_state
from cse.app.sections.clusters import MOST_LINES
from cse.app.sections.search import find_all
from cse.app.server.bodies import MOST_BODY
from cse.vectors import unit_rows


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> AppState:
    root = tmp_path_factory.mktemp("own")
    folders = [write_model(root / name, bert_folder, name) for name in ("simcse", "promptbert")]
    broken = write_model(root / "broken", bert_folder, "simcse")
    (broken / "model.safetensors").write_bytes(b"cut off")
    return open_state([str(folder) for folder in (*folders, broken)], ())


def kept(state: AppState, texts: list[str], key: str, labels: list[str] | None = None) -> ChosenCorpus:
    """The corpus once a visitor's texts were encoded."""
    own = keep(state, key, "pets.txt", texts, labels)
    while own.current is not None:
        time.sleep(0.01)
    return chosen_corpus(state, OWN_KEY, key)


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
    assert file_texts(str(tmp_path / name), column, None) == (["the cat", "a dog"], None)


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.txt", b" \n", "", "a.txt: no text in it; give a text a line."),
        ("a.txt", b"PK\x00\x03", "", "a.txt: line 1 holds a NUL byte; give a text file, not a binary one"),
        ("a.txt", b"ok\ncaf\xe9\n", "", "a.txt: line 2 is not UTF-8 (invalid continuation byte); convert it, "),
        ("a.txt", b"a\n" * 50_001, "", "The file has more than 50,000 texts; give a part of it."),
        ("a.txt", b"a" * (16 * 2**20 + 1), "", "a.txt: has more than 16 MB; give a part of it."),
        ("a.csv", b"a,b\n1,2\n", "", "a.csv: choose the column of the texts: a or b."),
        ("a.csv", b"a,b\n1,2\n", "c", "a.csv: no column 'c'; choose the column of the texts: a or b."),
        ("a.csv", b"cat\ndog\n", "", "a.csv: choose 'cat' if it is the column's name, or give a .txt file."),
        ("a.csv", b"a,b\n1,2\n1\n", "a", "a.csv: line 3 has 1 cells, not 2 as the first row; "),
        ("a.exe", b"MZ", "", "a.exe: give a file of the kind .txt, .csv, .tsv, .jsonl or .parquet."),
        ("a.parquet", b"PAR1", "", "cannot read 'a.parquet' ("),
        ("a.jsonl", b'{"text": 1}\n{', "", "a.jsonl: line 2: cannot read it as JSON"),
    ],
)
def test_a_bad_file_is_one_line_without_the_servers_folder(tmp_path, name, content, column, message) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=r"^a\.|^The file|'a\.") as caught:
        file_texts(str(tmp_path / name), column, None)
    assert str(caught.value).startswith(message)
    assert str(tmp_path) not in str(caught.value)


def test_a_file_that_the_server_has_deleted_is_asked_for_again(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"^a\.txt: is no longer on the server; upload it again\.$"):
        file_texts(str(tmp_path / "a.txt"), None, None)


def test_a_file_shows_its_columns_and_first_rows_before_it_is_read(tmp_path) -> None:
    rows = [[str(number), f"pet {number}"] for number in range(9)]
    (tmp_path / "a.csv").write_text("id,body\n" + "".join(f"{each},{body}\n" for each, body in rows))
    assert preview(str(tmp_path / "a.csv")) == (["id", "body"], rows[:5], None)
    (tmp_path / "a.tsv").write_text("id\ttext\n1\ta cat\n")
    assert preview(str(tmp_path / "a.tsv")) == (["id", "text"], [["1", "a cat"]], "text")
    (tmp_path / "a.txt").write_text("id,body\n\n7,a cat\n")
    assert preview(str(tmp_path / "a.txt")) == ([], [["id,body"], ["7,a cat"]], None)


def test_a_column_of_labels_goes_with_the_texts(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("kind,body\npet,a cat\n,\ntool,a saw\n")
    assert file_texts(str(tmp_path / "a.csv"), "body", "kind") == (["a cat", "a saw"], ["pet", "tool"])
    with pytest.raises(ValueError, match=r"^a\.csv: texts and labels are both in 'body'"):
        file_texts(str(tmp_path / "a.csv"), "body", "body")
    with pytest.raises(ValueError, match=r"^a\.csv: no column 'sort'"):
        file_texts(str(tmp_path / "a.csv"), "body", "sort")


def test_a_file_that_cannot_be_read_stays_and_its_fault_is_told(tmp_path) -> None:
    table, text = tmp_path / "a.csv", tmp_path / "a.txt"
    table.write_text("id,<b>\n1,<img src=x>\n")
    text.write_bytes(b"caf\xe9")
    column, labels, rows, status = described(str(table))
    assert (column["choices"], column["value"], column["visible"]) == (["id", "<b>"], None, True)
    assert (labels["choices"], labels["value"]) == (["none", "id", "<b>"], "none")
    assert "Which column holds the texts?" in status
    assert ("&lt;img src=x&gt;" in rows["value"], "<img" in rows["value"]) == (True, False)
    *hidden, status = described(str(text))
    assert [each["visible"] for each in hidden] == [False] * 3
    assert "a.txt: line 1 is not UTF-8" in status
    assert text.exists()


def test_pasted_lines_have_one_limit_and_a_request_has_room_for_them() -> None:
    tickets = [f"ticket {number:4} says that my printer on the third floor is broken" for number in range(2000)]
    assert {len(ticket) for ticket in tickets} == {61}
    assert validation.lines("\n".join(tickets), 1, MOST_LINES) == tickets
    for most, character, length in ((MOST_LINES, "\u732b", 340),):
        body = json.dumps({"data": ["\n".join([character * length] * most)]})  # escaped, as Python clients send it
        assert len(body) < MOST_BODY - 2**14, (most, character)
    with pytest.raises(ValueError, match=r"^Line 2 of the list has 100,001 characters; give at most 100,000\.$"):
        validation.lines("a\n" + "b" * 100_001, 1, 2)
    with pytest.raises(ValueError, match="The list is not text"):
        validation.lines(["a"], 1, 2)


def test_texts_are_searched_exactly_in_every_model_that_has_encoded_them(state) -> None:
    corpus = kept(state, SENTENCES, "d" * 32, ["x"] * len(SENTENCES))
    columns = state.models.columns
    assert (corpus.texts, corpus.labels, corpus.ready(columns)) == (SENTENCES, ["x"] * 7, list(columns[:2]))
    found = find_all(state, "a sad dog", 3, corpus)
    assert "damaged" in found.pop("broken").reason
    for column in columns[:2]:
        encoder = cse.load(column.model)
        scores = unit_rows(encoder.encode(SENTENCES)) @ unit_rows(encoder.encode(["a sad dog"]))[0]
        hits = found[column.name].hits
        assert [hit.text for hit in hits] == [SENTENCES[row] for row in np.argsort(-scores)]
        np.testing.assert_allclose([hit.score for hit in hits], np.sort(scores)[::-1], atol=1e-3)  # float16
        assert found[column.name].recall == 1.0
        np.testing.assert_allclose(corpus.vectors(column, encoder), encoder.encode(SENTENCES), rtol=1e-3, atol=1e-3)


def test_a_column_that_comes_later_encodes_the_texts_when_it_is_asked_for_them(state) -> None:
    corpus, column = kept(state, SENTENCES, "e" * 32), state.models.columns[0]
    del corpus._own.encodings[column]
    with pytest.raises(ValueError, match="simcse has encoded 0 % of your texts"):
        corpus.vectors(column, state.models.encoder(column))
    while corpus.ready([column]) == []:
        time.sleep(0.01)
    assert corpus.vectors(column, state.models.encoder(column)).shape == (7, 32)


def test_what_was_found_in_it_is_taken_away_without_code_that_could_not_repeat_it(state) -> None:
    secret = "a" * 32
    kept(state, ["the cat", "a sad dog"], secret)
    inputs = {"query": "a sad dog", "k": 1, "corpus": OWN_KEY, "threshold": 0.0, "key": secret}
    answers = {"search": lambda query, k=5, corpus="demo", threshold=0.0: {}}
    taken = take(state, answers, "search", inputs)
    assert "error" in taken.answer.pop("broken")
    assert {name: rows[0]["text"] for name, rows in taken.answer.items()} == dict.fromkeys(taken.models, "a sad dog")
    assert secret not in as_json(taken) + as_csv(taken)
    with pytest.raises(ValueError, match=r"^There are no texts of yours on this server\."):
        take(state, answers, "search", {**inputs, "key": "f" * 32})
    for code in (python_code, curl_code):
        with pytest.raises(ValueError, match="No code repeats a search of your own texts"):
            code(taken, "http://localhost/")


def test_a_corpus_is_its_visitors_alone_and_never_another_one_in_its_place(state) -> None:
    key, stranger = "b" * 32, "c" * 32
    corpus = kept(state, ["the cat"], key)
    assert chosen_corpus(state, OWN_KEY, key).texts is corpus.texts
    assert choices_of(state, key)[-1] == ("pets.txt (1)", OWN_KEY)
    assert choices_of(state, stranger)[-1] == ("Your texts", OWN_KEY)
    for other in (stranger, "", "demo", None):
        with pytest.raises(validation.FieldError) as caught:
            chosen_corpus(state, OWN_KEY, other)
        assert str(caught.value) == GONE
    with pytest.raises(ValueError, match="The corpus is unknown; choose demo or own"):
        chosen_corpus(state, "etc", key)
    assert chosen_corpus(state, DEMO_KEY, stranger).labels == state.demo.topics
