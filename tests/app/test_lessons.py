"""Lessons drive fields that exist, and say what the models measure: other numbers lead to other conclusions."""

from types import SimpleNamespace
from urllib.parse import parse_qsl

import gradio as gr
import pytest
from app_models import write_model

from cse.app import page as page_module
from cse.app.forms.links import restorer
from cse.app.lessons.lesson import Measured, address
from cse.app.lessons.panel import lessons_html, plain_lesson
from cse.app.lessons.reveal import NOBODY, answered, measured, reveal, whole
from cse.app.lessons.tours import LESSONS
from cse.app.sections.changes import perturbed
from cse.app.state.app_state import AppState, open_state
from cse.app.validation import FieldError
from cse.models.names import BUNDLED_NAMES

NAMED = {lesson.name: lesson for lesson in LESSONS}
STEPS = [(lesson.name, number) for lesson in LESSONS for number in range(1, len(lesson.steps) + 1)]
ASKING = [(name, number) for name, number in STEPS if NAMED[name].steps[number - 1].question]
WALK = pytest.mark.parametrize(("name", "number"), STEPS)
# What the bundled models answer today.
TODAY = {
    ("vector", 2): "top", ("vector", 3): "all", ("vector", 4): "none", ("vector", 5): "yes",
    ("anisotropy", 1): "yes", ("anisotropy", 2): "promptbert", ("anisotropy", 3): "no",
    ("anisotropy", 4): "promptbert", ("anisotropy", 5): "yes",
    ("mask", 2): "yes", ("mask", 3): "many", ("mask", 4): "none", ("mask", 5): "none", ("mask", 6): "rich",
    ("negation", 1): "top", ("negation", 2): "none", ("negation", 3): "all", ("negation", 4): "none",
    ("negation", 5): "some",
    ("prefix", 1): "hundreds", ("prefix", 2): "level", ("prefix", 3): "much", ("prefix", 4): "little",
    ("prefix", 5): "level",
    ("prototypes", 1): "affirms", ("prototypes", 2): "large", ("prototypes", 3): "no", ("prototypes", 4): "between",
    ("prototypes", 5): "some",
}  # fmt: skip


def step_at(name, number):
    return NAMED[name].steps[number - 1]


@pytest.fixture(scope="module")
def state() -> AppState:
    return open_state(BUNDLED_NAMES, ())


@pytest.fixture(scope="module")
def linked(state):
    """The page's parts by tab, as they are linked to the address, and the page."""
    seen = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_module, "link", lambda _opened, _back, _tabs, linked, *rest: seen.update(linked, rest=rest))
        seen["page"] = page_module.page(state)
    return seen


def test_there_are_six_lessons_of_four_to_six_steps_with_guesses() -> None:
    assert [lesson.name for lesson in LESSONS] == ["vector", "anisotropy", "mask", "negation", "prefix", "prototypes"]
    for lesson in LESSONS:
        assert 4 <= len(lesson.steps) <= 6
        assert sum(bool(step.question) for step in lesson.steps) >= 4
        assert len({step.title for step in lesson.steps}) == len(lesson.steps)
        for step in lesson.steps:
            assert bool(step.question) == bool(step.choices)
            assert step.measure or not step.question
            if step.question:
                assert step.question.endswith("?")
                assert 2 <= len(step.choices) <= 4
                assert len({choice.label for choice in step.choices.values()}) == len(step.choices)
                assert all(choice.conclusion.endswith((".", ":")) for choice in step.choices.values())


@WALK
def test_a_step_fills_fields_that_its_tab_has_and_shows_a_result_of_it(linked, name, number) -> None:
    step = step_at(name, number)
    tab, contents = linked[step.tab]
    fields = {each: field for part in contents for each, field in zip(part.names, part.named(), strict=True)}
    assert step.values.keys() - {"corpus"} <= fields.keys()
    found = [block for block in linked["page"].blocks.values() if getattr(block, "elem_id", None) == step.shows]
    assert len(found) == 1
    above = found[0]
    while above is not None and above is not tab:
        above = above.parent
    assert above is tab
    for value in step.values.values():
        assert len(value) <= 2000


@WALK
def test_the_address_of_a_step_fills_its_fields_and_so_does_its_short_form(linked, name, number) -> None:
    step, (shared, _) = step_at(name, number), linked["rest"]
    parts = [(tab, each) for tab, (_, contents) in tabs_of(linked) for each in contents]
    fields = [(tab, each) for tab, content in parts for each in content.names]
    restore = restorer(parts, shared.corpus, whole=whole)
    full = dict(parse_qsl(address(NAMED[name], number)[1:], keep_blank_values=True))
    assert full == {"lesson": name, "step": str(number), "tab": step.tab, **step.values}
    for given in (full, {"lesson": name, "step": str(number)}):
        tabs, corpus, *values = restore(SimpleNamespace(query_params=given))
        filled = {
            field: shown(value) for field, value in zip(fields, values, strict=False) if value != gr.skip()
        } | ({} if corpus == gr.skip() else {(step.tab, "corpus"): corpus})  # fmt: skip
        assert tabs.selected == step.tab
        assert filled == {(step.tab, field): value for field, value in step.values.items()}


def tabs_of(linked):
    return [(name, part) for name, part in linked.items() if name not in ("rest", "page")]


def shown(value) -> str:
    """The value of a field as the address has it."""
    return "" if value == [] else str(value)


def test_a_short_address_stands_for_the_tab_and_values_of_its_step() -> None:
    first = NAMED["negation"].steps[0]
    start = {"tab": first.tab, **first.values}
    assert whole({"lesson": "negation", "step": "2"})["tab"] == "probe"
    for number in ({}, {"step": "0"}, {"step": "99"}, {"step": "x"}, {"step": "²"}, {"step": "-1"}):
        assert whole({"lesson": "negation", **number}) == {**start, "lesson": "negation", **number}
    for other in ({}, {"lesson": "<b>"}, {"q": "cats"}, {"lesson": "negation", "step": "2", "tab": "search", "q": "x"}):
        assert whole(other) == other


def test_a_guess_is_compared_with_what_was_measured() -> None:
    step = step_at("negation", 2)
    found = Measured("none", ("SimCSE 4 %.",))
    assert reveal(step, found, "none") == {
        "outcome": "Right: None of them.", "right": True, "numbers": ["SimCSE 4 %."], "answer": "none",
        "conclusion": step.choices["none"].conclusion,
    }  # fmt: skip
    wrong = reveal(step, found, "all")
    assert (wrong["outcome"], wrong["right"]) == ("You guessed: All of them. Measured: None of them.", False)
    assert wrong["conclusion"] == step.choices["none"].conclusion
    assert reveal(step, found)["outcome"] == "Measured: None of them."
    other = reveal(step_at("mask", 6), Measured("wealthy", (), "“wealthy”"), "rich")
    assert other["outcome"] == "You guessed: rich. Measured: “wealthy”, which is none of the choices."
    assert (other["right"], other["conclusion"]) == (False, "")
    assert reveal(step, NOBODY, "none")["right"] is None


def test_wrong_values_of_a_client_are_refused_in_one_line(state) -> None:
    for lesson, number, guess in (
        (None, 1, ""), ("<b>", 1, ""), ("negation", 0, ""), ("negation", 7, ""), ("negation", "2", ""),
        ("negation", 2, "<b>"), ("negation", 2, None), ("negation", 2, 5), ({}, [], {}),
    ):  # fmt: skip
        with pytest.raises(FieldError) as refused:
            answered(state, lesson, number, guess)
        assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match="measures nothing"):
        answered(state, "negation", 6)


@pytest.mark.parametrize("name", NAMED)
def test_the_bundled_models_answer_each_question_of_a_lesson(state, name) -> None:
    for number, step in enumerate(NAMED[name].steps, start=1):
        if step.measure is None:
            continue
        guess = next(iter(step.choices), "")
        lines = answered(state, name, number, guess)
        assert lines["numbers"]
        if step.question:
            assert lines["answer"] == TODAY[name, number], (number, lines["numbers"])
            assert lines["right"] is (guess == lines["answer"])
            assert lines["conclusion"]


def test_the_numbers_of_a_lesson_are_those_of_the_tab(state) -> None:
    step = step_at("negation", 2)
    rows, _ = perturbed(state, step.values["sentence"])
    shares = next(row.moved for row in rows if row.name == "negated")
    shown = ", ".join(f"{name} {100 * share:.0f} %" for name, share in zip(
        ("SimCSE", "PromptBERT", "DCPCSE", "ConPVP"), shares.values(), strict=True))  # fmt: skip
    assert measured(state, step).numbers[1] == f"The way to an unrelated sentence: {shown}."


def test_a_page_without_a_working_model_says_that_nobody_answers(bert_folder, tmp_path) -> None:
    broken = write_model(tmp_path / "broken", bert_folder, "simcse")
    (broken / "model.safetensors").write_bytes(b"cut off")
    damaged = open_state([str(broken)], ())
    for name, number in ASKING:
        if step_at(name, number).tab != "results":  # whose scores are shipped
            assert measured(damaged, step_at(name, number)) == NOBODY, (name, number)


def test_other_models_get_an_answer_of_their_own(bert_folder, tmp_path) -> None:
    """Random weights: whatever they say, the lessons say it in words and do not fail."""
    folders = [write_model(tmp_path / name, bert_folder, name, seed) for seed, name in enumerate(BUNDLED_NAMES)]
    random = open_state(list(map(str, folders)), ())
    for name, number in ASKING:
        lines = answered(random, name, number)
        assert lines["numbers"]
        assert lines["outcome"].startswith(("Measured: ", "No answer."))


def test_the_page_gets_no_conclusion_before_a_guess() -> None:
    told = str([plain_lesson(lesson) for lesson in LESSONS])
    for lesson in LESSONS:
        assert f'href="?lesson={lesson.name}"' in lessons_html()
        for step in lesson.steps:
            assert step.title in told
            assert not any(choice.conclusion in told for choice in step.choices.values())
