"""The outcome of a finished training: its models, and whether the result is better than its start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse.app.training.changes import Changes
from cse.app.training.request import ADAPT, MODEL, TrainingRequest
from cse.storage.writing import read_json

JUDGE = "Compare the two on your own texts before you use it."
CANDIDATE = "to judge"


@dataclass(frozen=True)
class Made:
    """A model: the name that its visitor gave it, and its folder."""

    name: str
    folder: Path


@dataclass(frozen=True)
class Outcome:
    """`sentence` says what to conclude, `better` if the result may be used in place of its start (None: unproved).

    `table` has the scores with their header first, `explained` their meaning.
    """

    sentence: str
    better: bool | None
    models: Sequence[Made]
    table: Sequence[Sequence[str]] = ()
    explained: str = ""


def outcome_of(request: TrainingRequest, folder: Path, changes: Changes | None) -> Outcome:
    """Return the outcome in the folder of a finished training. Raises ArtefactError if it is damaged."""
    if request.method == ADAPT:
        return of_adaptation(request, folder / MODEL)
    from cse.runs.listing import read_run

    run = read_run(folder / MODEL, MODEL)
    better, sentence = conclusion(run.dev, changes.neighbours if changes else None)
    return Outcome(sentence, better, [Made(request.name, run.path)])


def of_adaptation(request: TrainingRequest, output: Path) -> Outcome:
    """Return the outcome of an adaptation: a better model, if there is one, and a candidate that is to be judged."""
    from cse.adaptation.choice import START
    from cse.adaptation.report import explained, table
    from cse.adaptation.workspace import CANDIDATE as FOLDER
    from cse.adaptation.workspace import REPORT

    report = read_json(output / REPORT)
    kept = report["decision"] == START
    found = [] if kept else [Made(request.name, output)]
    judged = [Made(f"{request.name}, {CANDIDATE}", output / FOLDER)] if report["candidate"] else []
    better = False if kept else (True if request.labels else None)
    return Outcome(report["sentence"], better, [*found, *judged], table(report), explained(report))


def conclusion(dev: dict[str, Any] | Any, neighbours: tuple[float, float] | None) -> tuple[bool | None, str]:
    """Return whether a trained model is better, and why, by the labels of texts if there are any, else by the guard."""
    from cse.adaptation.choice import MARGIN

    if neighbours is not None:
        before, after = neighbours
        measured = f"{after:.1f} % of the nearest texts have the text's label, {before:.1f} % before training"
        if after - before > MARGIN:
            return True, f"Better than its start on the labels of these texts: {measured}."
        return False, f"No better than its start on the labels of these texts: {measured}. Keep the start."
    start, best = dev.get("start"), dev.get("best")
    if start is None or best is None:
        return None, f"Trained to the last step. Nothing shows whether it is better than its start. {JUDGE}"
    measured = f"the guard's score is {best:.1f} at best, {start:.1f} before training"
    if best <= start:
        return False, f"No better than its start: {measured}. Keep the start, or judge both on your own texts."
    return None, f"The run did not collapse: {measured}. That does not prove a better model. {JUDGE}"
