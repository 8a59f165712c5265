"""Nobody waits for another visitor's maps: their own lane, locks, requests that are replaced, maps that are kept."""

import threading
from types import SimpleNamespace

import gradio as gr
import pytest
from app_models import GOOD, write_model

from cse.app.forms.events import refusing
from cse.app.models.models import Models
from cse.app.state.app_state import AppState, open_state


@pytest.fixture(scope="module")
def state(tmp_path_factory, bert_folder) -> AppState:
    root = tmp_path_factory.mktemp("lanes")
    return open_state([str(write_model(root / name, bert_folder, name)) for name in GOOD[:2]], ())


def visit(session: str) -> SimpleNamespace:
    return SimpleNamespace(session_hash=session)


def test_a_model_answers_one_at_a_time_and_another_model_meanwhile(tmp_path, bert_folder):
    """The first holds `simcse` until the second has its answer from `promptbert`."""
    models = Models([str(write_model(tmp_path / name, bert_folder, name)) for name in GOOD[:2]])
    inside, answered, order = threading.Event(), threading.Event(), []

    def hold(column, encoder):
        inside.set()
        assert answered.wait(30)
        order.append("first")

    holding = threading.Thread(target=models.apply, args=(hold, models.columns[:1]))
    holding.start()
    assert inside.wait(30)
    waiting = threading.Thread(target=models.apply, args=(lambda *_: order.append("second"), models.columns[:1]))
    waiting.start()
    assert models.apply(lambda column, encoder: encoder.dim, models.columns[1:]) == {"promptbert": 32}
    assert order == []
    answered.set()
    for thread in (holding, waiting):
        thread.join(30)
    assert order == ["first", "second"]


def test_an_answer_that_comes_after_a_newer_request_changes_nothing(monkeypatch):
    """Requests of one visitor run at once; whoever asked last is answered, and other visitors are left alone."""
    session = ["a"]
    monkeypatch.setattr("cse.app.forms.events.current_request", lambda: visit(session[0]) if session else None)

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
