"""Lessons: steps that fill the page's fields, and questions that a number of a result answers.

A lesson is a file of JSON in `static/lessons`. A step names the place and the result that it shows and the inputs; a
question has choices by their keys, and an `answer`: which column of the result's frame, which rows, and how the values
of the models become a key. The result is asked as a visitor asks it, so a lesson's number is the page's number.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import gradio as gr

from cse.app import validation
from cse.app.corpus.corpora import DEMO_KEY
from cse.app.events import ENCODE, SILENT
from cse.app.html import STATIC, drawn, script
from cse.app.models.naming import title
from cse.app.results import RESULTS
from cse.app.results.similarity import among_random
from cse.app.server.gradio_adapter import data_of
from cse.app.show import ask
from cse.models.names import BUNDLED_NAMES

if TYPE_CHECKING:
    import pandas as pd

    from cse.app.state import AppState

ORDER = ("vector", "anisotropy", "mask", "negation", "prefix", "prototypes")
LESSON, STEP = "lesson", "step"  # their names in the address
SKIPPED = ""  # the choice of a visitor who does not guess
NOBODY = "No model on this page answers this question."
Values = dict[str, Any]


@dataclass(frozen=True)
class Number:
    """A value per model: the `take` of a `column` of the rows where the other columns have the values `where`."""

    label: str
    column: str
    where: Mapping[str, Any] = field(default_factory=dict)
    take: str = "first"
    form: str = ".2f"

    def of(self, frame: pd.DataFrame) -> Values:
        """Return the value of each model that has such rows."""
        rows = frame
        for column, value in self.where.items():
            rows = rows[rows[column] == value]
        return {str(name): TAKES[self.take](part[self.column]) for name, part in rows.groupby("model", sort=False)}

    def line(self, values: Values) -> str:
        """Return the values in words, once where all models have the same."""
        words = {name: shown(value, self.form) for name, value in values.items()}
        if len(words) > 1 and len(set(words.values())) == 1:
            return f"{self.label}: {next(iter(words.values()))} in every model."
        return f"{self.label}: {', '.join(f'{title(name)} {each}' for name, each in words.items())}."


@dataclass(frozen=True)
class Judge:
    """How the values of the models become the key of a choice; see `KEYS` for each `by`."""

    by: str
    limit: float = 0.0
    bands: Mapping[str, float] = field(default_factory=dict)  # lower bounds, ascending
    of: str = ""  # a model
    over: str = ""  # the model that it is compared with


@dataclass(frozen=True)
class Step:
    """A step: what it says and shows, and the question with its choices, each a label and a conclusion.

    `models` are those that it asks: by default the bundled ones, or on a page without them the page's. The second of
    two `numbers` is compared with the first.
    """

    title: str
    text: str
    place: str
    result: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    models: Sequence[str] = BUNDLED_NAMES
    numbers: Sequence[Number] = ()
    judge: Judge | None = None
    question: str = ""
    choices: Mapping[str, tuple[str, str]] = field(default_factory=dict)


class Lesson(NamedTuple):
    """A guided tour: its `name` in the address, its title, a sentence about it, and its steps."""

    name: str
    title: str
    about: str
    steps: tuple[Step, ...]


TAKES: dict[str, Callable[[Any], Any]] = {
    "first": lambda values: values.iloc[0],
    "max": lambda values: float(values.max()),
    "mean": lambda values: float(values.mean()),
    "sum": lambda values: float(values.sum()),
    "joined": lambda values: " · ".join(map(str, values)),
}


def read_lesson(name: str) -> Lesson:
    """Return the lesson of a file."""

    def step(value: Mapping[str, Any]) -> Step:
        numbers = [Number(**number) for number in value.get("numbers", ())]
        judge = Judge(**value["judge"]) if "judge" in value else None
        return Step(**{**value, "numbers": numbers, "judge": judge})

    value = json.loads((STATIC / "lessons" / f"{name}.json").read_text(encoding="utf-8"))
    return Lesson(name, value["title"], value["about"], tuple(map(step, value["steps"])))


LESSONS = {name: read_lesson(name) for name in ORDER}
KINDS = {kind.key: kind for kind in RESULTS}


def shown(value: Any, form: str) -> str:
    """Return a value in words: by a format of Python, as a share in percent, as the page does, or as it is."""
    if form == "%":
        return f"{100 * value:.0f} %"
    if form == "percentile":
        return among_random(value)
    if not isinstance(value, str):
        return format(value, form)
    if value == '"':
        return "a quotation mark"
    sign = len(value) == 1 and not value.isalnum()
    return f"“{value}” ({unicodedata.name(value, 'a sign').lower()})" if sign else f"“{value}”"


def banded(values: Sequence[float], bands: Mapping[str, float]) -> str:
    """Return the band that holds all values, or "mixed"."""
    names = {max((low, name) for name, low in bands.items() if value >= low)[1] for value in values}
    return names.pop() if len(names) == 1 else "mixed"


def counted(claims: Sequence[bool]) -> str:
    """Return whether all, some or none of the claims are true."""
    return "all" if all(claims) else "some" if any(claims) else "none"


def rank(values: Values, of: str) -> str:
    """Return whether a model's value is the most, the least or between those of all."""
    larger = sum(value > values[of] for value in values.values())
    return "most" if larger == 0 else "least" if larger == len(values) - 1 else "between"


def left(one: float, two: float) -> str:
    """Return whether none, some or all of `two` things are left when `one` are."""
    return "none" if one == 0 else "all" if one >= two else "some"


# A key from the values of the models (`one`) and those that they are compared with (`two`), which may be empty.
KEYS: dict[str, Callable[[Judge, Values, Values], str]] = {
    "bands": lambda judge, one, two: banded([one[judge.of]] if judge.of else list(one.values()), judge.bands),
    "change": lambda judge, one, two: banded([one[judge.of] - one[judge.over]], judge.bands),
    "gap": lambda judge, one, two: banded([one[judge.of] - two[judge.of]], judge.bands),
    "ratio": lambda judge, one, two: banded([one[judge.of] / one[judge.over]], judge.bands),
    "spread": lambda judge, one, two: "yes" if max(one.values()) - min(one.values()) > judge.limit else "no",
    "highest": lambda judge, one, two: max(one, key=one.__getitem__),
    "lowest": lambda judge, one, two: min(one, key=one.__getitem__),
    "same model": lambda judge, one, two: "yes" if max(one, key=one.get) == max(two, key=two.get) else "no",  # type: ignore[arg-type]
    "same": lambda judge, one, two: "yes" if len(set(one.values())) == 1 else "no",
    "above": lambda judge, one, two: counted([value >= judge.limit for value in one.values()]),
    "more": lambda judge, one, two: counted([one[name] > two[name] for name in one]),
    "reacts": lambda judge, one, two: "yes" if one[judge.of] >= judge.limit else "no",
    "rank": lambda judge, one, two: rank(one, judge.of),
    "value": lambda judge, one, two: str(one[judge.of]),
    "left": lambda judge, one, two: left(one[judge.of], two[judge.of]),
}  # fmt: skip


def measured(state: AppState, step: Step) -> tuple[str, list[str]]:
    """Return the key of the choice that is right, or "" if none is, and the numbers in words."""
    kind, values, known = KINDS[step.result], list[Values](), {column.name for column in state.models.columns}
    if step.numbers:
        with suppress(validation.FieldError, KeyError):  # another page has other models, or a result other columns
            others = step.models is BUNDLED_NAMES and not known >= set(BUNDLED_NAMES)
            models = [] if others else list(step.models)
            frame = ask(state, kind, {**step.inputs, "corpus": DEMO_KEY, "models": models}).frame
            values = [number.of(frame) for number in step.numbers] if len(frame) else []
    if not values or not all(values):
        return "", []
    lines = [number.line(each) for number, each in zip(step.numbers, values, strict=True)]
    with suppress(KeyError):  # the model that is asked about gave no answer
        return (KEYS[step.judge.by](step.judge, values[0], values[-1]) if step.judge else ""), lines
    return "", lines


def answered(state: AppState, lesson: Any, number: Any, guess: Any = SKIPPED) -> dict[str, Any]:
    """Return what a step tells after a visitor's guess, the key of a choice. Raises FieldError for wrong values.

    `right` is true, false, or null without a guess or without an answer; `answer` is the key of the right choice.
    """
    steps = LESSONS[validation.one_of(lesson, "The lesson", LESSONS)].steps
    step = steps[validation.whole(number, "The step", 1, len(steps)) - 1]
    if guess != SKIPPED:
        validation.one_of(guess, "The guess", step.choices)
    key, lines = measured(state, step)
    label, conclusion = step.choices.get(key, ("", ""))
    told = {"numbers": lines or [NOBODY], "conclusion": conclusion, "answer": key, "right": None}
    if not step.question:
        return {**told, "outcome": ""}
    if not key:
        return {**told, "outcome": "No answer."}
    seen = label or f"“{title(key)}”, which is none of the choices"
    if guess == SKIPPED:
        return {**told, "outcome": f"Measured: {seen}."}
    right = guess == key
    outcome = f"Right: {seen}." if right else f"You guessed: {step.choices[guess][0]}. Measured: {seen}."
    return {**told, "outcome": outcome, "right": right}


def values_of(step: Step) -> dict[str, str]:
    """Return the tab, the fields and the models of a step as the address has them, so that none keeps what it had."""
    kind = KINDS[step.result]
    asks = kind.asks()
    inputs = {**kind().inputs(), **step.inputs}
    values = {asks[name].link or name: str(value) for name, value in inputs.items()}
    corpus = {"corpus": DEMO_KEY} if kind.reads_corpus else {}
    return {"tab": step.place, **values, **corpus, "models": ",".join(step.models)}


def address(lesson: Lesson, number: int) -> str:
    """Return the address of a step, counted from 1, with its tab and the values of its fields."""
    return f"?{urlencode({LESSON: lesson.name, STEP: number, **values_of(lesson.steps[number - 1])})}"


def whole(address: Mapping[str, str]) -> dict[str, str]:
    """Return an address that names a lesson with the tab and the values of its step, unless it names a tab."""
    lesson, number = LESSONS.get(str(address.get(LESSON))), str(address.get(STEP, ""))
    if "tab" in address or lesson is None:
        return dict(address)
    place = int(number) if number.isascii() and number.isdecimal() else 1
    return {**values_of(lesson.steps[place - 1 if 1 <= place <= len(lesson.steps) else 0]), **address}


def lesson_panel(state: AppState) -> None:
    """Add the list, which "Learn" opens, and the panel, which shows the step that the address names."""
    drawn_steps = drawn("top", "lessons", all=LESSONS.values(), address=address)
    panel = gr.HTML(drawn_steps, elem_id="lesson", js_on_load=script("lessons"), apply_default_css=False)
    answer = gr.HTML(
        {}, html_template="", js_on_load="watch('value', () => cse.reveal(props.value));", visible="hidden",
        apply_default_css=False,
    )  # fmt: skip

    def reveal(event: gr.EventData) -> dict[str, Any]:
        sent = data_of(event)
        guess = {name: sent.get(name) for name in ("lesson", "step", "guess")}
        try:
            return {**guess, **answered(state, *guess.values())}
        except ValueError as error:
            return {**guess, "outcome": str(error), "numbers": [], "conclusion": "", "answer": "", "right": None}

    panel.select(reveal, None, answer, trigger_mode="multiple", **SILENT, **ENCODE)
