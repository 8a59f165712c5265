"""Search: the frame against cosines computed here, conditions on columns, hostile text, and what leaves the page."""

import csv
import io
import re
from html import unescape
from urllib.parse import parse_qs

import numpy as np
import pyarrow as pa
import pytest
from page_state import KEY, put_table, table, tiny_state

from cse.app import show
from cse.app.corpus.corpora import OWN_KEY
from cse.app.files import as_csv, as_latex, as_markdown, as_sheet, curl_code, python_code
from cse.app.models.naming import title
from cse.app.results.search import QUERIES, Search
from cse.app.state import chosen_corpus
from cse.app.validation import FieldError
from cse.vectors import unit_rows

HOSTILE = '<img src=x onerror=alert(1)> =cmd|"/c calc" [a](javascript:b) \\input{x} 50 % & "q"'


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder):
    return tiny_state(tmp_path_factory.mktemp("search"), bert_folder)


@pytest.fixture(scope="module")
def corpus(state):
    return put_table(state)


def asked(state, query="the cat", **values):
    return show.ask(state, Search, {"query": query, "corpus": OWN_KEY, "key": KEY, **values})


def test_the_hits_are_those_of_the_highest_cosines(state, corpus) -> None:
    answer = asked(state, k=4)
    for column in state.models.own:
        encoder = state.models.encoder(column)
        stored = chosen_corpus(state, OWN_KEY, KEY).vectors(column, encoder)  # rounded, some processors' bfloat16
        scores = (unit_rows(stored) @ unit_rows(encoder.encode(["the cat"])).T)[:, 0]
        best = np.argsort(-scores, kind="stable")[:4]
        rows = answer.frame[(answer.frame.model == column.name) & answer.frame.found]
        assert rows["position"].tolist() == best.tolist()
        assert rows["row"].tolist() == corpus.rows[best].tolist()  # counted as in the file, with the row that is empty
        assert rows["id"].tolist() == [f"T-{row - 1}" for row in rows["row"]]
        np.testing.assert_allclose(rows["cosine"], scores[best], atol=1e-5)
        random = (unit_rows(stored) @ unit_rows(stored).T)[np.triu_indices(len(stored), 1)]
        shares = [100 * np.mean(random < score) for score in scores[best]]
        assert rows["percentile"].tolist() == pytest.approx(shares, abs=0.5)
        np.testing.assert_allclose(stored, encoder.encode(corpus.sentences), atol=0.05)
    answers = answer.json()
    first = answers[state.models.own[0].name][0]
    assert set(first) == {"rank", "score", "text", "row", "fields"}
    assert set(first["fields"]) == {"id", "kind", "score"}


def test_nothing_is_said_of_all_models_while_one_still_reads_the_texts(state, corpus, monkeypatch) -> None:
    first, second = state.models.own[:2]
    assert "The models" in show.page_html(asked(state, k=2, models=[first.name, second.name]))
    own = chosen_corpus(state, OWN_KEY, KEY)
    monkeypatch.setattr(own.encodings[second], "done", 1)
    page = show.page_html(asked(state, k=2, models=[first.name, second.name]))
    assert f"not among these answers yet: {title(second.name)}" in page
    assert "The models" not in page


def test_the_ranks_are_joined_in_a_fold_where_there_are_two_models(state, corpus) -> None:
    first, second = (column.name for column in state.models.own[:2])
    for models, there in [([first], False), ([first, second], True)]:
        answer = asked(state, models=models)
        chart, fold = show.plot_updates(answer, Search)
        assert (chart["visible"], fold["visible"], chart["value"] is not None) == (there, there, there)
        assert ("Ordered by the mean rank" in show.page_html(answer)) == there


def test_the_examples_of_the_page_are_texts_of_the_chosen_corpus(state, corpus) -> None:
    def links(corpus, key):
        html = show.examples_html(state, Search, "search", ["q", "k"], corpus, key)
        return [parse_qs(unescape(address)) for address in re.findall(r'href="\?([^"]*)"', html)]

    assert [link["q"] for link in links("demo", "")] == [[query] for query in QUERIES]
    assert links(OWN_KEY, "9" * 32) == links("demo", "")  # texts that are gone
    own = links(OWN_KEY, KEY)
    assert len(own) == 3
    for link in own:
        assert link["tab"] == ["search"]
        assert link["q"][0] in {" ".join(text.split()) for text in corpus.sentences}


def test_a_condition_picks_rows(state, corpus) -> None:
    answer = asked(state, k=50, where="kind = 'dog' and score > 2")
    found = answer.frame[answer.frame.found]
    assert set(found["kind"]) == {"dog"}
    assert (found["score"].astype(float) > 2).all()
    columns = (corpus.table[name].to_pylist() for name in ("id", "kind", "score"))
    names = [name for name, kind, score in zip(*columns, strict=True) if kind == "dog" and score > 2]
    assert sorted(set(found["id"])) == sorted(names)
    assert f"{len(names)} rows meet the condition." in answer.notes
    assert "No row meets the condition." in asked(state, where="kind = 'whale'").notes
    assert asked(state, where="kind = 'dog'", threshold=100.0).notes == (
        "7 rows meet the condition.", "No text reaches the minimum percentile; lower it.",
    )  # fmt: skip
    for wrong in ("colour = 1", "1; drop table rows", "load_extension('x')"):
        with pytest.raises(FieldError, match="cannot read the condition") as refused:
            asked(state, where=wrong)
        assert refused.value.field == "The condition"
    texts = corpus.sentences
    body = asked(state, k=50, where=f"body = '{texts[5]}'")  # the column of the texts has its own name
    assert set(body.frame["text"]) == {texts[5]}
    with pytest.raises(ValueError, match="sends your texts without the other columns, which the condition reads"):
        python_code(body, "http://x/")


def test_a_threshold_is_a_percentile_of_the_chosen_corpus(state, corpus) -> None:
    answer = asked(state, k=50, threshold=30.0)
    found = answer.frame[answer.frame.found]
    assert (found["percentile"] >= 29).all()
    assert len(found) < 50 * len(state.models.own)
    assert answer.reference.startswith("pets.csv")
    assert "pets.csv" in show.page_html(answer)


def test_hostile_texts_are_shown_and_saved_as_they_are(state) -> None:
    texts = [HOSTILE, "=1+1", *table()["body"].to_pylist()]
    count = len(texts)
    rows = pa.table({"id": ["@x"] * count, "body": texts, "kind": ["<b>"] * count})
    put_table(state, rows, "<i>.csv")
    answer = asked(state, HOSTILE, k=3)
    html = show.page_html(answer)
    assert "<img" not in html
    assert "<b>: " not in html
    assert "&lt;img src=x" in html
    saved = list(csv.DictReader(io.StringIO(as_csv(answer))))
    assert saved[0]["text"] == HOSTILE  # to the letter
    guarded = list(csv.DictReader(io.StringIO(as_sheet(answer))))
    assert any(row["id"] == "'@x" for row in guarded)
    assert not re.search(
        r"(?<!\\)[%&]", as_latex(answer).split("\\midrule")[1].split("\\bottomrule")[0].replace(" & ", " ")
    )
    assert "<img" not in as_markdown(answer).replace("\\<img", "")
    assert KEY not in python_code(answer, "http://x/")
    with pytest.raises(ValueError, match="curl does not send your texts"):
        curl_code(answer, "http://x/")
