"""The values that make a lesson: steps that fill the page's fields, questions, and what their judges share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from urllib.parse import urlencode

from cse.app.models.naming import title
from cse.app.state.app_state import AppState

T = TypeVar("T")
P = ParamSpec("P")
LESSON, STEP = "lesson", "step"  # their names in the address
NONE, SOME, ALL = "none", "some", "all"
YES, NO = "yes", "no"
MIXED = "mixed"
Form = Callable[[float], str]


class Measured(NamedTuple):
    """What the models say to a question: the key of the choice that is right, empty if none is, and the numbers.

    `found` is the answer in words where it may be none of the choices.
    """

    answer: str
    numbers: tuple[str, ...]
    found: str = ""


class Measure(NamedTuple):
    """A measurement: `take` gets numbers from the models for a step's values, `judge` says what they mean.

    `take` returns an empty result if no model of the page has any numbers; `judge` is not asked then. A judge with
    settings has them bound by `functools.partial`.
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


def two_digits(value: float) -> str:
    """Return a cosine or a score difference with two decimals."""
    return f"{value:.2f}"


def by_model(values: Mapping[str, float], form: Form = two_digits) -> str:
    """Return each model's value in words, once where all are the same."""
    words = {name: form(value) for name, value in values.items()}
    if len(words) > 1 and len(set(words.values())) == 1:
        return f"{next(iter(words.values()))} in every model"
    return ", ".join(f"{title(name)} {shown}" for name, shown in words.items())


def count(values: Sequence[bool]) -> str:
    """Return whether none, some or all of the values are true."""
    return ALL if all(values) else SOME if any(values) else NONE


def banded(values: Mapping[str, float], bands: Mapping[str, float]) -> str:
    """Return the band that holds all values, or `MIXED`; `bands` are lower bounds, ascending, the first -inf."""
    found = {max((low, name) for name, low in bands.items() if value >= low)[1] for value in values.values()}
    return found.pop() if len(found) == 1 else MIXED


def absent(name: str) -> Measured:
    """Say that a model is not among those that answered."""
    return Measured("", (f"{title(name)} gave no answer on this page.",))


def of_model(
    judge: Callable[Concatenate[str, Mapping[str, T], P], Measured],
) -> Callable[Concatenate[str, Mapping[str, T], P], Measured]:
    """Return a judge of the model `name` that says so if this model is not among those that answered."""

    @functools.wraps(judge)
    def judged(name: str, found: Mapping[str, T], *args: P.args, **kwargs: P.kwargs) -> Measured:
        return judge(name, found, *args, **kwargs) if name in found else absent(name)

    return judged
