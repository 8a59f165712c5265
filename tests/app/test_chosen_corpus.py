"""The chosen corpus: what is read from files and lines, what is refused, vectors, exact search, nothing left behind."""

import gzip
import re
from collections import namedtuple
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from app_models import write_model
from conftest import SENTENCES
from page_state import KEY, encode_own

from cse.app import show, validation
from cse.app.corpus import reading
from cse.app.corpus.corpora import DEMO_KEY, OWN_KEY, ChosenCorpus
from cse.app.corpus.own import GONE, Encoding, OwnCorpus
from cse.app.corpus.reading import MOST_UNPACKED, file_corpus, preview
from cse.app.places.clusters import Clusters
from cse.app.results.search import Search
from cse.app.state import AppState, choices_of, chosen_corpus, open_state, reference_corpus
from cse.app.top import corpus_table, encode_by, overview, put_texts


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> AppState:
    root = tmp_path_factory.mktemp("own")
    folders = [write_model(root / name, bert_folder, name) for name in ("simcse", "promptbert")]
    broken = write_model(root / "broken", bert_folder, "simcse")
    (broken / "model.safetensors").write_bytes(b"cut off")
    return open_state([str(folder) for folder in (*folders, broken)], ())


Given = namedtuple("Given", "texts labels rows without_text")


def texts_of(path: str, column: str | None, labels: str | None) -> Given:
    """What an uploaded file gives."""
    corpus = file_corpus(path, column, labels)
    return Given(corpus.texts, corpus.labels if labels else None, corpus.rows.tolist(), corpus.without_text)


def kept(state: AppState, texts: list[str], key: str, labels: list[str] | None = None) -> ChosenCorpus:
    """The corpus once a visitor's texts were encoded."""
    return encoded(state, key, OwnCorpus("pets.txt", texts, labels))


def encoded(state: AppState, key: str, own: OwnCorpus) -> ChosenCorpus:
    encode_own(state, key, own)
    return chosen_corpus(state, OWN_KEY, key)


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.txt", b" \n", "", "a.txt: no text in it; give a text a line."),
        ("a.txt", b"a\n" * 50_001, "", "The file has more than 50,000 texts; give a part of it."),
        ("a.txt", b"a" * (16 * 2**20 + 1), "", "a.txt: has more than 16 MB; give a part of it."),
        ("a.csv", b"a,b\n1,2\n", "", "a.csv: choose the column of the texts"),
        ("a.parquet", b"PAR1", "", "cannot read 'a.parquet' ("),
    ],
)
def test_a_bad_file_is_one_line_without_the_servers_folder(tmp_path, name, content, column, message) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=r"^a\.|^The file|'a\.") as caught:
        texts_of(str(tmp_path / name), column, None)
    assert str(caught.value).startswith(message)
    assert str(tmp_path) not in str(caught.value)


def test_a_file_shows_its_columns_and_first_rows_before_it_is_read(tmp_path) -> None:
    rows = [[str(number), f"pet {number}"] for number in range(9)]
    (tmp_path / "a.csv").write_text("id,body\n" + "".join(f"{each},{body}\n" for each, body in rows))
    assert preview(str(tmp_path / "a.csv")) == (["id", "body"], rows[:5], None, None, "body")
    (tmp_path / "a.txt").write_text("A cat, a dog.\n\n It rains \n")
    assert preview(str(tmp_path / "a.txt")) == ([], [["A cat, a dog."], ["It rains"]], None, None, None)
    (tmp_path / "b.csv").write_text("Pets\nThe cat sleeps here\n")
    assert preview(str(tmp_path / "b.csv")).proposed == "Pets"
    mails = "subject,body\nThe pump leaks again,Hello all - the pump in the cellar leaks again since Monday\n"
    (tmp_path / "c.csv").write_text(mails)
    assert preview(str(tmp_path / "c.csv")).text == "body"  # far longer than all else


@pytest.mark.parametrize(
    ("header", "label"),
    [
        ("id,text,queue,Topic", "Topic"),  # by its name
        ("id,text,queue,day", "queue"),  # days are not labels
        ("id,text,queue,other", None),  # two such columns
    ],
)
def test_the_column_of_labels_is_known_by_its_name_or_as_the_only_one_of_a_few_values(tmp_path, header, label) -> None:
    kinds = {"day": lambda number: f"2026-01-0{number % 3}", "other": lambda number: f"kind {number % 3}"}
    last = kinds.get(header.rpartition(",")[2], str)
    lines = [f"{number},A text about thing {number},{'ab'[number % 2]},{last(number)}" for number in range(20)]
    (tmp_path / "a.csv").write_text("\n".join([header, *lines]))
    assert preview(str(tmp_path / "a.csv")).label == label


def test_a_table_is_read_with_its_texts_verbatim_and_the_numbers_of_its_rows(tmp_path) -> None:
    content = "id;text;;id\n1; Un caf\u00e9 au lait, s'il vous pla\u00eet ;x;9\n;;;\n3;-5 degr\u00e9s dehors;;\n"
    (tmp_path / "a.csv").write_bytes(content.encode("cp1252"))
    found = texts_of(str(tmp_path / "a.csv"), None, "id.2")
    assert found.texts == [" Un caf\u00e9 au lait, s'il vous pla\u00eet ", "-5 degr\u00e9s dehors"]
    assert (found.labels, found.rows, found.without_text) == (["9", ""], [1, 3], 1)


def test_a_file_that_unpacks_to_too_much_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch) -> None:
    pq.write_table(pa.table({"text": ["the cat " * 100_000] * 1000}), tmp_path / "a.parquet")  # the text is stored once
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b"[" + b"[]," * 12_000_000))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"\n" * (MOST_UNPACKED + 1)))
    for name, most in (("a.parquet", 128), ("a.json.gz", 32), ("a.txt.gz", 128)):
        assert (tmp_path / name).stat().st_size < 2**20
        with pytest.raises(ValueError, match=rf"^{name}: unpacks to more than {most} MB; give a part of it\.$"):
            texts_of(str(tmp_path / name), None, None)
    pq.write_table(pa.table({"text": ["the cat " * 1000] * 500}), tmp_path / "b.parquet")
    monkeypatch.setattr(reading, "MOST_CHARACTERS", 3_000_000)  # a dictionary may hold a text once
    with pytest.raises(ValueError, match=r"more than 3,000,000 characters of text; give a part of it"):
        texts_of(str(tmp_path / "b.parquet"), None, None)


def test_the_page_searches_with_the_models_that_have_encoded_and_waits_only_where_none_has(state) -> None:
    corpus, columns = kept(state, SENTENCES, "c" * 32), state.models.columns
    assert corpus.answering(columns) == list(columns)  # the one that failed says why
    for column in columns[1:]:
        corpus.encodings[column] = Encoding(column, len(SENTENCES), 3)
    assert corpus.answering(columns) == [columns[0]]
    corpus.encodings[columns[0]] = Encoding(columns[0], len(SENTENCES))
    assert corpus.answering(columns) == list(columns)
    waiting = show.page_html(show.ask(state, Search, {"corpus": OWN_KEY, "key": "c" * 32}))
    assert re.findall(r"cse-failure\"><b>(.*?)<", waiting) == ["broken."]
    assert "SimCSE has encoded 0 % of your texts" in waiting
    corpus.encodings[columns[0]] = Encoding(columns[0], len(SENTENCES))
    said, groups, *_, placed = Clusters(state).near(
        True, (), 0.0, "", "first", "", OWN_KEY, [columns[0].name], "c" * 32
    )
    assert re.sub("<.*?>", "", said).startswith("SimCSE has encoded 0 % of your texts")
    assert said.endswith("The near-duplicates follow.</p>")
    assert (groups, placed) == ("", ())
    state.own_corpora.remove("c" * 32)


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
    assert chosen_corpus(state, DEMO_KEY, stranger).labels == state.demo.labels


def test_a_corpus_that_is_small_or_gone_leaves_the_demo_as_the_scale(state) -> None:
    kept(state, SENTENCES * 9, "c" * 32)
    assert [reference_corpus(state, OWN_KEY, key).key for key in ("c" * 32, "d" * 32, None)] == ["demo"] * 3


def test_a_corpus_is_saved_with_the_rows_and_columns_of_its_file(state) -> None:
    kept(state, ["=1+1 says the cat", "<script>alert(1)</script>", "a sad dog"], "7" * 32, ["a", "b", "c"])
    saved = corpus_table(state, OWN_KEY, "7" * 32)
    assert saved["file"] == "pets.csv"
    assert saved["text"].splitlines()[:2] == ["row,text,label", "1,=1+1 says the cat,a"]
    with pytest.raises(ValueError, match="There are no texts of yours"):
        corpus_table(state, OWN_KEY, "0" * 32)
    table = pa.table({"row": ["x", "y"]})
    named = OwnCorpus("pets.csv", ["a cat", "a dog"], table=table)
    named.text_name = "Subject"
    encoded(state, "8" * 32, named)
    saved = corpus_table(state, OWN_KEY, "8" * 32)
    assert saved["text"].splitlines() == ["cse_row,Subject,row", "1,a cat,x", "2,a dog,y"]


def test_a_file_is_read_by_the_chosen_models_and_by_another_once_it_is_chosen(state, tmp_path):
    (tmp_path / "pets.csv").write_text("body,kind\na small dog,dog\nthe big cat,cat\n")
    put_texts(state, str(tmp_path / "pets.csv"), "", "body", "kind", ["promptbert"], KEY)
    own = state.own_corpora.corpus(KEY)
    assert [column.name for column in own.encodings] == ["promptbert"]
    encode_by(state, own, ["simcse", "promptbert"])
    assert [column.name for column in own.encodings] == ["promptbert", "simcse"]
    said = put_texts(state, str(tmp_path / "pets.csv"), "", "body", "kind", ["elsewhere"], KEY)[0]
    assert "No model is called" in said
    state.own_corpora.remove(KEY)


def test_an_adaptation_is_offered_for_texts_that_are_enough_alone(state):
    for different, offered in ((319, False), (320, True)):
        texts = [f"ticket {number}" for number in range(different)]
        put_texts(state, None, "\n".join([*texts, *texts]), None, None, [], KEY)
        note = overview(state, KEY, state.own_corpora.corpus(KEY))
        assert ("adapt a model to it" in note) is offered
    state.own_corpora.remove(KEY)
