"""Lessons are data: they name results and fields, ask them as a visitor does, and other numbers lead elsewhere."""

from urllib.parse import parse_qsl

import pytest

from cse.app import lessons as module
from cse.app.html import painted
from cse.app.lessons import (
    LESSONS,
    NOBODY,
    Step,
    address,
    answered,
    measured,
    shown,
    whole,
)
from cse.app.results.inside import Prefix
from cse.app.results.tokens import Tokens
from cse.app.show import ask, page_html
from cse.app.state import AppState, open_state
from cse.app.validation import FieldError
from cse.models.names import BUNDLED_NAMES

STEPS = [(name, number) for name, lesson in LESSONS.items() for number in range(1, len(lesson.steps) + 1)]
# What the bundled models answer today.
TODAY = {
    ("vector", 2): "top", ("vector", 3): "all", ("vector", 4): "none", ("vector", 5): "yes",
    ("anisotropy", 1): "high", ("anisotropy", 2): "far", ("anisotropy", 3): "promptbert", ("anisotropy", 4): "no",
    ("anisotropy", 5): "promptbert", ("anisotropy", 6): "yes",
    ("mask", 1): "that", ("mask", 2): "hospital", ("mask", 3): "in", ("mask", 4): "many", ("mask", 5): "none",
    ("mask", 6): "rich",
    ("negation", 1): "top", ("negation", 2): "none", ("negation", 3): "all", ("negation", 4): "none",
    ("negation", 5): "some",
    ("prefix", 1): "much", ("prefix", 2): "little", ("prefix", 3): "less", ("prefix", 4): "hundreds",
    ("prefix", 5): "level", ("prefix", 6): "level",
    ("prototypes", 1): "affirms", ("prototypes", 2): "large", ("prototypes", 3): "no", ("prototypes", 4): "between",
    ("prototypes", 5): "some",
}  # fmt: skip


def step_at(name: str, number: int) -> Step:
    return LESSONS[name].steps[number - 1]


@pytest.fixture(scope="module")
def state() -> AppState:
    return open_state(BUNDLED_NAMES, ())


@pytest.mark.parametrize(("name", "number"), STEPS)
def test_a_step_names_inputs_of_its_result_and_its_numbers_are_the_results(state, name, number) -> None:
    step, kind = step_at(name, number), module.KINDS[step_at(name, number).result]
    if kind is None:
        pytest.skip(f"no result {step.result} on this page (2026-11-27)")
    assert step.inputs.keys() <= kind.asks().keys()
    kind.of(step.inputs)  # raises for a wrong value
    if step.question:
        told = answered(state, name, number, next(iter(step.choices)))
        assert told["answer"] == TODAY[name, number], told["numbers"]
        assert told["right"] is (told["answer"] == next(iter(step.choices)))
        assert told["conclusion"]


def test_a_lessons_number_is_the_pages_number(state) -> None:
    step = step_at("mask", 4)
    frame = ask(state, Tokens, {**step.inputs, "models": ["promptbert"]}).frame
    lists = {key: rows["token"].tolist() for key, rows in frame.groupby("list")}
    shared = [word for word in lists["sentence"] if word in lists["template"]]
    assert measured(state, step)[1][0] == f"Of 8 words the template says alone: PromptBERT {len(shared)}."
    step = step_at("prefix", 2)
    rows = ask(state, Prefix, step.inputs).frame.set_index("layers")
    assert measured(state, step)[1] == [f"The vector moves: DCPCSE {100 * rows['moved']['all']:.0f} %."]


def test_the_words_before_training_have_the_colour_of_the_model_before_training(state) -> None:
    step = step_at("mask", 2)
    before, after = (painted(name) for name in step.models)
    phases = page_html(ask(state, Tokens, {**step.inputs, "models": step.models}))
    assert (
        phases.index(before) < phases.index("Before training") < phases.rindex(after) < phases.index("After training")
    )


def test_a_question_is_about_inputs_or_models_that_no_earlier_step_has_shown() -> None:
    for lesson in LESSONS.values():
        asked: dict[str, set[str]] = {}
        for step in lesson.steps:
            known = asked.setdefault(f"{step.result} {sorted(step.inputs.items())}", set())
            assert not step.question or not known >= set(step.models), (lesson.name, step.title)
            known.update(step.models)


def test_denoised_words_are_shown_only_where_a_share_is_subtracted(state) -> None:
    inputs = {**step_at("mask", 2).inputs, "models": ["promptbert"]}
    pages = [page_html(ask(state, Tokens, {**inputs, "share": share})) for share in (0, 1)]
    assert [("Denoised" in page, "after denoising" in page) for page in pages] == [(False, False), (True, True)]


def test_a_sign_is_named_and_a_quotation_mark_is_not_quoted() -> None:
    signs = [shown(sign, "") for sign in ('"', ",", "in")]
    assert signs == ["a quotation mark", "“,” (comma)", "“in”"]


def test_an_address_holds_the_lesson_and_fills_the_step() -> None:
    step, long = step_at("mask", 2), dict(parse_qsl(address(LESSONS["mask"], 2)[1:]))
    filled = {"tab": "tokens", "models": "promptbert (before),promptbert", "k": "8", "share": "0"}
    filled |= {"sentence": step.inputs["sentence"]}
    assert long == {"lesson": "mask", "step": "2", **filled}
    assert whole({"lesson": "mask", "step": "2"}) == long
    assert dict(parse_qsl(address(LESSONS["vector"], 5)[1:]))["corpus"] == "demo"
    assert dict(parse_qsl(address(LESSONS["vector"], 5)[1:]))["models"] == ",".join(BUNDLED_NAMES)
    assert whole({"lesson": "vector", "step": "5"})["where"] == ""  # no condition of the visitor's stays
    assert whole({"lesson": "negation", "step": "99"}) == {**whole({"lesson": "negation"}), "step": "99"}
    for other in ({}, {"lesson": "<b>"}, {"q": "cats"}, {"lesson": "mask", "step": "2", "tab": "search", "q": "x"}):
        assert whole(other) == other


def test_a_page_without_the_model_says_that_nobody_answers() -> None:
    alone = open_state(["simcse"], ())
    for name, number in (("mask", 1), ("prefix", 1), ("prototypes", 2)):
        told = answered(alone, name, number)
        assert (told["numbers"], told["outcome"], told["right"]) == ([NOBODY], "No answer.", None)


def test_wrong_values_of_a_client_are_refused_in_one_line(state) -> None:
    for given in (
        (None, 1, ""), ("<b>", 1, ""), ("negation", 7, ""), ("negation", "2", ""), ("negation", 2, "<b>"), ({}, [], {}),
    ):  # fmt: skip
        with pytest.raises(FieldError) as refused:
            answered(state, *given)
        assert "\n" not in str(refused.value)
