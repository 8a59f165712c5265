"""The values that make a lesson: steps that fill the page's fields, questions, and what a measurement says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlencode

from cse.app.state.app_state import AppState

LESSON, STEP = "lesson", "step"  # their names in the address


class Measured(NamedTuple):
    """What the models say to a question: the key of the choice that is right, empty if none is, and the numbers.

    `found` is the answer in words where it may be none of the choices.
    """

    answer: str
    numbers: tuple[str, ...]
    found: str = ""


class Measure(NamedTuple):
    """A measurement: `take` gets numbers from the models for a step's values, `judge` says what they mean.

    `take` returns an empty result if no model of the page has any numbers; `judge` is not asked then.
    """

    take: Callable[[AppState, Mapping[str, str]], Any]
    judge: Callable[[Any], Measured]


class Choice(NamedTuple):
    """An answer that a visitor can guess, and the conclusion if it turns out to be right."""

    label: str
    conclusion: str = ""


@dataclass(frozen=True)
class Step:
    """A step: a title, a text, the tab it opens, the `values` of its fields as in the address, and the result's id.

    With a `question` the result is hidden until the visitor guesses one of the `choices`. Without one, the numbers of
    the `measure` are shown at once.
    """

    title: str
    text: str
    tab: str
    shows: str
    values: Mapping[str, str] = field(default_factory=dict)
    measure: Measure | None = None
    question: str = ""
    choices: Mapping[str, Choice] = field(default_factory=dict)


@dataclass(frozen=True)
class Lesson:
    """A guided tour: its `name` in the address, its title, a sentence about it, and four to six steps."""

    name: str
    title: str
    about: str
    steps: tuple[Step, ...]


def address(lesson: Lesson, number: int) -> str:
    """Return the address of a step, counted from 1, with its tab and the values of its fields."""
    step = lesson.steps[number - 1]
    return f"?{urlencode({LESSON: lesson.name, STEP: number, 'tab': step.tab, **step.values})}"
