"""Fields and addresses: errors stand at their field, the newest request is answered, an address restores its page."""

from types import SimpleNamespace

import gradio as gr
import pytest
from conftest import ROOT

from cse.app.events import Linked, Run, given, refusing, restorer
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
    assert (given(boxes, "1,3"), given(boxes, "")) == ([1, 3], [])
    assert skipped(given(boxes, "1,4"))
    for component, text in ((slider, "51"), (slider, "x"), (slider, "nan"), (number, "-1"), (radio, "etc")):
        assert skipped(given(component, text)), text


def test_the_corpus_of_the_address_is_chosen_in_the_bar_and_goes_to_the_parts_that_take_it():
    with gr.Blocks():
        query, k, word = gr.Textbox("dogs"), gr.Slider(1, 50, 5), gr.Textbox()
    parts = [
        ("search", Linked(("q", "k"), Run(print, (query, k, CORPUS), ()), ())),
        ("search", Linked(("word",), Run(print, (word,), ()), ())),
    ]
    restore = restorer(parts, {"corpus": CORPUS})

    def opened(stay: tuple[str, ...] = (), **address: str) -> list:
        event = gr.EventData(None, {"stay": list(stay)})
        values = restore(SimpleNamespace(query_params=address), event)
        return [None if skipped(value) else value for value in values[1:]]

    chosen, *values, (number, kept), other = opened(tab="search", q="cats", corpus="own")
    assert (chosen, values, kept, other) == ("own", ["cats", None, None], {0: "cats", 2: "own"}, None)
    again, kept = opened(tab="search", k="7")[-2]
    assert (again > number, kept) == (True, {1: 7})  # a run of its own
    _, *values, (_, kept), _ = opened(("k",), tab="search", q="cats", k="5")  # 7 may have been typed since
    assert (values, kept) == (["cats", None, None], {0: "cats"})
    with pytest.warns(UserWarning, match="This address asks for &lt;b&gt; as the corpus, which is not here"):
        assert opened(tab="search", q="cats", corpus="<b>") == [None] * 6
    back = restorer(parts, {"corpus": CORPUS}, back=True)
    assert back(SimpleNamespace(query_params={}), gr.EventData(None, {}))[1] == "demo"


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


def test_an_answer_that_comes_after_a_newer_request_changes_nothing(monkeypatch):
    """Requests of one visitor run at once; whoever asked last is answered, and other visitors are left alone."""
    session = ["a"]
    monkeypatch.setattr(
        "cse.app.events.current_request", lambda: SimpleNamespace(session_hash=session[0]) if session else None
    )

    def slow(then):
        then()
        return ["slow", "answer"]

    def steps(then):
        yield ["first", "step"]
        then()
        yield ["second", "step"]

    with gr.Blocks():
        fields, outputs = {"Then": gr.Textbox()}, [gr.HTML(""), gr.HTML("")]
        run, stepped = (refusing(function, fields, outputs).fn for function in (slow, steps))
    answer, nothing = ["slow", "answer"], [gr.skip()] * 3
    assert run(lambda: run(list)) == nothing
    assert run(list)[:2] == answer
    first, second = stepped(lambda: next(stepped(list)))
    assert first[:2] == ["first", "step"]
    assert second == nothing

    def by_another():
        session[0] = "b"
        assert run(list)[:2] == answer

    assert run(by_another)[:2] == answer
    session.clear()  # no visitor, as in a call from Python
    assert run(lambda: run(list))[:2] == answer


def test_no_script_makes_markup_of_texts():
    for path in (ROOT / "cse" / "app").rglob("*.js"):
        script = path.read_text()
        assert "innerHTML" not in script, path
        assert "insertAdjacent" not in script, path


def test_an_event_that_shows_no_progress_gives_no_output_a_status():
    """Gradio's page works through all outputs that ever had one, at each new status: seconds for a press."""
    from cse.app.serving import build_app

    functions = build_app().config["dependencies"]
    silent = [function for function in functions if function["targets"] and function["show_progress"] == "hidden"]
    assert len(silent) > 50
    assert [function["id"] for function in silent if function["show_progress_on"] != []] == []


@pytest.mark.parametrize("result", ["search", "similarity"])
def test_what_is_typed_while_an_answer_is_under_way_is_asked_after_it(result):
    from cse.app.serving import build_app

    asking = [
        function
        for function in build_app().fns.values()
        if any(event == "submit" for _, event in function.targets)
        and any(output.elem_id == result for output in function.outputs)
    ]
    assert [function.trigger_mode for function in asking] == ["always_last"]
