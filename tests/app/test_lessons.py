"""Lessons drive fields that exist, and say what the models measure: other numbers lead to other conclusions."""

from types import SimpleNamespace
from urllib.parse import parse_qsl

import gradio as gr
import numpy as np
import pytest
from app_models import write_model

from cse.analysis.calibration import histogram
from cse.analysis.prefix_analysis import PrefixAttention, Prototype
from cse.app import page as page_module
from cse.app.drawing.distribution import Placed
from cse.app.forms.links import restorer
from cse.app.lessons.lesson import Measured, address, banded, by_model
from cse.app.lessons.numbers import Score, Size
from cse.app.lessons.panel import lessons_html, plain_lesson
from cse.app.lessons.reveal import NOBODY, answered, measured, reveal, whole
from cse.app.lessons.tours import LESSONS
from cse.app.sections.changes import perturbed
from cse.app.sections.tokens import Reading
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


def hist(mean: float) -> list[float]:
    return histogram(np.random.default_rng(0).normal(mean, 0.02, 2000))


def pair(cosine=(0.5, 0.5), place=(50.0, 50.0), means=(0.1, 0.1), names=("simcse", "promptbert")):
    return {name: Placed(one, at, hist(mean)) for name, one, at, mean in zip(names, cosine, place, means, strict=True)}


def within(*places):
    return pair(place=places)


def by_name(make):
    """Numbers that make each of the four models the answer."""
    return {name: make(name) for name in ("simcse", "promptbert", "dcpcse", "conpvp")}


def matrix(close: float, far: float, first, second) -> np.ndarray:
    cosines = np.zeros((4, 4))
    cosines[first], cosines[second] = close, far
    return cosines


def lists(first, second):
    return {
        "all": {"simcse": matrix(0.9, 0.2, first, second), "conpvp": matrix(0.5, 0.4, first, second)},
        "some": {"simcse": matrix(0.9, 0.2, first, second), "conpvp": matrix(0.3, 0.4, first, second)},
        "none": {"simcse": matrix(0.1, 0.2, first, second), "conpvp": matrix(0.3, 0.4, first, second)},
    }


TWO = {
    "all": {"simcse": (0.3, 0.1), "conpvp": (0.2, 0.1)},
    "some": {"simcse": (0.3, 0.1), "conpvp": (0.1, 0.2)},
    "none": {"simcse": (0.1, 0.3), "conpvp": (0.1, 0.2)},
}
ONE = {
    "all": {"simcse": (0.1,), "conpvp": (0.4,)},
    "some": {"simcse": (0.099,), "conpvp": (0.4,)},
    "none": {"simcse": (0.0,), "conpvp": (0.02,)},
}


def reading(before="dog cat", alone="a the", after="dog cat"):
    lists = ([(word, 0.1) for word in words.split()] for words in (before, alone, after))
    return Reading(*lists, 'This "[X]" means [MASK].', True)


def words(**made):
    return {"promptbert": reading(**made)}


LEFT = {
    "none": words(before="a dog", alone="a the", after="dog cat"),
    "some": words(before="a the", alone="a the", after="the cat"),
    "all": words(before="a the", alone="a the", after="a the"),
}


def moved(simcse, conpvp, dcpcse):
    return {"simcse": (simcse,), "conpvp": (conpvp,), "dcpcse": (dcpcse,)}


def scored(lead):
    return {"dcpcse": Score(70.0 + lead, 69.0), "simcse": Score(70.0, 60.0), "mean": Score(70.0, None)}


def attention(most):
    return {"dcpcse": PrefixAttention((0.01, most), (0.01, most), 0.2)}


def near(positive, affirms=0.9, denies=0.1):
    kinds = [Prototype("one [MASK]", positive, 0.95), Prototype("[MASK]", True, affirms), Prototype("x", False, denies)]
    return {"conpvp": kinds}


def gap(width):
    return {"conpvp": [Prototype("one [MASK]", True, 0.5 + width), Prototype("not [MASK]", False, 0.5)]}


# Numbers that make each choice of each question the right one.
NUMBERS = {
    ("vector", 2): {"ordinary": within(10, 89), "high": within(90, 98), "top": within(99, 100), "mixed": within(1, 99)},
    ("vector", 3): lists((0, 1), (2, 3)),
    ("vector", 4): lists((0, 2), (0, 1)),
    ("vector", 5): {"yes": {"simcse": [1, 2], "conpvp": [1, 3]}, "no": {"simcse": [1, 2], "conpvp": [2, 1]}},
    ("anisotropy", 1): {"yes": pair(cosine=(0.1, 0.25)), "no": pair(cosine=(0.1, 0.15))},
    ("anisotropy", 2): by_name(
        lambda top: {name: Placed(0.5, 50.0, hist(0.7 if name == top else 0.1)) for name in BUNDLED_NAMES}
    ),
    ("anisotropy", 3): {
        "yes": pair(cosine=(0.1, 0.2), place=(10, 20)),
        "no": pair(cosine=(0.1, 0.2), place=(20, 10)),
    },
    ("anisotropy", 4): by_name(
        lambda low: {name: Placed(0.5, 10.0 if name == low else 90.0, hist(0.1)) for name in BUNDLED_NAMES}
    ),
    ("anisotropy", 5): {"yes": {"simcse": 0.4, "conpvp": 0.6}, "no": {"simcse": 0.4, "conpvp": 0.45}},
    ("mask", 2): {
        "yes": words(alone='a , the "'),
        "no": words(alone="dog cat house"),
        "mixed": {"promptbert": reading(alone="a the"), "conpvp": reading(alone="dog cat")},
    },
    ("mask", 3): {
        "none": words(before="dog cat pet", alone="a"),
        "few": words(before="dog cat a", alone="a"),
        "many": words(before="dog a the", alone="a the"),
    },
    ("mask", 4): LEFT,
    ("mask", 5): LEFT,
    ("mask", 6): {word: words(after=f"{word} other") for word in ("poor", "not", "rich")},
    ("negation", 1): {"low": within(10, 49), "high": within(50, 98), "top": within(99, 100), "mixed": within(1, 99)},
    ("negation", 2): ONE,
    ("negation", 3): TWO,
    ("negation", 4): TWO,
    ("negation", 5): ONE,
    ("prefix", 1): {
        key: {"dcpcse": Size(384, 1000), "simcse": Size(384, 1000 * times)}
        for key, times in (("few", 2), ("dozens", 30), ("hundreds", 500))
    },
    ("prefix", 2): {"ahead": scored(2.5), "level": scored(-1.5), "behind": scored(-2.5)},
    ("prefix", 3): {
        "little": attention(0.05),
        "some": attention(0.2),
        "much": attention(0.4),
    },
    ("prefix", 4): {
        "little": {"dcpcse": 0.05}, "some": {"dcpcse": 0.2}, "much": {"dcpcse": 0.6},
    },
    ("prefix", 5): {"ahead": scored(2.5), "level": scored(1.5), "behind": scored(-2.5)},
    ("prototypes", 1): {
        "affirms": near(True), "denies": near(False)
    },
    ("prototypes", 2): {
        "small": gap(0.05), "middle": gap(0.2), "large": gap(0.6)
    },
    ("prototypes", 3): {"yes": moved(0, 0.1, 0), "no": moved(0.5, 0.09, 0.5)},
    ("prototypes", 4): {
        "most": moved(0.1, 0.3, 0.2), "between": moved(0.1, 0.2, 0.3), "least": moved(0.2, 0.1, 0.3)
    },
    ("prototypes", 5): TWO,
}  # fmt: skip


def test_each_choice_of_each_question_can_turn_out_to_be_right() -> None:
    assert list(NUMBERS) == ASKING
    for place, cases in NUMBERS.items():
        step = step_at(*place)
        assert cases.keys() == step.choices.keys(), place
        said = set()
        for key, numbers in cases.items():
            found = step.measure.judge(numbers)
            assert found.answer == key, (place, key)
            assert found.numbers
            assert all(line for line in found.numbers)
            lines = reveal(step, found, key)
            assert (lines["right"], lines["outcome"]) == (True, f"Right: {step.choices[key].label}.")
            said.add(lines["conclusion"])
        assert len(said) == len(cases), place


@pytest.mark.parametrize(
    ("place", "numbers"),
    [
        (("mask", 3), {"conpvp": reading()}),
        (("mask", 4), {"conpvp": reading()}),
        (("mask", 6), {"conpvp": reading()}),
        (("prototypes", 3), {"simcse": (0.3,)}),
        (("prototypes", 4), {"simcse": (0.3,)}),
        (("prefix", 3), {"mine": PrefixAttention((0.1,), (0.1,), 0.2)}),
        (("prefix", 4), {"mine": 0.5}),
        (("prototypes", 1), {"mine": near(True)["conpvp"]}),
        (("prototypes", 2), {"mine": near(True)["conpvp"]}),
        (("prefix", 1), {"simcse": Size(384, 10)}),
        (("prefix", 2), {"simcse": Score(70.0, None)}),
    ],
)
def test_a_question_about_a_model_that_is_not_there_has_no_answer(place, numbers) -> None:
    found = step_at(*place).measure.judge(numbers)
    assert found.answer == ""
    assert "gave no answer on this page" in found.numbers[0]
    assert reveal(step_at(*place), found, next(iter(step_at(*place).choices)))["outcome"] == "No answer."


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


def test_values_are_in_one_band_or_in_several_and_are_listed_by_model() -> None:
    bands = {"low": float("-inf"), "high": 0.5}
    assert banded({"a": 0.1, "b": -3}, bands) == "low"
    assert banded({"a": 0.5, "b": 9}, bands) == "high"
    assert banded({"a": 0.1, "b": 9}, bands) == "mixed"
    assert by_model({"simcse": 0.124, "mine": 0.5}) == "SimCSE 0.12, mine 0.50"
    assert by_model({"simcse": 0.124, "mine": 0.12}) == "0.12 in every model"
    assert by_model({"simcse": 0.124}) == "SimCSE 0.12"


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
