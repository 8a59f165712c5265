"""A training that a visitor asks for: the rules of the server, its values checked, and the command that runs it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cse.adaptation.choice import BOTH, GROUPS, MIN_TEXTS, PURPOSES
from cse.app import validation
from cse.app.validation import MAX_FILE_BYTES
from cse.corpus.corpus import check_texts
from cse.corpus.output import csv_text
from cse.errors import command_line
from cse.methods.presets import BUNDLED_ROW, preset
from cse.models.names import BACKBONE, BUNDLED_NAMES
from cse.training.held_out import can_hold_out

OPTION, VARIABLE = "--train", "CSE_TRAIN"
HOUR = 3600.0
BY_OWNER = f"with the option {OPTION} (or {VARIABLE}=1 in its environment)"
AT_HOME = (
    f"On a machine of your own a command fits one to your texts: {command_line('adapt', 'FILE', '--output', 'DIR')}"
)
UNOWNED = f"This server does not train models; its owner can allow it {BY_OWNER}. {AT_HOME}"
REFUSED = (
    "On this server only its owner trains models: whoever opens the address that it printed at its start. The owner "
    f"can allow it to everyone {BY_OWNER}. {AT_HOME}"
)
ADAPT = "adapt"
METHODS = (ADAPT, *BUNDLED_NAMES)
TEXTS, MODEL = "texts.csv", "model"  # in the folder of a run
TEXT, LABEL = "text", "label"  # columns of the texts
SOURCE = (TEXTS, TEXT, LABEL)
MAX_NAME = 40
EVALUATIONS = 10  # of a run with held-out texts
REPEATED = 10  # texts that a label has at least, in the mean
FINISHING = "0.01"  # minutes of a run that only publishes what an earlier one has: no further stage fits in them


@dataclass(frozen=True)
class Rules:
    """Whether a client may train (`allowed`), and bounds; `own`: it may open folders, as the owner of the server.

    `texts` and `minutes` are those of a run, `runs` those that a visitor keeps and `all_runs` those of all visitors,
    `model_bytes` the size of an unpacked model, `file_bytes` that of an upload, `kept` the seconds that a run stays
    after its last use.
    """

    allowed: bool = False
    own: bool = False
    texts: int = 5_000
    minutes: int = 15
    runs: int = 2
    all_runs: int = 6
    model_bytes: int = 2**30
    file_bytes: int = MAX_FILE_BYTES
    kept: float = 2 * HOUR

    def check(self) -> None:
        """Raise ValueError if a client may not train."""
        if not self.allowed:
            raise ValueError(REFUSED)

    @property
    def promise(self) -> str:
        """The bounds in words."""
        kept = "until it stops" if self.kept > 24 * HOUR else f"for {self.kept / HOUR:.0f} hours after their last use"
        return (
            f"An adaptation needs {MIN_TEXTS} different texts. A run takes up to {self.texts:,} texts and "
            f"{self.minutes} minutes, one at a time; the server keeps your newest {self.runs} {kept}."
        )


CLOSED = Rules()
GUESTS = Rules(allowed=True, file_bytes=100 * 2**20)
OWN = Rules(
    allowed=True, own=True, texts=50_000, minutes=240, runs=8, all_runs=8, model_bytes=8 * 2**30, file_bytes=2**30,
    kept=10_000 * HOUR,
)  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A model: the name that its visitor gave it, and its folder."""

    name: str
    folder: Path


@dataclass(frozen=True)
class TrainingRequest:
    """A method with its published settings, or `ADAPT`, on texts; the result's `name` is a label and never a path.

    `start` is the model to train and `pooling` its reading, None for its own; an adaptation is for a `purpose`.
    `saved` are the names of the file in which the page saves the corpus, and of its columns of texts and labels.
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
    saved: tuple[str, str, str] = SOURCE

    def words(self, output: str = MODEL, *, finish: bool = False, source: tuple[str, str, str] = SOURCE) -> list[str]:
        """Return the command's words after `cse`, run in the folder of the file `source`, with its columns."""
        file, text, label = source
        shared: dict[str, Any] = {"backbone": self.start, "column": text, "output": output}
        if self.method == ADAPT:
            own = {
                "pooling": self.pooling, "label": label if self.labels else None,
                "for": None if self.purpose == BOTH else self.purpose,
                "minutes": FINISHING if finish else f"{self.minutes:g}",
            }  # fmt: skip
            return [ADAPT, file, *options({**shared, **own}), *(["--resume"] if finish else [])]
        guarded = can_hold_out(self.texts)
        config = preset(self.method, BUNDLED_ROW)[1]
        examples = int(len(self.texts) * (0.8 if guarded else 1.0))
        steps = steps_of(examples, config.batch_size, config.epochs, config.max_steps)
        guard = {"dev": "auto" if guarded else "none", "eval_every": max(1, steps // EVALUATIONS)}
        return ["train", self.method, *options({"data": file, **shared, **guard})]

    @property
    def command(self) -> str:
        """The command that repeats the training on the `saved` corpus; of a server's folder it has the name alone."""
        start = Path(self.start).name if Path(self.start).is_absolute() else self.start
        return command_line(*replace(self, start=start).words(self.slug, source=self.saved))

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
    named = {name: value for name, value in values.items() if value is not None}
    return [word for name, value in named.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def checked(
    rules: Rules, texts: Sequence[str], labels: Sequence[str] | None, *, name: Any = "", method: Any = ADAPT,
    corpus: str = "", start: str = BACKBONE, pooling: str | None = None, minutes: Any = None, purpose: Any = BOTH,
    saved: tuple[str, str, str] = SOURCE,
) -> TrainingRequest:  # fmt: skip
    """Return a request within the rules of the server."""
    rules.check()
    validation.one_of(method, "The method", METHODS)
    if len(texts) > rules.texts:
        reason = f"{corpus} has {len(texts):,} texts; this server trains on at most {rules.texts:,}."
        raise validation.FieldError("The corpus", reason)
    try:
        least, what = (MIN_TEXTS, "an adaptation") if method == ADAPT else (2, "training")
        check_texts(corpus or "the corpus", texts, least, what)
    except ValueError as error:
        raise validation.FieldError("The corpus", str(error)) from error
    label = validation.text(name, "The name").strip() or f"my {'model' if method == ADAPT else method}"
    if len(label) > MAX_NAME:
        raise validation.FieldError("The name", f"The name has {len(label)} characters; give at most {MAX_NAME}.")
    limit = validation.between(rules.minutes if minutes is None else minutes, "Minutes", 1, rules.minutes)
    aim, known = validation.one_of(purpose, "What for", PURPOSES), [label for label in labels or () if label]
    judging = labels if 1 < len(set(known)) <= len(known) // REPEATED else None  # several, each of some texts
    if aim == GROUPS and judging is None:
        raise validation.FieldError("What for", "Grouping is measured by labels, and this corpus has none that repeat.")
    return TrainingRequest(label, method, texts, judging, corpus, start, pooling, limit, aim, saved)
