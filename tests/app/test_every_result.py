"""Every result of the page: the page, the endpoint, the files and a lesson have one table; wrong values are refused."""

import csv
import io
import json
from functools import cache

import gradio as gr
import pandas as pd
import pyarrow.parquet as pq
import pytest
from page_state import KEY, put_table, tiny_state

from cse.app import show
from cse.app.corpus.corpora import OWN_KEY
from cse.app.events import Linked, Run
from cse.app.files import FIGURES, FORMS, as_csv, as_json, as_parquet, as_sheet, file_of, place_form
from cse.app.html import alert
from cse.app.places.clusters import first_maps
from cse.app.results import RESULTS
from cse.app.results.adaptation import Adaptation
from cse.app.results.groups import Groups, Neighbours
from cse.app.results.map import Map
from cse.app.results.scores import Scores
from cse.app.state import open_state
from cse.app.validation import FieldError
from cse.models.names import BUNDLED_NAMES


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder):
    made = tiny_state(tmp_path_factory.mktemp("results"), bert_folder, ("simcse", "promptbert", "dcpcse", "conpvp"))
    made.demo.texts, made.demo.labels = made.demo.texts[::6], made.demo.labels[::6]
    put_table(made)
    return made


@pytest.fixture(scope="module")
def first_answer(state):
    """The answer to what a kind of result asks first, asked once."""
    return cache(lambda kind: show.ask(state, kind, kind().inputs()))


OWN = {"corpus": OWN_KEY, "key": KEY}
ASKED = [(kind, where) for kind in RESULTS for where in ({}, OWN) if kind.reads_corpus or not where]


@pytest.mark.parametrize(("kind", "where"), ASKED, ids=lambda value: getattr(value, "key", "own" if value else "demo"))
def test_page_endpoint_and_files_have_one_table(state, kind, where) -> None:
    values = {**kind().inputs(), **where}
    answer = show.ask(state, kind, values)
    frame = answer.frame
    assert not answer.failed
    if frame.empty and kind.key == "duplicates":  # there need be none
        return
    assert len(frame)
    if kind.public:
        assert show.endpoint(state, kind)(**values) == answer.json()
        json.dumps(answer.json(), allow_nan=False)
    rows = list(csv.reader(io.StringIO(as_csv(answer))))
    assert rows[0] == list(frame.columns)
    assert len(rows) == 1 + len(frame)
    assert len(json.loads(as_json(answer))["rows"]) == len(frame)
    stored = pq.read_table(io.BytesIO(as_parquet(answer))).to_pandas()
    assert list(stored.columns) == list(frame.columns)
    assert len(stored) == len(frame)
    assert len(list(csv.reader(io.StringIO(as_sheet(answer))))) == 1 + len(frame)
    sheet = answer.result.sheet(frame)
    assert not [
        cell for cell in sheet.to_numpy().ravel() if isinstance(cell, (dict, list))
    ]  # they are no cells of a paper
    html = show.page_html(answer)
    assert "Undefined" not in html
    assert html.count("<table") == html.count("</table>")
    assert len(answer.result.charts(frame)) <= max(kind.plots, 1)  # one may be for files alone
    sentence = answer.result.says(frame)
    assert sentence == "" or sentence[-1] in ".!?"


MAY_LACK_ROWS = [kind for kind in RESULTS if kind.lane not in ("none", "comparisons")]  # which ask no model, or refuse


@pytest.mark.parametrize("kind", MAY_LACK_ROWS, ids=lambda kind: kind.key)
def test_where_every_model_failed_the_endpoint_says_why_and_no_table_is_saved(kind) -> None:
    answer = show.Answer(kind(), pd.DataFrame(), {}, {"simcse": "SimCSE has no weights."})
    assert "SimCSE has no weights." in json.dumps(answer.json())
    for form in FORMS:
        if form.startswith("Table"):
            with pytest.raises(ValueError, match=r"^No model has an answer\.$"):
                file_of(answer, form, "one column (77 mm)", "http://127.0.0.1:7860/")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.key)
def test_every_form_is_a_file_or_says_why_not(first_answer, kind, form) -> None:
    answer = first_answer(kind)
    words = (answer, form, "one column (77 mm)", "http://127.0.0.1:7860/")
    if answer.frame.empty and form.startswith("Table"):
        with pytest.raises(ValueError, match=r"^The answer has no rows"):
            file_of(*words)
        return
    if (form in FIGURES and not answer.result.charts(answer.frame)) or (form.startswith("Code") and not kind.public):
        with pytest.raises(ValueError, match=r"^(This result has no chart|No code repeats this result).*[.]$"):
            file_of(*words)
    else:
        value = file_of(*words)
        assert value["text"]
        assert value["file"].startswith(kind.key)


def test_why_there_is_no_file_is_said_in_the_panel_without_markup() -> None:
    with gr.Blocks() as page:
        fields = {name: gr.Textbox() for name in ("task", "corpus", "models", "key")}
        place_form(open_state(BUNDLED_NAMES, ()), [show.Shown(Scores, fields, Linked((), Run(print, [], []), ()))])
    (file,) = (event.fn for event in page.fns.values() if getattr(event.fn, "__name__", "") == "file")
    asked = (Scores.title, "Figure (SVG)", "one column (77 mm)")
    saved, said = file(None, *asked, "geometry", "demo", [], "")
    assert saved == {}
    assert said == alert("This result has no chart; save it as a table.")
    saved, said = file(None, *asked, "sts", "demo", ["<b>"], "")
    assert saved == {}
    assert "<b>" not in said
    saved, said = file(None, *asked, "sts", "demo", [], "")
    assert saved["file"] == "scores.svg"
    assert said == ""


def test_code_is_offered_for_what_programs_can_ask_alone() -> None:
    offered = {}
    for kind in (Scores, Adaptation):
        with gr.Blocks() as page:
            place_form(open_state(BUNDLED_NAMES, ()), [show.Shown(kind, {}, Linked((), Run(print, [], []), ()))])
        (form,) = (block for block in page.blocks.values() if getattr(block, "label", "") == "As")
        offered[kind] = [name for name, _ in form.choices]
    assert offered[Scores] == [*FORMS]
    assert offered[Adaptation] == [form for form in FORMS if not form.startswith("Code")]


def test_the_shipped_maps_are_saved_in_every_form() -> None:
    shipped = open_state(list(BUNDLED_NAMES), ())
    assert first_maps(shipped)
    for kind in (Map, Groups, Neighbours):
        answer = show.ask(shipped, kind, kind().inputs())
        for form in FORMS:
            if form not in FIGURES or answer.result.charts(answer.frame):
                assert file_of(answer, form, "one column (77 mm)", "http://127.0.0.1:7860/")["text"], (kind, form)


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.key)
def test_wrong_values_are_refused_by_their_name(state, kind) -> None:
    for name, ask in kind.asks().items():
        for wrong in (None, [], {"a": 1}):
            with pytest.raises(FieldError) as refused:
                show.ask(state, kind, {**kind().inputs(), name: wrong})
            assert refused.value.field == ask.name
    with pytest.raises(FieldError, match="No model is called"):
        show.ask(state, kind, {**kind().inputs(), "models": ["nobody"]})
    if kind.reads_corpus:
        with pytest.raises(FieldError, match="corpus is unknown"):
            show.ask(state, kind, {**kind().inputs(), "corpus": "nowhere"})


def test_keys_titles_and_links_are_used_once() -> None:
    for values in ([kind.key for kind in RESULTS], [kind.title for kind in RESULTS]):
        assert len(set(values)) == len(values)
    for kind in RESULTS:
        names = [ask.link or name for name, ask in kind.asks().items()]
        assert len(set(names)) == len(names)
        assert not {"tab", "corpus", "models", "lesson", "step"} & set(names)


def test_a_model_is_shown_as_it_was_before_training(state) -> None:
    from cse.app.results.search import Search

    names = [column.name for column in state.models.own]
    both = show.ask(state, Search, {"query": "the cat", "models": [names[0], f"{names[0]} (before)"]})
    assert list(both.models) == [f"{names[0]} (before)", names[0]]
    start = state.models.encoder(state.models.own[0]).fingerprint
    assert both.models[names[0]] == start != both.models[f"{names[0]} (before)"]
