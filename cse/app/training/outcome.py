"""The outcome of a finished training: its models, and what was measured of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse.adaptation.choice import START, measured
from cse.adaptation.workspace import CANDIDATE, REPORT
from cse.app.training.request import ADAPT, MODEL, TrainingRequest
from cse.files.writing import read_json

JUDGE = "Compare the two on your own texts, by votes, before you use it."
TO_JUDGE = "to judge"


@dataclass(frozen=True)
class Made:
    """A model: the name that its visitor gave it, and its folder."""

    name: str
    folder: Path


@dataclass(frozen=True)
class Outcome:
    """`sentence` is the one verdict; an adaptation has a `report` of its candidates on both axes."""

    sentence: str
    models: Sequence[Made]
    report: Mapping[str, Any] | None = None


def outcome_of(request: TrainingRequest, folder: Path) -> Outcome:
    """Return the outcome in the folder of a finished training. Raises ArtefactError if it is damaged."""
    output = folder / MODEL
    if request.method == ADAPT:
        report = read_json(output / REPORT)
        result = [] if report["decision"] == START else [Made(request.name, output)]
        judged = [Made(f"{request.name}, {TO_JUDGE}", output / CANDIDATE)] if report["candidate"] else []
        return Outcome(report["verdict"], [*result, *judged], report)
    from cse.training.listing import read_run

    run = read_run(output, MODEL)
    return Outcome(conclusion(run.dev), [Made(request.name, run.path)])


def conclusion(dev: Mapping[str, Any]) -> str:
    """Return what is known of a model trained as published: whether it collapsed, and nothing of better or worse."""
    start, best = dev.get("start"), dev.get("best")
    if start is None or best is None:
        return f"{measured(None)} Trained to the last step. {JUDGE}"
    guard = f"the guard's score is {best:.1f} at best, {start:.1f} before training"
    if best <= start:
        return f"{measured(None)} No better by the guard: {guard}. Keep the start, or judge both on your texts."
    return f"{measured(None)} The run did not collapse: {guard}. {JUDGE}"
