"""The outcome of a finished training: its models, and what was measured of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse.app.training.changes import Changes
from cse.app.training.request import ADAPT, MODEL, TrainingRequest
from cse.files.writing import read_json

JUDGE = "Compare the two on your own texts before you use it."
CANDIDATE = "to judge"


@dataclass(frozen=True)
class Made:
    """A model: the name that its visitor gave it, and its folder."""

    name: str
    folder: Path


@dataclass(frozen=True)
class Outcome:
    """`sentence` says first what was measured of the result against its start, and then what to conclude.

    `table` has the scores with their header first, `explained` their meaning.
    """

    sentence: str
    models: Sequence[Made]
    table: Sequence[Sequence[str]] = ()
    explained: str = ""


def outcome_of(request: TrainingRequest, folder: Path, changes: Changes | None) -> Outcome:
    """Return the outcome in the folder of a finished training. Raises ArtefactError if it is damaged."""
    if request.method == ADAPT:
        return of_adaptation(request, folder / MODEL)
    from cse.training.listing import read_run

    run = read_run(folder / MODEL, MODEL)
    return Outcome(conclusion(run.dev, changes.neighbours if changes else None), [Made(request.name, run.path)])


def of_adaptation(request: TrainingRequest, output: Path) -> Outcome:
    """Return the outcome of an adaptation: its result, unless that is the start, and a candidate to judge."""
    from cse.adaptation.choice import START
    from cse.adaptation.report import explained, scores_table
    from cse.adaptation.workspace import CANDIDATE as FOLDER
    from cse.adaptation.workspace import REPORT

    report = read_json(output / REPORT)
    kept = report["decision"] == START
    found = [] if kept else [Made(request.name, output)]
    judged = [Made(f"{request.name}, {CANDIDATE}", output / FOLDER)] if report["candidate"] else []
    return Outcome(report["verdict"], [*found, *judged], scores_table(report), explained(report))


def conclusion(dev: Mapping[str, Any], neighbours: tuple[float, float] | None) -> str:
    """Return what was measured of a trained model, by the labels of texts if there are any, else by the guard."""
    from cse.adaptation.choice import NEIGHBOUR_MARGIN, measured

    if neighbours is not None:
        before, after = neighbours
        keep = "" if after - before > NEIGHBOUR_MARGIN else " Keep the start."
        shares = f"{after:.1f} % of the nearest texts have the text's label, {before:.1f} % before training."
        return f"{measured(after - before)} {shares}{keep}"
    start, best = dev.get("start"), dev.get("best")
    if start is None or best is None:
        return f"{measured(None)} Trained to the last step. {JUDGE}"
    guard = f"the guard's score is {best:.1f} at best, {start:.1f} before training"
    if best <= start:
        return f"{measured(None)} No better by the guard: {guard}. Keep the start, or judge both on your texts."
    return f"{measured(None)} The run did not collapse: {guard}. {JUDGE}"
