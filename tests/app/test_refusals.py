"""What is refused says so at the field that it is about, and takes the results of the input before it away."""

from collections.abc import Iterator

import gradio as gr
import pytest

from cse.app.forms.refusals import field_of, refusing


@pytest.fixture
def fields() -> list[gr.components.Component]:
    with gr.Blocks():
        return [gr.Radio(["demo"], label="Source"), gr.Textbox(label="Sentence A"), gr.Textbox(label="Sentence B")]


@pytest.mark.parametrize(
    ("message", "label"),
    [
        ("Sentence B is empty; write a few words.", "Sentence B"),
        ("The source is unknown; choose demo.", "Source"),
        ('"a" is no pair; write two sentences.', "Sentence A"),  # the first text box
    ],
)
def test_a_refusal_is_about_the_field_it_names(fields, message: str, label: str) -> None:
    assert field_of(message, fields).label == label
    assert field_of("k is wrong.", fields[:1]).label == "Source"


def test_a_refused_input_empties_the_outputs_and_the_next_answer_takes_the_reason_back(fields) -> None:
    def twice(first: str, second: str) -> tuple[str, dict[str, str]]:
        if not second:
            raise ValueError("Sentence B is empty; write <b>a few</b> words.")
        return first, {"second": second}

    with gr.Blocks():
        outputs = [gr.HTML("old"), gr.HTML({"old": 1}, html_template="<p></p>")]
        run = refusing(twice, fields[1:], outputs)
    ids = [field.elem_id for field in fields[1:]]
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


def test_a_generator_is_refused_where_it_has_come_to(fields) -> None:
    def steps(count: int) -> Iterator[str]:
        yield from map(str, range(count))
        raise ValueError("Sentence A is too long.")

    with gr.Blocks():
        run = refusing(steps, fields, [gr.HTML("old")])
    *answers, refused = run.fn(2)
    assert [text for text, _ in answers] == ["0", "1"]
    assert (refused[0], refused[1]["reason"]) == ("", "Sentence A is too long.")
    assert run.fn.__name__ == "steps"
