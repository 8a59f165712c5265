"""Errors of input are shown at their fields, and clear the results of earlier input."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from cse.app.corpus.bar import corpus_bar
from cse.app.forms.events import Run
from cse.app.forms.refusals import refusing
from cse.app.forms.visitor_key import visitor_key
from cse.app.models.models import Models
from cse.app.sections.all_pairs import list_section
from cse.app.sections.changes import changes_section
from cse.app.sections.clusters import clusters_tab
from cse.app.sections.map_link import map_hook
from cse.app.sections.prefix import xray_section
from cse.app.sections.probe import pairs_section
from cse.app.sections.search import search_tab
from cse.app.sections.similarity import pair_section
from cse.app.sections.template_lab import lab_section
from cse.app.sections.tokens import tokens_tab
from cse.app.sections.words import attributions
from cse.app.state.app_state import AppState, open_state
from cse.app.validation import PAIR, FieldError


@pytest.fixture
def fields() -> dict[str, gr.components.Component]:
    with gr.Blocks():
        return {
            "The source": gr.Radio(["demo"], label="Source"),
            "The first": gr.Textbox(label="Sentence A"),
            "The second": gr.Textbox(label="Sentence B"),
        }


def test_a_refused_input_empties_the_outputs_and_the_next_answer_takes_the_reason_back(fields) -> None:
    def twice(first: str, second: str) -> tuple[str, dict[str, str]]:
        if not second:
            raise FieldError("The second", "Sentence B is empty; write <b>a few</b> words.")
        return first, {"second": second}

    with gr.Blocks():
        outputs = [gr.HTML("old"), gr.HTML({"old": 1}, html_template="<p></p>")]
        run = refusing(twice, {name: fields[name] for name in ("The first", "The second")}, outputs)
    ids = [fields[name].elem_id for name in ("The first", "The second")]
    assert None not in ids
    assert len(run.outputs) == 3
    text, value, refusal = run.fn("a", "")
    assert (text, value) == ("", {})
    assert (refusal["about"], refusal["fields"]) == (ids[1], ids)
    assert refusal["reason"] == "Sentence B is empty; write <b>a few</b> words."  # the script shows it as text
    *results, answered = run.fn("a", "b")
    assert results == ["a", {"second": "b"}]
    assert "about" not in answered
    assert answered["number"] > refusal["number"]


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    """The runs of the page's forms; no model is opened."""
    state: AppState = open_state(["simcse"], ())
    with gr.Blocks():
        bar = corpus_bar(state, visitor_key())
        pair, pairs = pair_section(state, bar, None), list_section(state, None)
        words = tokens_tab(state)
        changes, disagreements = changes_section(state, None), pairs_section(state, bar, None)
        xray, _ = xray_section(state, None)
        return {
            "pair": pair.run, "pairs": pairs.run, "tokens": words.run, "changes": changes.run,
            "xray": xray.run, "disagreements": disagreements.run, "search": search_tab(state, bar).run,
            "lab": lab_section(state, words.run.inputs[0]).run,
            "map": clusters_tab(state, None, gr.Tabs(), map_hook(), bar).run,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("form", "values", "wrong"),
    [
        ("pair", ["", "a", "demo", ""], 0),
        ("pair", ["a", "", "demo", ""], 1),
        ("pairs", ["a", "simcse", "", "cosine"], 0),
        ("tokens", ["", 5, 1], 0),
        ("tokens", ["a", 0, 1], 1),
        ("tokens", ["a", 5, 2], 2),
        ("search", ["", 5, 0, "demo", ""], 0),
        ("search", ["a", 0, 0, "demo", ""], 1),
        ("search", ["a", 5, 101, "demo", ""], 2),
        ("search", ["a", 5, 0, "elsewhere", ""], 3),
        ("lab", ["", "a"], 0),
        ("lab", ["[X]", "a"], 0),
        ("lab", ["[X] [MASK]" + "." * 300, "a"], 0),
        ("lab", ["[X] [MASK]", ""], 1),
        ("changes", ["", "a"], 0),
        ("changes", ["a dog", "a\n" * 21], 1),
        ("xray", ["", "a", []], 0),
        ("xray", ["a", "", []], 1),
        ("xray", ["a", "b", [0]], 2),
        ("xray", ["a", "b", "1"], 2),
        ("disagreements", ["elsewhere", "", "demo", ""], 0),
        ("disagreements", ["lines", "a", "demo", ""], 1),
        ("disagreements", ["lines", "a\nb\nc", "demo", ""], 1),
        ("map", ["elsewhere", 100, 3, 0, "", 0, "demo", ""], 0),
        ("map", ["corpus", 99, 3, 0, "", 0, "demo", ""], 1),
        ("map", ["pairs", 100, 101, 0, "", 0, "demo", ""], 2),
        ("map", ["corpus", 100, 3, -1, "", 0, "demo", ""], 3),
        ("map", ["corpus", 100, 3, 0, "", 0, "elsewhere", ""], 6),
    ],
)
def test_every_form_shows_an_error_at_the_wrong_field(runs, form: str, values: list[Any], wrong: int) -> None:
    run = runs[form]
    given = [*values, SimpleNamespace(session_hash="a")] if form == "map" else values
    answer = run.fn(*given)
    *_, refusal = next(answer) if isinstance(answer, Iterator) else answer
    assert refusal["about"] == run.inputs[wrong].elem_id


def test_an_error_about_the_words_of_a_sentence_carries_the_sentence() -> None:
    with pytest.raises(FieldError, match="no words") as caught:
        attributions(Models(["simcse"]), "a", "?!")
    assert caught.value.field == PAIR[1]
