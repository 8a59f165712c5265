"""The training runs below a folder, read from the files that they write: finished, unfinished and damaged ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from cse.errors import ArtefactError, command_line
from cse.files.writing import read_json
from cse.methods.settings import to_json
from cse.models.checkpoint import CHECKPOINT, LOG, read_checkpoint_config
from cse.models.names import CONFIG, record_file
from cse.training.records import RUN_FILE, STATE_FOLDER

PARTIAL_SUFFIX = ".partial"
NUMBER_TYPES = (int, float)
SCORED_ON = {"pairs": "dev_pairs", "held-out": "held_out"}


class State(str, Enum):
    """States of a run's folder."""

    FINISHED = "finished"
    UNFINISHED = "unfinished"  # still running, or killed
    DAMAGED = "damaged"


@dataclass(frozen=True)
class RunRecord:
    """A run: its `name` below the folder that was searched, and what its files say; None is unknown.

    `start`, `best` and `last` are dev scores, `steps` those taken, `settings` all that the run recorded, by name, and
    `log` the entries of its steps. `problem` says in a line why a run is damaged.
    """

    name: str
    path: Path
    state: State
    problem: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    dev: Mapping[str, Any] = field(default_factory=dict)
    log: tuple[Mapping[str, Any], ...] = ()

    @property
    def scored_on(self) -> str | None:
        """The source of its dev scores: pairs (Spearman x 100), held-out texts (concentration) or nothing (None)."""
        return next((what for what, key in SCORED_ON.items() if self.settings.get(key)), None)

    @property
    def gain(self) -> float | None:
        """The best dev score minus that of the start."""
        start, best = self.dev.get("start"), self.dev.get("best")
        return None if start is None or best is None else round(best - start, 3)

    @property
    def steps(self) -> int | None:
        """Steps taken."""
        return self.log[-1]["step"] if self.log else None

    @property
    def seconds(self) -> float | None:
        """Seconds of its steps and evaluations."""
        rates = [entry.get("sentences_per_second") for entry in self.log]
        size = self.settings.get("batch_size")
        if not rates or not isinstance(size, int) or not all(rates):
            return None
        return round(sum(size / rate for rate in rates if rate), 1)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values, without the log."""
        scores = {name: self.dev.get(name) for name in ("start", "best", "best_step", "last")}
        return {
            "name": self.name, "path": str(self.path), "state": self.state.value, "problem": self.problem,
            "method": self.settings.get("method.name"), "data": self.settings.get("data"),
            "scored_on": self.scored_on, **scores, "gain": self.gain, "steps": self.steps,
            "seconds": self.seconds, "settings": dict(self.settings),
        }  # fmt: skip


def list_runs(folder: Path) -> list[RunRecord]:
    """The runs in `folder` and its subfolders, by path. Raises ValueError if it is no folder."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: {'is a file' if folder.exists() else 'no such folder'}; give a folder of runs")
    runs = []
    for root, folders, files in os.walk(folder):
        path = Path(root)
        if RUN_FILE in files or LOG in files or (record_file(path).name in files and CHECKPOINT.is_marked(path)):
            runs.append(read_run(path, path.relative_to(folder).as_posix()))
            folders.clear()  # the best checkpoint of an unfinished run, or a copy of a backbone
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return runs


def read_run(path: Path, name: str) -> RunRecord:
    """The run in a folder, under a name. Raises ValueError if it is no folder of a run."""
    unfinished = path.name.endswith(PARTIAL_SUFFIX)
    if not path.is_dir() or not any((path / file).is_file() for file in (RUN_FILE, LOG, CONFIG)):
        raise ValueError(f"{path}: no run in it; give a folder that {command_line('train')} wrote")
    settings: dict[str, Any] = {}
    dev: Mapping[str, Any] = {}
    log: tuple[Mapping[str, Any], ...] = ()
    try:
        log, problem = _log(path / LOG, unfinished)
        settings, dev = _unfinished(path) if unfinished else _finished(path)
        if not all(isinstance(score, NUMBER_TYPES) for score in dev.values()):
            dev, problem = {}, f"{path}: its dev scores are no numbers; train it again"
    except (ArtefactError, OSError) as error:
        problem = " ".join(str(error).split())
    scores = [entry["dev"] for entry in log if entry.get("dev") is not None]
    dev = {**dev, "last": scores[-1]} if scores else dev  # a checkpoint records what was known when it was saved
    state = State.DAMAGED if problem else State.UNFINISHED if unfinished else State.FINISHED
    return RunRecord(name, path, state, problem, settings, dev, log)


def _finished(path: Path) -> tuple[dict[str, Any], Mapping[str, Any]]:
    config = read_checkpoint_config(path)
    if missing := next((file for file in config.sha256 if not (path / file).is_file()), None):
        raise ArtefactError(f"{path}: lacks {missing}; copy or train it again")
    recorded = {"backbone": config.backbone.name, "fingerprint": config.backbone.fingerprint}
    method = {"storage": config.storage.value, **_flat("method", to_json(config.method))}
    return {**recorded, **config.training["settings"], **method}, config.training["dev"]


def _unfinished(path: Path) -> tuple[dict[str, Any], Mapping[str, Any]]:
    state = path / STATE_FOLDER / "meta.json"
    saved = read_json(state) if state.is_file() else {}
    recipe = read_json(path / RUN_FILE).get("recipe")
    if not isinstance(recipe, dict) or not isinstance(recipe.get("method"), dict):
        raise ArtefactError(f"{path}: {RUN_FILE} holds no recipe; start the run again with `overwrite`")
    settings = {name: value for name, value in recipe.items() if name not in ("method", "backbone")}
    dev = saved.get("dev")
    known = {"fingerprint": recipe.get("backbone"), **settings, **_flat("method", recipe["method"])}
    return known, dev if isinstance(dev, dict) else {}


def _flat(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    values = json.loads(json.dumps(value))  # enums as texts and tuples as lists, as they are in files
    return {f"{name}.{key}": item for key, item in values.items() if key not in ("summary", "citation")}


def _log(path: Path, unfinished: bool) -> tuple[tuple[Mapping[str, Any], ...], str | None]:
    """The entries of a log, and why it is damaged; the last line of an unfinished run may be cut off."""
    if not path.is_file():
        return (), None
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    if unfinished and lines and not lines[-1].endswith("\n"):
        lines.pop()
    entries: list[Mapping[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            known = [entry["loss"], *(entry.get(name) or 0.0 for name in ("dev", "sentences_per_second"))]
            whole = isinstance(entry["step"], int) and all(isinstance(value, NUMBER_TYPES) for value in known)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            whole = False
        if not whole:
            return tuple(entries), f"{path}: line {number} is damaged; restore it"
        entries.append(entry)
    return tuple(entries), None


def differences(first: RunRecord, second: RunRecord) -> dict[str, tuple[Any, Any]]:
    """The settings in which two runs differ, by name; None where one has not recorded it."""
    names = dict.fromkeys([*first.settings, *second.settings])
    pairs = {name: (first.settings.get(name), second.settings.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
