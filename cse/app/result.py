"""A result of the page: what it asks for, the table that it computes, and how that table is shown.

A result is a frozen dataclass with a file of its own under `cse/app/results`. Its fields are what it asks for; `frame`
is the one source of its numbers. `cse.app.show` makes the part of the page, the endpoint, the files, the link and the
first answer of it; a lesson asks it as a visitor does.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pandas as pd

from cse.app import validation
from cse.app.models.naming import BEFORE, title, with_starts

if TYPE_CHECKING:
    from typing_extensions import Self

    from cse.app.state import Session

Kind = Literal["text", "lines", "whole", "number", "choice"]
TYPES: dict[Kind, type] = {"text": str, "lines": str, "whole": int, "number": float, "choice": str}


@dataclass(frozen=True)
class Ask:
    """One input of a result: its label on the page, its name in errors and in the address, and its bounds.

    `about` describes it to programs. A `folded` one stands among the options. `choices` are (label, value) pairs.
    `such_as` stands in an empty field.
    """

    kind: Kind
    label: str
    name: str
    about: str
    link: str = ""
    low: float = 0
    high: float = 0
    step: float = 1
    choices: Sequence[tuple[str, str]] = ()
    folded: bool = False
    may_be_empty: bool = False
    such_as: str = ""

    def checked(self, value: Any) -> Any:
        """Return the value as the result gets it. Raises FieldError, which names the field and the cure."""
        if self.kind == "whole":
            return validation.whole(value, self.name, int(self.low), int(self.high))
        if self.kind == "number":
            return validation.between(value, self.name, self.low, self.high)
        if self.kind == "choice":
            known = [value for _, value in self.choices]
            return validation.one_of(value, self.name, known) if known else validation.text(value, self.name)
        if self.may_be_empty and isinstance(value, str) and not value.strip():
            return ""
        if self.kind == "lines":
            return "\n".join(validation.lines(value, int(self.low), int(self.high), self.name))
        return validation.sentence(value, self.name)


def asked(kind: Kind, label: str, default: Any, name: str, about: str, *bounds: float, **more: Any) -> Any:
    """Return a field of a result; `bounds` are the lowest and the highest number, or number of lines, and the step."""
    bounded: dict[str, Any] = dict(zip(("low", "high", "step"), bounds, strict=False))
    return field(default=default, metadata={"ask": Ask(kind, label, name, about, **bounded, **more)})


text, lines, whole, number = (partial(asked, kind) for kind in ("text", "lines", "whole", "number"))


def choice(label: str, default: str, name: str, about: str, choices: Sequence[tuple[str, str]], **more: Any) -> Any:
    """Return a field for one of the `choices`, a label and a value each; with none, the result checks the value."""
    return asked("choice", label, default, name, about, choices=choices, **more)


@dataclass(frozen=True)
class Result:
    """The base of all results.

    `key` names the endpoint, the files, and the macro in the template that is named as the result's module; `title`
    heads the part of the page; `summary` describes the endpoint where it does not answer the table. `lane` is the queue
    that it waits in. All answer while their fields are edited; one that is not `live` waits for its button where there
    is no answer: at first, and for another sentence, corpus or other models. `plots` is the number of its charts on the
    page, in a fold headed `chart_fold` where they show what its table has.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str] = ""
    button: ClassVar[str] = "Compare"
    words: ClassVar[Sequence[str]] = ()  # terms of the glossary that the part uses
    examples: ClassVar[Mapping[str, tuple[Any, ...]]] = {}  # values of the first fields by their label
    bold: ClassVar[str] = ""  # what a bold cell of its sheet is
    italics: ClassVar[str] = ""  # and one in italics
    corpus_examples: ClassVar[int] = 0  # first fields that texts of the chosen corpus fill in place of the examples
    reads_corpus: ClassVar[bool] = True
    live: ClassVar[bool] = True
    lane: ClassVar[str] = "encode"
    plots: ClassVar[int] = 0
    chart_fold: ClassVar[str] = ""
    ships: ClassVar[bool] = True  # its first answer is computed before the page opens
    public: ClassVar[bool] = True  # programs can ask for it

    @classmethod
    def asks(cls) -> dict[str, Ask]:
        """Return what the result asks for, by the names of its fields.

        Other fields say what the page shows of the answer, which its figure repeats; programs do not send them.
        """
        return {each.name: each.metadata["ask"] for each in dataclasses.fields(cls) if each.metadata}

    @classmethod
    def about(cls) -> str:
        """Return what programs read of the endpoint."""
        rows = str(inspect.getdoc(cls.frame)).removeprefix("Return ")
        return cls.summary or f"{inspect.getdoc(cls)}\n\nThe answer has by model, with null for what is missing, {rows}"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the result for values that a client sent. Raises FieldError for a wrong one."""
        asks = cls.asks()
        named = {each.name: values[each.name] for each in dataclasses.fields(cls) if each.name in values}
        return cls(**{name: asks[name].checked(value) if name in asks else value for name, value in named.items()})

    def inputs(self) -> dict[str, Any]:
        """Return the values that it was asked for by the names of their fields."""
        return {name: getattr(self, name) for name in self.asks()}

    def frame(self, session: Session) -> pd.DataFrame:
        """Return the tidy table of the answer, a row per observation. Raises ValueError for what has no answer."""
        raise NotImplementedError

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the Vega-Lite specifications of a frame that is not empty, at most `plots`."""
        return []

    def says(self, frame: pd.DataFrame) -> str:
        """Return what the numbers of a frame that is not empty say, or ""."""
        return ""

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return what the macro of the template shows of a frame that is not empty; without one it is a table."""
        return {"frame": frame}

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the table for a paper: a row per line of it, without lists in a cell, scores in bold by `**`.

        Those in `italics` are by `*`.
        """
        nested = [name for name in frame if frame[name].map(lambda cell: isinstance(cell, (dict, list))).any()]
        return titled(frame.drop(columns=nested))

    def facts(self, frame: pd.DataFrame) -> list[str]:
        """Return sentences on the numbers of a frame that is not empty, for the caption of a table or figure."""
        return []

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return the endpoint's answer, the records of the frame by model; failed models are added to it."""
        if len(frame) and "model" not in frame:
            return records(frame)
        return {name: records(rows.drop(columns="model")) for name, rows in by_models(frame).items()}

    def with_failures(self, answer: Any, failed: Mapping[str, str]) -> Any:
        """Return the endpoint's answer with the reasons of the models that failed."""
        return {**answer, **{name: {"error": reason} for name, reason in failed.items()}} if failed else answer


def stacked(answers: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of all models' answers, each a frame, rows or a row; the column `model` is the first."""
    frames = [rows for rows in answers.values() if isinstance(rows, pd.DataFrame)]
    if frames:
        models = [name for name, rows in answers.items() for _ in range(len(rows))]
        table = pd.concat(frames, ignore_index=True)
        table.insert(0, "model", models)
        return table
    rows_of = {name: [rows] if isinstance(rows, dict) else rows for name, rows in answers.items()}
    return pd.DataFrame([{"model": name, **row} for name, rows in rows_of.items() for row in rows])


def by_models(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return each model's rows, counted from 0, in the order of the models."""
    groups = () if frame.empty else frame.groupby("model", sort=False, observed=True)
    return {str(name): rows.reset_index(drop=True) for name, rows in groups}


def titled(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with the models by their titles."""
    return frame.assign(model=frame["model"].map(title)) if "model" in frame else frame


def wide(frame: pd.DataFrame, lines: str | list[str], value: str) -> pd.DataFrame:
    """Return a table for a paper: a row per line, in the order of the lines, with the value of each model."""
    shown = titled(frame)
    table = shown.pivot(index=lines, columns="model", values=value)[shown["model"].unique()]
    return table.loc[list(dict.fromkeys(shown.set_index(lines).index))].reset_index()


def further_columns(frame: pd.DataFrame, own: Sequence[str]) -> list[str]:
    """Return the names of the corpus's columns, which come beside the `own` ones."""
    return [name for name in frame.columns if name not in own]


def fields_of(frame: pd.DataFrame, own: Sequence[str]) -> list[dict[str, Any]]:
    """Return the cells of the corpus's columns of each row; what is not there is None."""
    cells = frame[further_columns(frame, own)]
    return [{name.strip(): value for name, value in line.items()} for line in records(cells)] or [{}] * len(frame)


def listed(names: Iterable[str]) -> str:
    """Return the titles of models in a sentence: "SimCSE, PromptBERT and DCPCSE"."""
    *others, last = [title(name) for name in names] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def equal_starts(models: Mapping[str, str]) -> list[str]:
    """Return a sentence for each start that several of the models share; `models` are fingerprints by name."""
    starts: dict[str, list[str]] = {}
    for name, fingerprint in models.items():
        if name.endswith(BEFORE):
            starts.setdefault(fingerprint, []).append(name.removesuffix(BEFORE))
    return [
        f"{listed(names)} are the same before training."
        for names in starts.values() if len(names) > 1
    ]  # fmt: skip


def moved_by_training(what: str, values: Mapping[str, Any], shown: Callable[[Any], str]) -> str:
    """Return from what to what training took a value of the models that stand beside their start; "" of none."""
    went, stayed = list[str](), list[str]()
    for name, start in with_starts(values).items():
        if start and not pd.isna(values[name]):
            before, after = shown(values[start]), shown(values[name])
            if before == after:
                stayed.append(f"{after} in {title(name)}")
            else:
                went.append(f"{before} to {after} in {title(name)}")
    parts = [f"{verb} {', '.join(models)}" for verb, models in (("went from", went), ("stayed at", stayed)) if models]
    return f"The {what} {' and '.join(parts)}." if parts else ""


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100 * share:.0f} %"


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as JSON values; what is not there is None."""
    columns = {name: [plain(value) for value in frame[name].tolist()] for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain(value: Any) -> Any:
    """Return a cell as a JSON value."""
    if hasattr(value, "tolist"):  # a list that was read from a file
        return value.tolist()
    return None if value is None or value is pd.NA or value is pd.NaT or value != value else value
