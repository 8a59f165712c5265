"""The modules of the page: columns of models, HTML in which no text of a user is markup, and what a client may send."""

import json
import re

import numpy as np
from app_models import MARKUP, write_model
from conftest import ROOT

from cse.analysis.attribution import Attribution, words
from cse.analysis.template_lab import Comparison, Trial
from cse.app.drawing import html
from cse.app.drawing.ranks import Found, search_html
from cse.app.models.columns import Column, columns, free_name
from cse.app.models.models import Failure, Models
from cse.app.sections.all_pairs import AllPairs, pairs_value
from cse.app.sections.template_lab import tried_html
from cse.app.sections.tokens import Reading, readings_html
from cse.app.sections.words import words_html
from cse.app.state.corpora import unknown_models_note
from cse.evaluation.metrics import Difference
from index import Hit

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{value}} ${alert(1)} `"


def test_a_model_that_appears_later_is_found_on_the_next_try(tmp_path, bert_folder):
    models = Models([str(tmp_path / "later")])
    call = {"function": lambda column, encoder: encoder.dim}
    (reason,) = models.apply(**call).values()
    assert isinstance(reason, Failure)
    write_model(tmp_path / "later", bert_folder, "simcse")
    assert models.apply(**call) == {"later": 32}


def test_repeated_models_share_a_column_and_names_are_told_apart(tmp_path, monkeypatch):
    for name in ("a/run", "b/run"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = columns(["simcse", "a/run", str(tmp_path / "a" / "run"), "b/run", "simcse"])
    assert found == (
        Column("simcse", "simcse"),
        Column("run", str(tmp_path / "a" / "run")),
        Column(str(tmp_path / "b" / "run"), str(tmp_path / "b" / "run")),
    )
    assert free_name(("", "a", "b"), {"a"}) == "b"


def attribution(*counts: int) -> Attribution:
    first, second = (np.linspace(-0.25, 0.5, count) if count > 1 else np.array([0.125]) for count in counts)
    return Attribution(0.75, (first, second), (0.5, 0.5))


def test_no_component_lets_a_users_text_through_as_markup():
    hit = Hit(rank=1, score=0.5, row=1, text=HOSTILE, position=0)
    reading = Reading([(HOSTILE, 0.5)], [(HOSTILE, 0.3)], [(HOSTILE, 0.4)], f"[X] {HOSTILE}", own=True)
    trial = Trial(f"[X] {HOSTILE}", 1.0, [(HOSTILE, 0.5)])
    pages = [
        words_html([HOSTILE, "b"], {HOSTILE: attribution(len(words(HOSTILE)), 1), "other": Failure(HOSTILE)}),
        search_html(5, {HOSTILE: Found([hit], HOSTILE, 1.0), "other": Found([], "Flat", 1.0)}, findable=True),
        tried_html(HOSTILE, {HOSTILE: Comparison(trial, trial, Difference(-1.25, -3, 0.5))}),
        readings_html(HOSTILE, {HOSTILE: reading, "other": Failure(HOSTILE)}),
        html.hint(HOSTILE),
    ]
    for page in pages:
        assert "<script" not in page
        assert "<img" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&gt;&lt;img" in page


def test_attributions_say_how_words_without_spaces_were_cut(monkeypatch):
    monkeypatch.setattr("cse.corpus.words.segmenter", lambda language: None)
    note = "Chinese words are character pairs (the script has no spaces); install jieba for words"
    assert note in words_html(["送餐", "b"], {"m": attribution(1, 1)})
    assert "character pairs" not in words_html(["a", "b"], {"m": attribution(1, 1)})


def test_pairs_carry_texts_as_data():
    pairs = pairs_value([HOSTILE, "b"], {MARKUP: AllPairs(np.eye(2), np.eye(2)), "c": Failure(HOSTILE)}, MARKUP)
    assert pairs["sentences"] == [HOSTILE, "b"]
    assert pairs["models"][0] == {"name": MARKUP, "cosines": [[1, 0], [0, 1]], "percentiles": [[1, 0], [0, 1]]}
    assert pairs["models"][1] == {"name": "c", "error": HOSTILE}
    assert json.loads(json.dumps(pairs)) == pairs
    for path in (ROOT / "cse" / "app").rglob("*.js"):
        script = path.read_text()
        assert "innerHTML" not in script
        assert "insertAdjacent" not in script
        assert len(script.splitlines()) <= 250


def found(*texts: str) -> Found:
    corpus = ["both", "mine", "deep", "x", "one"]
    hits = [
        Hit(rank, 1 - rank / 10, corpus.index(text) + 1, text, {}, corpus.index(text))
        for rank, text in enumerate(texts, start=1)
    ]
    return Found(hits, "Flat", 1.0, 3.2)


def test_search_has_a_row_per_sentence_and_its_rank_in_every_model():
    page = search_html(
        2, {"a": found("both", "mine", "deep"), "b": found("both", "deep", "x"), MARKUP: Failure("broken")}
    )
    rows = [
        row.split("</tr>")[0]
        for row in re.split(r'<tr data-row="\d"><th scope="row"><span class="cse-place">', page)[1:]
    ]
    shown = [row.replace("</span>", "").split("<")[0].strip() for row in rows]
    assert shown == ["1 both", "2 deep", "3 mine"]  # the mean rank decides
    assert '<span class="cse-rank cse-found">2</span><span class="cse-score">0.800</span>' in rows[1]
    assert '<span class="cse-rank">3</span>' in rows[1]  # beyond the two asked for
    assert ("only b" in rows[1], "only a" in rows[2], "only" in rows[0]) == (True, True, False)
    assert "·</span>" in rows[2]  # b does not have it at all
    weighted = '<td>0.55<span class="cse-hidden"> rank-biased</span></td><td>1.00</td>'  # 0.1 + 0.045 + 0.81 / 2
    assert f"b</th>{weighted}" in page
    assert 'a</th><td>1.00</td><td>0.50<span class="cse-hidden"> shared</span></td>' in page
    assert 'title="Flat, 3.2 ms"' in page
    assert "<small>Flat" not in page
    assert "map" not in page
    assert "broken" in page
    assert "<img" not in page
    assert "only" not in search_html(1, {"a": found("one"), "c": Failure("broken")})


def test_what_is_under_the_threshold_is_no_result_and_every_model_says_how_many_are_left():
    low, high = (found("both", "mine", "deep")._replace(least=least) for least in (0.75, 0.85))
    page = search_html(3, {"a": low, "b": high})
    assert "a</b>: 2 of 3 (cosine 0.750 or more)</li>" in page
    assert "b</b>: 1 of 3 (cosine 0.850 or more)</li>" in page
    assert (page.count('cse-found"'), page.count("only a"), "deep" in page) == (3, 1, False)
    none = search_html(3, {"a": low._replace(least=0.95), "b": high._replace(least=0.95)})
    assert "No sentence reaches the minimum percentile; lower it." in none
    assert "0 of 3" in none


def test_an_index_of_a_model_that_is_no_column_says_what_to_do():
    models = Models(["simcse", "dcpcse"])
    assert unknown_models_note(models.columns, models) == ""
    note = unknown_models_note([models.columns[0], Column("bert-mean", "bert", "mean")], models)
    assert note.startswith("Indexed with bert-mean, which is no column of this page. To compare, start the app with ")
