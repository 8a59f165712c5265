"""The folders of adaptations: finished ones, unfinished ones with a result for each stage, and all below a folder."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cse.adaptation.choice import AXES, TRAINING
from cse.adaptation.projection import MODEL_FILES, PROJECTION_RECORD
from cse.errors import ArtefactError
from cse.files.replace import sweep
from cse.files.writing import FolderKind, check_folder, partial_folder, read_json, write_file, write_folder, write_json
from cse.training.listing import State

REPORT, REPORT_PAGE, CANDIDATE, MARK_FILE = "report.json", "report.html", "candidate", "adaptation.json"
LANGUAGE_FOLDER = "language"  # the folder of masked language modelling, and its texts
TRAINED_FOLDER = "trained"  # the trained model without what training needs besides
RESULT_FOLDER, CANDIDATE_FOLDER = "result", "judged"  # the models that are published
REPORTED = ("data", "verdict", "chosen", *AXES, "seconds")  # of a report, in a list of adaptations
ADAPTED_FOLDER = FolderKind(
    "an adapted model", REPORT, ("run", "decision"),
    (REPORT, REPORT_PAGE, *MODEL_FILES, CANDIDATE, *(f"{CANDIDATE}/{name}" for name in MODEL_FILES)),
)  # fmt: skip
TURNED_FOLDER = FolderKind("an adapted model", PROJECTION_RECORD, ("dial", "spectrum"), MODEL_FILES)
STAGE_FOLDERS = (LANGUAGE_FOLDER, TRAINING, TRAINED_FOLDER, RESULT_FOLDER, CANDIDATE_FOLDER)
UNFINISHED_ADAPTATION = FolderKind(
    "an unfinished adaptation", MARK_FILE, ("request", "stages"),
    (MARK_FILE, "training.json", f"{LANGUAGE_FOLDER}.txt", "*.npy", "training.partial", "training.partial/*", ".*",
     *STAGE_FOLDERS, *(f"{name}/*" for name in STAGE_FOLDERS)),
)  # fmt: skip


@dataclass
class Workspace:
    """The folder `work` of an unfinished adaptation of a `request`; `stages` are the results of the finished ones.

    `limit` is the number of seconds that all stages may take together, or None. `run` names the run.
    """

    work: Path
    request: dict[str, Any]
    limit: float | None = None
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    run: str = ""
    began: float = field(default_factory=time.monotonic)
    earlier: float = 0.0  # seconds of the sessions before a kill

    @classmethod
    def begin(cls, output: Path, request: dict[str, Any], minutes: float | None, resume: bool) -> Workspace:
        """Begin, or continue with `resume`. Raises ArtefactError if the unfinished one is of another request."""
        work, limit = partial_folder(output), None if minutes is None else 60 * minutes
        if not resume:
            made = cls(work, request, limit, run=secrets.token_hex(8))
            write_folder(work, lambda target: made.write(target / MARK_FILE), UNFINISHED_ADAPTATION)
            return made
        mark = read_json(work / MARK_FILE)
        known = mark.get("request", {})
        if odd := sorted(name for name in {*request, *known} if request.get(name) != known.get(name)):
            raise ArtefactError(
                f"{work}: begun with other {', '.join(odd)}; repeat the command as it was, or start again with "
                "`overwrite`"
            )
        earlier = float(mark.get("seconds", 0))
        return cls(work, request, limit, dict(mark["stages"]), str(mark.get("run", "")), earlier=earlier)

    def write(self, path: Path) -> None:
        """Write the mark of the folder."""
        value = {"request": self.request, "run": self.run, "seconds": self.spent, "stages": self.stages}
        write_json(path, value)

    @property
    def spent(self) -> float:
        """Seconds of this run so far."""
        return round(self.earlier + time.monotonic() - self.began, 1)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return float("inf") if self.limit is None else self.limit - self.spent

    def stage(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run a stage, unless it is finished already, and return its result with its `seconds`."""
        if name not in self.stages:
            began = time.monotonic()
            result = make()
            self.stages[name] = {**result, "seconds": round(time.monotonic() - began, 1)}
            self.write(self.work / MARK_FILE)
        return self.stages[name]

    def keep(self, name: str, vectors: np.ndarray) -> None:
        """Keep the vectors (N, d) of the held-out texts by a candidate."""

        def fill(fresh: Path) -> None:
            with fresh.open("wb") as file:
                np.save(file, vectors)

        write_file(self.work / f"{name}.npy", fill)

    def kept(self, name: str) -> np.ndarray:
        """Return the vectors of the held-out texts by a candidate. Raises ArtefactError if they are damaged."""
        path = self.work / f"{name}.npy"
        try:
            return np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ArtefactError(f"{path}: damaged ({error}); start again with `overwrite`") from error

    def publish(self, output: Path, model: Path | None, candidate: Path | None, files: Mapping[str, str]) -> None:
        """Replace `output` by a model, a candidate and the text `files`, and delete the unfinished folder."""

        def fill(target: Path) -> None:
            for source, destination in ((model, target), (candidate, target / CANDIDATE)):
                if source is not None:
                    shutil.copytree(source, destination, dirs_exist_ok=True)
            for name, text in files.items():
                (target / name).write_text(text, encoding="utf-8")

        write_folder(output, fill, ADAPTED_FOLDER)
        UNFINISHED_ADAPTATION.delete(self.work)


def check_output(output: Path, *, resume: bool, overwrite: bool) -> None:
    """Raise ValueError if an adaptation may not write to `output`, ArtefactError if there is nothing to resume.

    A finished one is replaced only with `overwrite`, other files never; an unfinished one is continued only with
    `resume` and deleted only with `overwrite`.
    """
    work = partial_folder(output)
    check_folder(output)
    sweep(output)
    UNFINISHED_ADAPTATION.check_replaceable(work)
    if work.is_dir() and (not any(work.iterdir()) or _is_left_over(work, output)):
        UNFINISHED_ADAPTATION.delete(work)
    ADAPTED_FOLDER.check_replaceable(output)
    begun = work.exists()
    if output.is_dir() and any(output.iterdir()):
        if resume and not begun:
            raise ValueError(f"{output} is already finished; there is nothing to resume")
        if not overwrite and not resume:
            raise ValueError(f"{output} already holds something; give another `output` or pass `overwrite`")
    if resume and not begun:
        raise ArtefactError(f"{work}: nothing to resume; run once without `resume`")
    if begun and not resume and not overwrite:
        raise ValueError(f"{work} holds an unfinished adaptation; pass `resume` to go on or `overwrite` to drop it")


def _is_left_over(work: Path, output: Path) -> bool:
    """True if a run was killed after it wrote `output`."""
    try:
        finished = json.loads((output / REPORT).read_text(encoding="utf-8"))["run"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(finished) and finished == read_json(work / MARK_FILE).get("run")


@dataclass(frozen=True)
class AdaptationRecord:
    """An adaptation: its `name` below the folder that was searched, and what its `report` says of `REPORTED`, if known.

    Axes are the scores of start and result, None where they were not measured. `problem` says in a line why an
    adaptation is damaged.
    """

    name: str
    path: Path
    state: State
    problem: str | None = None
    report: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values."""
        return {
            "name": self.name, "path": str(self.path), "state": self.state.value, "problem": self.problem,
            "method": "adapt", **{key: self.report.get(key) for key in REPORTED},
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
            known = {"data": mark["request"]["data"], "seconds": mark.get("seconds")}
            return AdaptationRecord(name, path, State.UNFINISHED, report=known)
        report = read_json(path / REPORT)
        for scores in filter(None, (report[axis] for axis in AXES)):
            if {side: type(score) for side, score in {**scores}.items()} != {"start": float, "result": float}:
                raise TypeError(f"scores {scores}")
        return AdaptationRecord(name, path, State.FINISHED, report={key: report[key] for key in REPORTED})
    except ArtefactError as error:
        problem = " ".join(str(error).split())
    except (KeyError, TypeError) as error:
        problem = f"{path}: its report is of another version or damaged ({error}); adapt again"
    return AdaptationRecord(name, path, State.DAMAGED, problem)
