"""Fields and addresses: errors stand at their field, the newest request is answered, an address is never markup."""

from types import SimpleNamespace
from urllib.parse import urlencode

import gradio as gr
import pytest
from conftest import ROOT

from cse.app.events import Linked, Run, Shared, given, refusing, restored, restorer
from cse.app.validation import FieldError

CORPUS = gr.Dropdown([("Demo", "demo"), ("Yours", "own")], value="demo", label="Corpus")


def skipped(value: object) -> bool:
    return value == gr.skip()


def test_a_value_of_the_address_is_taken_only_where_the_component_can_have_it():
    slider, number = gr.Slider(1, 50, 5, step=1), gr.Number(0, minimum=0, maximum=10)
    radio = gr.Radio([("Demo", "demo"), ("Mine", "lines")], value="demo")
    assert (given(slider, "7"), given(number, "2.5"), given(radio, "lines")) == (7, 2.5, "lines")
    assert given(gr.Textbox(), "<b>plain</b>") == "<b>plain</b>"
    boxes = gr.CheckboxGroup([("1", 1), ("2", 2), ("3", 3)])
    assert given(boxes, "1,3") == [1, 3]
    assert given(boxes, "mine", ["mine"]) == ["mine"]
    for component, text in ((slider, "51"), (slider, "x"), (slider, "nan"), (radio, "etc"), (boxes, "4")):
        assert skipped(given(component, text)), text
    assert given(boxes, "1,4") == [1]


def test_a_corpus_of_the_address_that_is_not_here_is_named_without_markup_and_the_rest_is_taken():
    with gr.Blocks():
        query = gr.Textbox("dogs")
    restore = restorer([("search", Linked(("q",), Run(print, (query, CORPUS), ()), ()))], Shared({"corpus": CORPUS}))

    def opened(**address: str) -> list:
        values = restore({"stay": [], "address": f"?{urlencode(address)}"})
        return [None if skipped(value) else value for value in values[2:]]

    chosen, value, (_, kept) = opened(tab="search", q="cats", corpus="own")
    assert (chosen, value, kept) == ("own", "cats", {0: "cats", 1: "own"})
    with pytest.warns(UserWarning, match="This address asks for &lt;b&gt; as the corpus, which is not here"):
        chosen, value, (_, kept) = opened(tab="search", q="cats", corpus="<b>")
    assert (chosen, value, kept) == (None, "cats", {0: "cats"}), "the rest is taken"


def test_places_that_a_lesson_has_left_get_their_addresses_again_and_run_where_it_filled_a_field():
    with gr.Blocks():
        query, sentence, layer = gr.Textbox("dogs"), gr.Textbox("One."), gr.Slider(1, 9, 2, step=1)
    linked = [("search", "q", query), ("tokens", "sentence", sentence), ("tokens", "layer", layer)]
    parts = [(place, Linked((name,), Run(print, (field,), ()), ())) for place, name, field in linked]
    restore = restorer(parts, Shared({}))

    def left(**data: object) -> list:
        values = restore({"address": "?tab=search&q=cats", "back": True, **data})
        return [None if skipped(value) else value for value in values[2:5]]

    assert left() == ["cats", None, None]
    assert left(places={"tokens": "?tab=tokens&sentence="}, filled=["tab", "sentence"]) == ["cats", "", None]
    assert left(places={"tokens": "", "search": "?q=x", "<b>": 1}, filled=["layer", {}]) == ["cats", None, 2]
    for data in (
        {"places": [], "filled": ["layer"]},
        {"places": {"tokens": ""}, "filled": 1},
        {"places": {"tokens": ""}},
    ):
        assert left(**data) == ["cats", None, None]


def test_what_a_part_of_the_page_does_not_take_of_an_address_is_said_and_the_rest_is_taken():
    with gr.Blocks():
        most, models = gr.Slider(1, 50, 5, step=1, label="Results"), gr.CheckboxGroup(["a", "b"], label="Models")
    with pytest.warns(UserWarning, match="asks for 500 as the results, which goes from 1 to 50"):
        assert skipped(restored(["k"], [most], {"k": "500"}, back=False)[0])
    with pytest.warns(UserWarning, match="asks for moon, x, which is no model here"):
        assert restored(["models"], [models], {"models": "a,moon,x"}, back=False) == [["a"]]


@pytest.fixture
def fields() -> dict[str, gr.components.Component]:
    with gr.Blocks():
        return {
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
        run = refusing(twice, fields, outputs)
    text, value, refusal = run.fn("a", "")
    assert (text, value) == ("", {})
    assert refusal["about"] == fields["The second"].elem_id is not None
    assert refusal["reason"] == "Sentence B is empty; write <b>a few</b> words."  # the script shows it as text
    *results, answered = run.fn("a", "b")
    assert results == ["a", {"second": "b"}]
    assert "about" not in answered


def test_an_answer_that_comes_after_a_newer_request_changes_nothing(monkeypatch):
    """Requests of one visitor run at once; whoever asked last is answered, and other visitors are left alone."""
    session = ["a"]
    monkeypatch.setattr("cse.app.events.current_request", lambda: SimpleNamespace(session_hash=session[0]))

    def slow(then):
        then()
        return ["slow", "answer"]

    with gr.Blocks():
        fields, outputs = {"Then": gr.Textbox()}, [gr.HTML(""), gr.HTML("")]
        run = refusing(slow, fields, outputs).fn
    answer, nothing = ["slow", "answer"], [gr.skip()] * 3
    assert run(lambda: run(list)) == nothing
    assert run(list)[:2] == answer

    def by_another():
        session[0] = "b"
        assert run(list)[:2] == answer

    assert run(by_another)[:2] == answer


def test_no_script_makes_markup_of_texts():
    for path in (ROOT / "cse" / "app").rglob("*.js"):
        script = path.read_text()
        assert "innerHTML" not in script, path
        assert "insertAdjacent" not in script, path
