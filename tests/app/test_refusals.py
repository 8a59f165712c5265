"""Errors of input are shown at their fields, and clear the results of earlier input."""

import gradio as gr
import pytest

from cse.app.forms.events import refusing
from cse.app.validation import FieldError


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
