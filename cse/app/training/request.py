"""A training that a visitor asks for: its values checked, and the command that runs it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cse.app import validation
from cse.app.training.rules import Rules
from cse.corpus.corpus import check_texts
from cse.corpus.output import csv_text
from cse.errors import command_line
from cse.methods.presets import BUNDLED_ROW, preset
from cse.methods.settings import MAX_SEED, SETTINGS
from cse.models.names import BACKBONE, BUNDLED_NAMES
from cse.training.held_out import can_hold_out

ADAPT = "adapt"
METHODS = (ADAPT, *BUNDLED_NAMES)
TEXTS, MODEL = "texts.csv", "model"  # in the folder of a run
TEXT, LABEL = "text", "label"  # columns of the texts
LONGEST_NAME = 40
EVALUATIONS = 10  # of a run with held-out texts
REPEATED = 10  # texts that a label has at least, in the mean
# The largest values on a page; the table of settings has the least ones.
MOST: dict[str, float] = {
    "batch_size": 512, "learning_rate": 1.0, "epochs": 20, "max_steps": 10_000, "max_length": 256, "temperature": 10.0,
    "dropout": 0.9, "prefix": 64, "seed": MAX_SEED,
}  # fmt: skip
OF_ADAPT = ("seed",)


@dataclass(frozen=True)
class TrainingRequest:
    """A method, or `ADAPT`, on texts; the result is called `name`, which is a label and never a path.

    `start` is the model to train, `settings` those that differ from the published ones, by name.
    """

    name: str
    method: str
    texts: Sequence[str]
    labels: Sequence[str] | None = None
    corpus: str = ""
    start: str = BACKBONE
    minutes: float = 30.0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def guarded(self) -> bool:
        """True if texts are held out to guard the run."""
        return self.method == ADAPT or can_hold_out(self.texts)

    def setting(self, name: str) -> Any:
        """Return a setting of a method's run, by default the published one on the bundled backbone."""
        return self.settings.get(name) or getattr(preset(self.method, BUNDLED_ROW)[1], name)

    @property
    def steps(self) -> int:
        """About as many steps as a run of a method takes."""
        examples = int(len(self.texts) * (0.8 if self.guarded else 1.0))
        return steps_of(examples, *map(self.setting, ("batch_size", "epochs", "max_steps")))

    def words(self, output: str = MODEL) -> list[str]:
        """Return the command's words after `cse`, run in the folder of the texts."""
        given = {"backbone": self.start, "column": TEXT, **self.settings, "output": output}
        if self.method == ADAPT:
            named = {**given, "label": LABEL if self.labels else None, "minutes": f"{self.minutes:g}"}
            return [ADAPT, TEXTS, *options(named)]
        dev = {"dev": "auto" if self.guarded else "none", "eval_every": max(1, self.steps // EVALUATIONS)}
        return ["train", self.method, *options({"data": TEXTS, **given, **dev})]

    @property
    def command(self) -> str:
        """The command that repeats the training."""
        return command_line(*self.words(self.slug))

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
    rules: Rules,
    texts: Sequence[str],
    labels: Sequence[str] | None,
    *,
    name: Any = "",
    method: Any = ADAPT,
    corpus: str = "",
    start: str = BACKBONE,
    minutes: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> TrainingRequest:
    """Return a request within the rules of the server.

    Raises FieldError for a wrong value, ValueError if the server does not train and for texts that cannot be used.
    """
    rules.check()
    validation.one_of(method, "The method", METHODS)
    if len(texts) > rules.texts:
        raise ValueError(f"{corpus} has {len(texts):,} texts; this server trains on at most {rules.texts:,}.")
    check_texts(corpus or "the corpus", texts, 2, "training")
    called = validation.text(name, "The name").strip() or f"my {method}"
    if len(called) > LONGEST_NAME:
        raise validation.FieldError("The name", f"The name has {len(called)} characters; give at most {LONGEST_NAME}.")
    limit = validation.between(rules.minutes if minutes is None else minutes, "Minutes", 1, rules.minutes)
    known = {name: checked_setting(name, value) for name, value in (settings or {}).items() if value is not None}
    kept = {name: value for name, value in known.items() if method != ADAPT or name in OF_ADAPT}
    return TrainingRequest(called, method, texts, usable(labels), corpus, start, limit, kept)


def checked_setting(name: str, value: Any) -> Any:
    """Return the value of a setting of `MOST`, a whole number as such. Raises FieldError for one out of bounds."""
    setting = SETTINGS[validation.one_of(name, "The setting", MOST)]
    least = max(setting.least, 1e-8) if name == "learning_rate" else setting.least
    if setting.kind is int:
        return validation.whole(value, name, int(least), int(MOST[name]))
    return validation.between(value, name, least, MOST[name])


def usable(labels: Sequence[str] | None) -> Sequence[str] | None:
    """Return the labels if they can judge a model: several, and each of `REPEATED` texts in the mean."""
    known = [label for label in labels or () if label]
    return labels if 1 < len(set(known)) <= len(known) // REPEATED else None
