"""The adaptations below a folder, read from the reports that they write: finished, unfinished and damaged ones."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cse.adaptation.choice import AXES
from cse.adaptation.workspace import MARK_FILE, REPORT, REPORT_PAGE, UNFINISHED_ADAPTATION
from cse.errors import ArtefactError
from cse.files.writing import read_json
from cse.training.listing import State


@dataclass(frozen=True)
class AdaptationRecord:
    """An adaptation: its `name` below the folder that was searched, and what its files say; None is unknown.

    `axes` are the scores of start and result on each axis, None where it was not measured. `problem` says in a line why
    an adaptation is damaged.
    """

    name: str
    path: Path
    state: State
    problem: str | None = None
    data: str | None = None
    seconds: float | None = None
    chosen: str | None = None
    verdict: str | None = None
    axes: dict[str, dict[str, float] | None] = field(default_factory=lambda: dict.fromkeys(AXES))

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values."""
        return {
            "name": self.name, "path": str(self.path), "state": self.state.value, "problem": self.problem,
            "method": "adapt", "data": self.data, "verdict": self.verdict, "chosen": self.chosen,
            **self.axes, "seconds": self.seconds,
        }  # fmt: skip


def list_adaptations(folder: Path) -> list[AdaptationRecord]:
    """The adaptations in `folder` and its subfolders, by path."""
    records = []
    for root, folders, files in os.walk(folder):
        path = Path(root)
        if UNFINISHED_ADAPTATION.is_marked(path) or {REPORT, REPORT_PAGE} <= {*files}:
            records.append(read_adaptation(path, path.relative_to(folder).as_posix()))
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return records


def read_adaptation(path: Path, name: str) -> AdaptationRecord:
    """The adaptation in a folder, under a name."""
    try:
        if (path / MARK_FILE).is_file():
            mark = read_json(path / MARK_FILE)
            request = mark["request"]
            return AdaptationRecord(name, path, State.UNFINISHED, None, str(request["data"]), mark.get("seconds"))
        report = read_json(path / REPORT)
        axes = {axis: None if report[axis] is None else {**report[axis]} for axis in AXES}
        for scores in filter(None, axes.values()):
            if {side: type(score) for side, score in scores.items()} != {"start": float, "result": float}:
                raise TypeError(f"scores {scores}")
        data, chosen, verdict = (str(report[key]) for key in ("data", "chosen", "verdict"))
        return AdaptationRecord(
            name, path, State.FINISHED, data=data, seconds=report["seconds"], chosen=chosen, verdict=verdict, axes=axes
        )
    except ArtefactError as error:
        problem = " ".join(str(error).split())
    except (KeyError, TypeError) as error:
        problem = f"{path}: its report is of another version or damaged ({error}); adapt again"
    return AdaptationRecord(name, path, State.DAMAGED, problem)
