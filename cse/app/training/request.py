"""A training that a visitor asks for: its values checked, and the command that runs it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cse.adaptation.choice import BOTH, GROUPS, PURPOSES
from cse.app import validation
from cse.app.training.rules import Rules
from cse.corpus.corpus import check_texts
from cse.corpus.output import csv_text
from cse.errors import command_line
from cse.methods.presets import BUNDLED_ROW, preset
from cse.models.names import BACKBONE, BUNDLED_NAMES
from cse.training.held_out import can_hold_out

ADAPT = "adapt"
METHODS = (ADAPT, *BUNDLED_NAMES)
TEXTS, MODEL = "texts.csv", "model"  # in the folder of a run
TEXT, LABEL = "text", "label"  # columns of the texts
LONGEST_NAME = 40
EVALUATIONS = 10  # of a run with held-out texts
REPEATED = 10  # texts that a label has at least, in the mean
FINISHING = "0.01"  # minutes of a run that only publishes what an earlier one has: no further stage fits in them


@dataclass(frozen=True)
class Made:
    """A model: the name that its visitor gave it, and its folder."""

    name: str
    folder: Path


@dataclass(frozen=True)
class TrainingRequest:
    """A method with its published settings, or `ADAPT`, on texts; the result's `name` is a label and never a path.

    `start` is the model to train and `pooling` its reading, None for its own; an adaptation is for a `purpose`.
    """

    name: str
    method: str
    texts: Sequence[str]
    labels: Sequence[str] | None = None
    corpus: str = ""
    start: str = BACKBONE
    pooling: str | None = None
    minutes: float = 30.0
    purpose: str = BOTH

    @property
    def guarded(self) -> bool:
        """True if texts are held out to guard the run."""
        return self.method == ADAPT or can_hold_out(self.texts)

    @property
    def steps(self) -> int:
        """About as many steps as a run of a method takes."""
        config = preset(self.method, BUNDLED_ROW)[1]
        examples = int(len(self.texts) * (0.8 if self.guarded else 1.0))
        return steps_of(examples, config.batch_size, config.epochs, config.max_steps)

    def words(self, output: str = MODEL, *, finish: bool = False) -> list[str]:
        """Return the command's words after `cse`, run in the folder of the texts.

        With `finish` it publishes what an interrupted adaptation has, without another stage.
        """
        if self.method == ADAPT:
            named = {
                "backbone": self.start, "pooling": self.pooling, "column": TEXT,
                "label": LABEL if self.labels else None,
                "for": None if self.purpose == BOTH else self.purpose,
                "minutes": FINISHING if finish else f"{self.minutes:g}", "output": output,
            }  # fmt: skip
            return [ADAPT, TEXTS, *options(named), *(["--resume"] if finish else [])]
        dev = {"dev": "auto" if self.guarded else "none", "eval_every": max(1, self.steps // EVALUATIONS)}
        given = {"data": TEXTS, "backbone": self.start, "column": TEXT, "output": output}
        return ["train", self.method, *options({**given, **dev})]

    @property
    def command(self) -> str:
        """The command that repeats the training; of a folder of this server it has the name alone."""
        start = Path(self.start).name if Path(self.start).is_absolute() else self.start
        return command_line(*replace(self, start=start).words(self.slug))

    @property
    def slug(self) -> str:
        """The name as that of a file: Latin letters, digits and hyphens."""
        return re.sub(r"[^A-Za-z0-9]+", "-", self.name).strip("-") or MODEL

    def write_texts(self, folder: Path) -> None:
        """Write the texts, and the labels, as the table that the command reads."""
        columns = [self.texts, *([self.labels] if self.labels else [])]
        table = csv_text([TEXT, LABEL][: len(columns)], zip(*columns, strict=True))
        (folder / TEXTS).write_text(table, encoding="utf-8", newline="")


def steps_of(examples: int, batch_size: int, epochs: int, max_steps: int | None) -> int:
    """Return the steps of a whole run."""
    whole = epochs * max(1, examples // batch_size)
    return min(whole, max_steps or whole)


def options(values: Mapping[str, Any]) -> list[str]:
    """Return the options of a command, those that are None left out."""
    given = {name: value for name, value in values.items() if value is not None}
    return [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def checked(
    rules: Rules, texts: Sequence[str], labels: Sequence[str] | None, *, name: Any = "", method: Any = ADAPT,
    corpus: str = "", start: str = BACKBONE, pooling: str | None = None, minutes: Any = None, purpose: Any = BOTH,
) -> TrainingRequest:  # fmt: skip
    """Return a request within the rules of the server.

    Raises FieldError for a wrong value, ValueError if the server does not train and for texts that cannot be used.
    """
    rules.check()
    validation.one_of(method, "The method", METHODS)
    if len(texts) > rules.texts:
        reason = f"{corpus} has {len(texts):,} texts; this server trains on at most {rules.texts:,}."
        raise validation.FieldError("The corpus", reason)
    try:
        check_texts(corpus or "the corpus", texts, 2, "training")
    except ValueError as error:
        raise validation.FieldError("The corpus", str(error)) from error
    called = validation.text(name, "The name").strip() or f"my {method}"
    if len(called) > LONGEST_NAME:
        raise validation.FieldError("The name", f"The name has {len(called)} characters; give at most {LONGEST_NAME}.")
    limit = validation.between(rules.minutes if minutes is None else minutes, "Minutes", 1, rules.minutes)
    aim, known = validation.one_of(purpose, "What for", PURPOSES), usable(labels)
    if aim == GROUPS and known is None:
        raise validation.FieldError("What for", "Grouping is measured by labels, and this corpus has none that repeat.")
    return TrainingRequest(called, method, texts, known, corpus, start, pooling, limit, aim)


def usable(labels: Sequence[str] | None) -> Sequence[str] | None:
    """Return the labels if they can judge a model: several, and each of `REPEATED` texts in the mean."""
    known = [label for label in labels or () if label]
    return labels if 1 < len(set(known)) <= len(known) // REPEATED else None
