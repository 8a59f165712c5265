"""The chosen corpus: what is read from files and lines, what is refused, vectors, exact search, nothing left behind."""

import asyncio
import base64
import gzip
import io
import json
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from app_models import write_model
from conftest import SENTENCES
from openpyxl import Workbook
from starlette.applications import Starlette

import cse
from cse.analysis.calibration import percentile, random_cosines
from cse.app import validation
from cse.app.api.corpus_api import checked, corpus_endpoints
from cse.app.corpus import reading
from cse.app.corpus.bar import status_html
from cse.app.corpus.chosen import ChosenCorpus, choices_of, chosen_corpus, reference_corpus
from cse.app.corpus.export import PATH, file_route
from cse.app.corpus.exports import taken
from cse.app.corpus.pairs import drawn_pair, near_pairs
from cse.app.corpus.reading import MOST_UNPACKED, file_texts, preview
from cse.app.corpus.scores import corpus_scores, scores_html
from cse.app.corpus.texts_form import described, read
from cse.app.drawing.distribution import placed_html
from cse.app.export.download import as_csv, as_json, curl_code, python_code
from cse.app.export.section import take
from cse.app.models.models import Failure, plain
from cse.app.results.duplicates import Duplicates, tables
from cse.app.results.map import MAX_LINES, Map
from cse.app.sections.search import find_all, ranking, search
from cse.app.sections.similarity import name_of, placed
from cse.app.server.bodies import MOST_BODY
from cse.app.session import Session
from cse.app.show import ask
from cse.app.state.app_state import AppState, open_state
from cse.app.state.corpora import DEMO_KEY, OWN_KEY
from cse.app.state.encodings import Encoding
from cse.app.state.own_corpora import GONE, OwnCorpus
from cse.evaluation.clustering import label_scores
from cse.vectors import cosines, unit_rows
from index import BuildSettings, VectorIndex


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> AppState:
    root = tmp_path_factory.mktemp("own")
    folders = [write_model(root / name, bert_folder, name) for name in ("simcse", "promptbert")]
    broken = write_model(root / "broken", bert_folder, "simcse")
    (broken / "model.safetensors").write_bytes(b"cut off")
    return open_state([str(folder) for folder in (*folders, broken)], ())


def kept(state: AppState, texts: list[str], key: str, labels: list[str] | None = None) -> ChosenCorpus:
    """The corpus once a visitor's texts were encoded."""
    return encoded(state, key, OwnCorpus("pets.txt", texts, labels))


def encoded(state: AppState, key: str, own: OwnCorpus) -> ChosenCorpus:
    state.own_corpora.put(key, own, state.models.columns)
    while own.current is not None:
        time.sleep(0.01)
    return chosen_corpus(state, OWN_KEY, key)


@pytest.mark.parametrize(
    ("name", "content", "column"),
    [
        ("a.txt", b"the cat\na dog\n", ""),
        ("a.exe", b"the cat\na dog\n", ""),
        ("a.csv", b"a,b\nthe cat,2\na dog\n", "a"),
        ("a.jsonl", b'{"m": {"text": "the cat"}}\n{"m": {"text": "a dog"}}\n', "m.text"),
        ("a.csv", b'sentence,n\n"the cat",1\na dog,2\n', ""),
        ("a.CSV", b"text\nthe cat\na dog\n", ""),
        ("a.tsv", b"body\tn\nthe cat\t1\na dog\t2\n", "body"),
        ("a.csv", b"the cat\na dog\n", ""),
        ("a.csv", b"pets\nthe cat\na dog\n", "pets"),
    ],
)
def test_an_uploaded_file_gives_its_sentences(tmp_path, name, content, column) -> None:
    (tmp_path / name).write_bytes(content)
    found = file_texts(str(tmp_path / name), column, None)
    assert (found.texts, found.labels, found.rows, found.without_text) == (["the cat", "a dog"], None, [1, 2], 0)


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.txt", b" \n", "", "a.txt: no text in it; give a text a line."),
        (
            "a.txt",
            b"MZ\x90\x00 binary",
            "",
            "a.txt: line 1 holds a NUL byte; give a text file, not a binary one",
        ),
        ("a.txt", b"a\n" * 50_001, "", "The file has more than 50,000 texts; give a part of it."),
        ("a.txt", b"a" * (16 * 2**20 + 1), "", "a.txt: has more than 16 MB; give a part of it."),
        ("a.csv", b"a,b\n1,2\n", "", "a.csv: choose the column of the texts: a or b."),
        ("a.csv", b"a,b\n1,2\n", "c", "a.csv: no column 'c'; choose the column of the texts: a or b."),
        ("a.csv", b"cat\ndog\n", "", "a.csv: choose 'cat' if it is the column's name, or give a .txt file."),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", "a", "a.csv: line 3 has 3 cells, not 2 as the first row; "),
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
    (tmp_path / "a.txt").write_text("A cat, a dog.\n\n It rains \n")
    assert preview(str(tmp_path / "a.txt")) == ([], [["A cat, a dog."], ["It rains"]], None)
    (tmp_path / "b.txt").write_text("id,body\n\n7,a cat\n")
    assert preview(str(tmp_path / "b.txt")) == (["id", "body"], [["7", "a cat"]], None)


def test_a_table_of_any_kind_is_read_with_its_texts_verbatim_and_the_numbers_of_its_rows(tmp_path) -> None:
    content = "id;text;;id\n1; Un caf\u00e9 au lait, s'il vous pla\u00eet ;x;9\n;;;\n3;-5 degr\u00e9s dehors;;\n"
    (tmp_path / "a.csv").write_bytes(content.encode("cp1252"))
    book = Workbook()
    for line in content.splitlines():
        book.active.append([cell or None for cell in line.split(";")])
    book.save(tmp_path / "a.xlsx")
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(content.replace(";", "\t").encode()))
    for name in ("a.csv", "a.xlsx", "a.tsv.gz"):
        found = file_texts(str(tmp_path / name), None, "id.2")
        assert found.texts == [" Un caf\u00e9 au lait, s'il vous pla\u00eet ", "-5 degr\u00e9s dehors"]
        assert (found.labels, found.rows, found.without_text) == (["9", ""], [1, 3], 1)
        assert preview(str(tmp_path / name)).text == "text"
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 noir\n\n two \n")
    assert file_texts(str(tmp_path / "a.txt"), None, None) == (["caf\u00e9 noir", " two "], None, [1, 3], 0)


def test_a_file_that_unpacks_to_too_much_is_refused_before_it_fills_the_memory(tmp_path) -> None:
    pq.write_table(pa.table({"text": ["the cat " * 100_000] * 1000}), tmp_path / "a.parquet")  # the text is stored once
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b"[" + b"[]," * 12_000_000))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"\n" * (MOST_UNPACKED + 1)))
    for name, most in (("a.parquet", 128), ("a.json.gz", 32), ("a.txt.gz", 128)):
        assert (tmp_path / name).stat().st_size < 2**20
        with pytest.raises(ValueError, match=rf"^{name}: unpacks to more than {most} MB; give a part of it\.$"):
            file_texts(str(tmp_path / name), None, None)


def test_a_column_of_labels_goes_with_the_texts(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("kind,body\npet,a cat\n,\ntool,a saw\n")
    found = file_texts(str(tmp_path / "a.csv"), "body", "kind")
    assert (found.texts, found.labels, found.rows, found.without_text) == (
        ["a cat", "a saw"],
        ["pet", "tool"],
        [1, 3],
        1,
    )
    with pytest.raises(ValueError, match=r"^a\.csv: texts and labels are both in 'body'"):
        file_texts(str(tmp_path / "a.csv"), "body", "body")
    with pytest.raises(ValueError, match=r"^a\.csv: no column 'sort'"):
        file_texts(str(tmp_path / "a.csv"), "body", "sort")


@pytest.mark.parametrize(
    ("columns", "text", "labels"),
    [
        ("id,text,Label", "text", "Label"),
        ("title,topic", "title", "topic"),
        ("id,title,topic", None, "topic"),
        ("id,text", "text", "none"),
        ("id,body", None, "none"),
    ],
)
def test_columns_with_usual_names_are_chosen_for_a_start(tmp_path, columns, text, labels) -> None:
    (tmp_path / "a.csv").write_text(f"{columns}\n{','.join('x y' for _ in columns.split(','))}\n")
    chosen, labelled, _, question = described(str(tmp_path / "a.csv"))
    assert (chosen["value"], labelled["value"]) == (text, labels)
    assert ("Which column" in question) is (text is None)


def test_rows_without_a_text_are_told_and_the_tables_have_the_rows_of_the_file(state, tmp_path) -> None:
    (tmp_path / "gap.csv").write_text("id,body\n1,a dog\n2,\n3, \n4,a dog\n5,the sun\n")
    key, column = "9" * 32, state.models.columns[0]
    chosen = encoded(state, key, read(False, str(tmp_path / "gap.csv"), "", "body", None))
    own = state.own_corpora.corpus(key)
    assert "2 rows without a text were left out." in status_html(OWN_KEY, own)
    assert "left out" not in status_html(DEMO_KEY, own)
    assert (chosen.label, chosen.texts, list(chosen.numbers)) == (
        "gap.csv (3)",
        ["a dog", "a dog", "the sun"],
        [1, 4, 5],
    )
    session = Session(state, chosen, chosen, state.models.columns[:1])
    frame = Duplicates(nines=5.0).frame(session)
    made = tables(frame, session)
    assert [row[1] for row in made["groups.csv"][1]] == [1, 4]
    assert [row[:2] for row in made["unique.csv"][1]] == [(1, "a dog"), (5, "the sun")]
    answer = ask(state, Duplicates, {"corpus": OWN_KEY, "key": key, "models": [column.name]}).json()
    assert [(member["row"], member["number"]) for member in answer["page"][0]] == [(0, 1), (1, 4)]
    assert Map(groups=2).frame(session)["row"].tolist() == [1, 4, 5]


def test_rows_are_the_lines_of_a_file_and_nothing_is_told_of_blank_ones(state, tmp_path) -> None:
    (tmp_path / "a.txt").write_text("a dog\n\nthe sun\n")
    for numbers, own in (
        ([1, 3], read(False, str(tmp_path / "a.txt"), "", None, None)),
        ([1, 2], read(True, None, "a dog\n\nthe sun", None, None)),
    ):
        chosen = encoded(state, "8" * 32, own)
        assert (chosen.texts, list(chosen.numbers)) == (["a dog", "the sun"], numbers)
        assert "left out" not in status_html(OWN_KEY, own)
    assert list(chosen_corpus(state, DEMO_KEY, None).numbers) == list(range(1, 1201))


def test_a_file_that_cannot_be_read_stays_and_its_fault_is_told(tmp_path) -> None:
    table, text = tmp_path / "a.csv", tmp_path / "a.txt"
    table.write_text("id,<b>\n1,<img src=x>\n")
    text.write_bytes(b"a cat\n\x00")
    column, labels, rows, status = described(str(table))
    assert (column["choices"], column["value"], column["visible"]) == (["id", "<b>"], None, True)
    assert (labels["choices"], labels["value"]) == (["none", "id", "<b>"], "none")
    assert "Which column holds the texts?" in status
    assert ("&lt;img src=x&gt;" in rows["value"], "<img" in rows["value"]) == (True, False)
    *hidden, status = described(str(text))
    assert [each["visible"] for each in hidden] == [False] * 3
    assert "a.txt: line 2 holds a NUL byte" in status
    assert text.exists()


def test_pasted_lines_have_one_limit_and_a_request_has_room_for_them() -> None:
    tickets = [f"ticket {number:4} says that my printer on the third floor is broken" for number in range(2000)]
    assert {len(ticket) for ticket in tickets} == {61}
    assert validation.lines("\n".join(tickets), 1, MAX_LINES) == tickets
    for most, character, length in ((MAX_LINES, "\u732b", 340),):
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
        rows = corpus.vectors(column, encoder)
        assert cosines(rows, encoder.encode(SENTENCES)).min() > 0.999  # bfloat16, kept as float16
        scores = unit_rows(rows) @ unit_rows(encoder.encode(["a sad dog"]))[0]
        hits = found[column.name].hits
        assert [hit.text for hit in hits] == [SENTENCES[row] for row in np.argsort(-scores)]
        np.testing.assert_allclose([hit.score for hit in hits], np.sort(scores)[::-1], atol=1e-5)
        assert found[column.name].recall == 1.0


def test_the_page_searches_with_the_models_that_have_encoded_and_waits_only_where_none_has(state) -> None:
    corpus, columns = kept(state, SENTENCES, "c" * 32), state.models.columns
    assert corpus.answering(columns) == list(columns)  # the one that failed says why
    for column in columns[1:]:
        corpus._own.encodings[column] = Encoding(column, len(SENTENCES), 3)
    assert corpus.answering(columns) == [columns[0]]
    corpus._own.encodings[columns[0]] = Encoding(columns[0], len(SENTENCES))
    assert corpus.answering(columns) == list(columns)
    state.own_corpora.remove("c" * 32)


def test_a_column_that_comes_later_encodes_the_texts_when_it_is_asked_for_them(state) -> None:
    corpus, column = kept(state, SENTENCES, "e" * 32), state.models.columns[0]
    del corpus._own.encodings[column]
    with pytest.raises(ValueError, match="SimCSE has encoded 0 % of your texts"):
        corpus.vectors(column, state.models.encoder(column))
    while corpus.ready([column]) == []:
        time.sleep(0.01)
    assert corpus.vectors(column, state.models.encoder(column)).shape == (7, 32)


def test_what_was_found_in_it_is_taken_away_without_its_key_and_with_code_that_sends_the_texts(state) -> None:
    secret = "a" * 32
    kept(state, ["the cat", "a sad dog"], secret)
    inputs = {"query": "a sad dog", "k": 1, "corpus": OWN_KEY, "threshold": 0.0, "key": secret}

    def found(query, k=5, corpus="demo", threshold=0.0, key=""):
        return plain(search(state, query, k, corpus, threshold, key), ranking)

    answers = {"search": found}
    taken = take(state, answers, "search", inputs)
    assert "error" in taken.answer.pop("broken")
    assert {name: rows[0]["text"] for name, rows in taken.answer.items()} == dict.fromkeys(taken.models, "a sad dog")
    assert secret not in as_json(taken) + as_csv(taken)
    with pytest.raises(ValueError, match=r"^There are no texts of yours on this server\."):
        take(state, answers, "search", {**inputs, "key": "f" * 32})
    code = python_code(taken, "http://localhost/")
    assert secret not in code
    assert 'open("texts.txt"' in code
    assert "    key=key,\n" in code
    with pytest.raises(
        ValueError, match=r"curl does not send your texts; take Python, which reads them from texts\.txt"
    ):
        curl_code(taken, "http://localhost/")
    for each in (python_code, curl_code):
        with pytest.raises(ValueError, match="No code repeats this result, which only your page has"):
            each(replace(taken, private=True), "http://localhost/")


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


def test_pairs_are_drawn_from_a_corpus_near_ones_by_its_vectors(state) -> None:
    corpus = kept(state, SENTENCES, "1" * 32)
    column = state.models.columns[0]
    unit = unit_rows(corpus.vectors(column, state.models.encoder(column)))
    matrix = unit @ unit.T - 2 * np.eye(7)
    for seed in range(7):
        first, near = drawn_pair(state, corpus, "near", Random(seed))
        assert near == SENTENCES[matrix[SENTENCES.index(first)].argmax()]
        first, other = drawn_pair(state, corpus, "random", Random(seed))
        assert first != other
    pairs = near_pairs(state, corpus)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    wanted = {frozenset((SENTENCES[row], SENTENCES[near])) for row, near in enumerate(matrix.argmax(axis=1))}
    assert wanted <= {frozenset(pair) for pair in pairs}
    with pytest.raises(ValueError, match=r"pets\.txt \(1\) has one text; a pair needs two"):
        near_pairs(state, kept(state, ["a cat"], "2" * 32))
    assert near_pairs(state, kept(state, ["a cat"] * 5, "3" * 32)) == []


def test_models_are_scored_on_the_labels_of_a_corpus_as_the_evaluation_scores_them(state, tmp_path) -> None:
    labels = ["x" if "a" in text.split() else "y" for text in SENTENCES]
    corpus = kept(state, SENTENCES * 2, "4" * 32, labels * 2)
    answers = corpus_scores(state, corpus)
    assert isinstance(answers["broken"], Failure)
    for column in state.models.columns[:2]:
        vectors = corpus.vectors(column, state.models.encoder(column))
        assert answers[column.name] == label_scores(vectors, labels * 2)
    shown = scores_html(corpus, answers)
    assert f"{max(answers[name]['nmi'] for name in ('simcse', 'promptbert')):.1f}" in shown
    assert "damaged" in shown
    with pytest.raises(ValueError, match=r"has no labels\. Upload a table and choose its column of labels"):
        corpus_scores(state, kept(state, SENTENCES, "5" * 32))
    with pytest.raises(ValueError, match="has 7 labels for 7 labelled texts; 2 to 200 can be scored"):
        corpus_scores(state, kept(state, SENTENCES, "6" * 32, SENTENCES))


def test_a_missing_label_is_none_of_the_labels(state) -> None:
    labels = ["x" if "a" in text.split() else "y" for text in SENTENCES]
    whole = kept(state, SENTENCES * 2, "8" * 32, labels * 2)
    some = kept(state, [*SENTENCES * 2, "what", "is this"], "9" * 32, [*labels * 2, "", ""])
    answers = corpus_scores(state, some)
    assert plain(answers) == plain(corpus_scores(state, whole))
    shown = scores_html(some, answers)
    assert "14 texts with 2 labels" in shown
    assert "2 texts without a label left out." in shown
    assert kept(state, SENTENCES, "a" * 32, [""] * 7).labels is None
    assert checked(["a cat", "a dog"], [" pets ", None])[1] == ["pets", ""]


def test_a_pair_is_judged_by_random_pairs_of_the_chosen_corpus(state) -> None:
    texts = [f"{text} {number}" for text in SENTENCES for number in ("one", "two", "three")]
    corpus, key = kept(state, [*texts, *texts], "b" * 32), "b" * 32
    reference = reference_corpus(state, OWN_KEY, key)
    answers, _ = placed(state, *SENTENCES[:2], reference=reference)
    for column in state.models.columns[:2]:
        encoder = state.models.encoder(column)
        wanted = random_cosines(corpus.vectors(column, encoder)[: len(texts)])
        np.testing.assert_allclose(reference.random_cosines(state, column, encoder), wanted, atol=1e-5)
        first, other = unit_rows(encoder.encode(SENTENCES[:2]))
        assert answers[column.name].percentile == pytest.approx(percentile(float(first @ other), wanted), abs=0.5)
    shown = placed_html(answers, {}, corpus=name_of(reference))
    assert "random pairs of Pasted (42)" in shown.replace(corpus.label, "Pasted (42)")
    assert "the demo corpus" not in shown
    kept(state, texts, key)  # another corpus under the same key has another scale
    assert reference_corpus(state, OWN_KEY, key).number != reference.number


def test_a_corpus_that_is_small_or_gone_leaves_the_demo_as_the_scale(state) -> None:
    kept(state, SENTENCES * 9, "c" * 32)
    assert [reference_corpus(state, OWN_KEY, key).key for key in ("c" * 32, "d" * 32, None)] == ["demo"] * 3
    assert name_of(reference_corpus(state, "demo", None)) == "the demo corpus"


def test_vectors_an_index_and_a_table_are_taken_and_other_commands_open_them(state, tmp_path) -> None:
    key, column = "7" * 32, state.models.columns[0]
    texts = ["=1+1 says the cat", "<script>alert(1)</script>", "a sad dog"]
    corpus = kept(state, texts, key, ["a", "b", "c"])
    encoder = state.models.encoder(column)

    def file(kind: str, model: str = "simcse") -> tuple[str, bytes]:
        sent = taken(state, kind, OWN_KEY, key, model)
        return sent.name, b"".join(sent.parts)

    name, content = file("npy")
    assert name == "pets-simcse.npy"
    np.testing.assert_array_equal(np.load(io.BytesIO(content)), corpus.vectors(column, encoder))
    name, content = file("csv")
    assert (name, content.decode().splitlines()[:2]) == ("pets.csv", ["row,text,label", "1,=1+1 says the cat,a"])
    name, content = file("zip")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(tmp_path)
    index = VectorIndex.load(tmp_path / "pets", encoder.fingerprint)
    assert [hit.text for hit in index.hits(encoder.encode("a sad dog"), 1)] == ["a sad dog"]
    assert index.manifest.model == "simcse"  # without the server's folder
    assert str(Path(column.model).parent) not in (tmp_path / "pets" / "manifest.json").read_text()
    for kind, model, wrong in (("exe", "simcse", "The file is unknown"), ("npy", "etc", "The model is unknown")):
        with pytest.raises(ValueError, match=wrong):
            file(kind, model)
    with pytest.raises(ValueError, match="damaged"):
        file("npy", "broken")
    with pytest.raises(ValueError, match="There are no texts of yours"):
        taken(state, "npy", OWN_KEY, "0" * 32, "simcse")


def test_sentences_and_vectors_of_an_index_folder_are_chosen_like_any_corpus(state, tmp_path, bert_folder) -> None:
    column = state.models.columns[0]
    encoder = state.models.encoder(column)
    settings = BuildSettings(model=column.model, fingerprint=encoder.fingerprint, corpus="pets.txt")
    VectorIndex.build([(SENTENCES, encoder.encode(SENTENCES))], tmp_path / "index", settings=settings)
    opened = open_state([each.model for each in state.models.columns[:2]], [tmp_path / "index"])
    corpus = chosen_corpus(opened, "pets.txt", None)
    assert (list(corpus.texts), corpus.labels, corpus.ready(opened.models.columns)) == (SENTENCES, None, [column])
    np.testing.assert_allclose(corpus.vectors(column, encoder), unit_rows(encoder.encode(SENTENCES)), atol=1e-6)
    with pytest.raises(ValueError, match="PromptBERT has no index of these sentences"):
        corpus.vectors(opened.models.columns[1], encoder)
    assert [key for _, key in choices_of(opened)] == ["demo", "pets.txt", "own"]


def test_a_search_that_finds_fewer_than_are_shown_says_so_with_the_command_that_finds_more(state, tmp_path) -> None:
    column = state.models.columns[0]
    encoder, texts = state.models.encoder(column), [f"{text} {number}" for text in SENTENCES for number in range(9)]
    settings = BuildSettings(
        factory="IVF16,Flat", nprobe=1, model=column.model, fingerprint=encoder.fingerprint, corpus="pets.txt"
    )  # fmt: skip
    VectorIndex.build([(texts, encoder.encode(texts))], tmp_path / "index", settings=settings)
    opened = open_state([column.model], [tmp_path / "index"])
    (found,) = find_all(opened, texts[0], 50, chosen_corpus(opened, "pets.txt", None)).values()
    assert found.note == (
        f"found {len(found.hits)} of 50 hits, since this IVF16,Flat index searched 1 of its cells; a larger --probe of "
        "python -m scripts.search, such as 4, finds more"
    )
    (enough,) = find_all(opened, texts[0], 1, chosen_corpus(opened, "pets.txt", None)).values()
    assert enough.note == ""


def test_a_table_that_unpacks_to_gigabytes_is_refused_before_it_is_read(tmp_path, monkeypatch) -> None:
    given = pa.table({"text": ["the cat " * 1000] * 500, "n": range(500)})
    pq.write_table(given, tmp_path / "a.parquet", use_dictionary=False)
    assert len(file_texts(str(tmp_path / "a.parquet"), None, "n").texts) == 500
    monkeypatch.setattr(reading, "MOST_CHARACTERS", 3_000_000)  # a dictionary may hold a text once
    with pytest.raises(ValueError, match=r"more than 3,000,000 characters of text; give a part of it"):
        file_texts(str(tmp_path / "a.parquet"), None, None)
    monkeypatch.setattr(reading, "MOST_UNPACKED", 2**20)
    with pytest.raises(ValueError, match=r"^a\.parquet: unpacks to more than 1 MB; give a part of it\.$"):
        preview(str(tmp_path / "a.parquet"))


def test_a_program_keeps_texts_takes_their_vectors_and_deletes_them(state) -> None:
    texts, vectors, forget = corpus_endpoints(state)
    answer = texts(SENTENCES, ["x"] * 7)
    key = answer["key"]
    while any(each["done"] < 7 and not each["error"] for each in texts([], key=key)["models"].values()):
        time.sleep(0.01)
    assert (len(key), answer["texts"], list(answer["models"])) == (32, 7, ["simcse", "promptbert", "broken"])
    column = state.models.columns[0]
    found = vectors("simcse", key=key, start=2)
    rows = np.frombuffer(base64.b64decode(found["float32"]), "<f4").reshape(found["shape"])
    encoder = state.models.encoder(column)
    np.testing.assert_array_equal(rows, chosen_corpus(state, OWN_KEY, key).vectors(column, encoder)[2:])
    assert (found["total"], found["start"], found["fingerprint"]) == (7, 2, encoder.fingerprint)
    assert (forget(key), forget(key)) == ({"deleted": True}, {"deleted": False})
    for wrong, cure in (
        ((SENTENCES, ["x"]), "Send a label for each of the 7 texts"),
        (("a cat",), "The texts are not a list"),
        ((["a", " "],), "Text 2 is empty"),
        ((["a"] * 50_001,), "The texts are 50,001; send a list of 1 to 50,000"),
        ((["a"], None, "guess"), "no key to keep texts under"),
        (([], None, key), "There are no texts of yours"),
    ):
        with pytest.raises(ValueError, match=cure):
            texts(*wrong)
    with pytest.raises(ValueError, match="The start must be a whole number from 0 to 1199"):
        vectors("simcse", "demo", start=1200)


@pytest.mark.parametrize("body", ["{", "[]", "[" * 100_000 + "]" * 100_000, '{"kind": {"a": []}}', '{"kind": "npy"}'])
def test_a_request_for_a_file_that_cannot_be_read_is_a_line(body: str) -> None:
    app = Starlette(routes=[file_route()])
    app.get_blocks = lambda: SimpleNamespace(app_state=SimpleNamespace(corpora={}, own_corpora={}))  # type: ignore[attr-defined]

    async def sent() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
            return await client.post(PATH, content=body)

    answer = asyncio.run(sent())
    assert answer.status_code == 422
    assert "\n" not in answer.json()["detail"]
