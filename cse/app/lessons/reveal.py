"""The lesson that an address names, and the answers to its questions, measured when a visitor asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cse.app import validation
from cse.app.lessons.lesson import LESSON, STEP, Lesson, Measured, Step
from cse.app.lessons.tours import LESSONS
from cse.app.state.app_state import AppState

SKIPPED = ""  # the choice of a visitor who does not guess
NOBODY = Measured("", ("No model on this page answers this question.",))


def lesson_of(name: Any) -> Lesson:
    """Return the lesson of a name. Raises FieldError for an unknown one."""
    known = {lesson.name: lesson for lesson in LESSONS}
    return known[validation.one_of(name, "The lesson", known)]


def step_of(lesson: Lesson, number: Any) -> Step:
    """Return a step of a lesson by its number, from 1. Raises FieldError for another one."""
    return lesson.steps[validation.whole(number, "The step", 1, len(lesson.steps)) - 1]


def whole(address: Mapping[str, str]) -> dict[str, str]:
    """Return an address that names a lesson with the tab and the values of its step, unless it names a tab.

    Without a valid step it is the first one.
    """
    if "tab" in address:
        return dict(address)
    with suppress(validation.FieldError):
        lesson = lesson_of(address.get(LESSON))
        number = address.get(STEP, "")
        step = lesson.steps[0]
        with suppress(validation.FieldError):
            step = step_of(lesson, int(number) if number.isdecimal() else number)
        return {"tab": step.tab, **step.values, **address}
    return dict(address)


def measured(state: AppState, step: Step) -> Measured:
    """Return what the models of the page say to a step. Raises ValueError for a step without a measure."""
    if step.measure is None:
        raise ValueError(f"The step “{step.title}” measures nothing.")
    taken = step.measure.take(state, step.values)
    return step.measure.judge(taken) if taken else NOBODY


def reveal(step: Step, found: Measured, guess: str = SKIPPED) -> dict[str, Any]:
    """Return the lines of an answer: the `outcome` of the guess, the `numbers`, and the `conclusion` from them.

    `right` is true, false, or null without a guess or without an answer; `answer` is the key of the right choice.
    """
    choice = step.choices.get(found.answer)
    answer = choice.label if choice else found.found
    lines = {"numbers": list(found.numbers), "conclusion": choice.conclusion if choice else "", "answer": found.answer}
    if not step.question:
        return {"outcome": "", "right": None, **lines}
    if not answer:
        return {"outcome": "No answer.", "right": None, **lines}
    shown = answer if choice else f"{answer}, which is none of the choices"
    if guess == SKIPPED:
        return {"outcome": f"Measured: {shown}.", "right": None, **lines}
    right = guess == found.answer
    guessed = f"You guessed: {step.choices[guess].label}."
    return {"outcome": f"Right: {shown}." if right else f"{guessed} Measured: {shown}.", "right": right, **lines}


def answered(state: AppState, lesson: Any, number: Any, guess: Any = SKIPPED) -> dict[str, Any]:
    """Return the `reveal` of a step for a visitor's guess, the key of a choice. Raises FieldError for wrong values."""
    step = step_of(lesson_of(lesson), number)
    if guess != SKIPPED:
        validation.one_of(guess, "The guess", step.choices)
    return reveal(step, measured(state, step), guess)
