"""Results files: scores, protocol and provenance."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from cse.evaluation.tasks import LOGISTIC
from cse.storage.checksums import check_digest, with_digest
from cse.storage.writing import file_digest, write_json

if TYPE_CHECKING:
    from cse.evaluation import Scores

LIBRARIES = ("numpy", "scikit-learn", "scipy", "torch", "transformers")
REQUIRED = ("model", "fingerprint", "scores")  # of a model's record
CURE = "give another `json_output` or pass `overwrite`"
DAMAGED = f"copy it again or remove its digest, or {CURE}"


@dataclass(frozen=True)
class Protocol:
    """Every option, other than the model, that affects a task's scores.

    `data` and `tokenised` are digests of folders (`cse.storage.writing.file_digest`), `sentences` and `fit` are values
    of `name_and_checksum`; `points` is True if the scores for comparisons and figures are kept; `classifier` is
    transfer's, `smooth` and `expand` are retrieval's.
    """

    data: str
    tokenised: str | None = None
    details: bool = False
    final_period: bool = False
    sentences: str | None = None
    fit: str | None = None
    points: bool = False
    classifier: str = LOGISTIC
    smooth: int = 0
    expand: int = 0


class Provenance(TypedDict):
    """The date of a run (ISO 8601), and the versions of Python and of the libraries that affect scores."""

    date: str
    versions: dict[str, str]


@dataclass
class ModelRecord:
    """One model's scores by unit (set), and their provenance.

    `model` is the name it was opened by, `key` that of its published row; models of one `group` differ in their `seed`
    only, and both are None for models not trained here. `family` is that of a published checkpoint. `start`: the model
    before its first training step.
    """

    model: str
    fingerprint: str
    date: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    scores: dict[str, Scores] = field(default_factory=dict)
    group: str | None = None
    seed: int | None = None
    key: str | None = None
    family: str | None = None
    start: bool = False


@dataclass
class Results:
    """All scores of one task under one protocol: `models` by label, the `command` that was run, lines of comparisons.

    A label is the model's name, with its fingerprint if two models have the same name.
    """

    task: str
    protocol: Protocol
    command: str
    models: dict[str, ModelRecord] = field(default_factory=dict)
    comparisons: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The JSON object of a results file.

        `comparisons`, a model's `family` and `start`, and `classifier`, `smooth` and `expand` are omitted if they have
        their default.
        """
        value = asdict(self)
        for name, default in (("classifier", LOGISTIC), ("smooth", 0), ("expand", 0)):
            if value["protocol"][name] == default:
                del value["protocol"][name]
        for record in value["models"].values():
            for name in ("family", "start"):
                if not record[name]:
                    del record[name]
        return value if self.comparisons else {key: item for key, item in value.items() if key != "comparisons"}


def provenance() -> Provenance:
    """The provenance of a run that starts now."""
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return {"date": date.today().isoformat(), "versions": versions}


def name_and_checksum(path: Path | None) -> str | None:
    """A text's entry in a protocol: a file's name and checksum, a hub id unchanged, or None."""
    if path is None:
        return None
    return f"{path.name} {file_digest(path)}" if path.is_file() else str(path)


def read_results(path: Path) -> Results:
    """Read the results in `path`; fields missing in older files get their defaults.

    Raises ValueError, naming the file, if it is not a results file or is damaged.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        lacking = [label for label, record in value["models"].items() if not {*REQUIRED} <= record.keys()]
        read = {} if lacking else {label: ModelRecord(**record) for label, record in value["models"].items()}
        results = Results(
            value["task"], Protocol(**value["protocol"]), value.get("command", ""), read, value.get("comparisons", [])
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a results file ({error}); {CURE}") from error
    if lacking:
        raise ValueError(f"{path}: the record of {lacking[0]} lacks {' or '.join(REQUIRED)}; {CURE}")
    check_digest(value, path, DAMAGED)
    return results


def open_results(path: Path | None, fresh: Results) -> Results:
    """`fresh` with the scores that `path` already has for the same task and protocol.

    Raises ValueError if the file has another task or protocol, or is not a results file.
    """
    if path is None or not path.exists():
        return fresh
    earlier = read_results(path)
    if (earlier.task, earlier.protocol) != (fresh.task, fresh.protocol):
        raise ValueError(
            f"{path}: holds {earlier.task} under {asdict(earlier.protocol)}, not {fresh.task} under "
            f"{asdict(fresh.protocol)}; {CURE}"
        )
    return replace(fresh, models=earlier.models)


def save_results(path: Path, results: Results) -> None:
    """Write `results` and their digest to `path` atomically. Raises OSError if that fails."""
    write_json(path, with_digest(results.to_json()))
