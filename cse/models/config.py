"""The record of a checkpoint: a frozen value, stored as JSON (`cse.models.names.record_file`), described by a card."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict

from cse.methods.method import Method
from cse.methods.serialise import from_json, to_json
from cse.models.storage import Storage
from cse.storage.checksums import DIGEST, content_digest

# An earlier version refuses what it cannot read.
FORMATS = {Storage.FLOAT32: 1, Storage.FLOAT16: 1, Storage.INT8: 2, Storage.DELTA: 2}
WHOLE = 3  # format of a folder that contains the whole model, for other tools, too

EMBEDDED = "backbone"  # a subfolder of the checkpoint with a copy of its backbone


class DevScores(TypedDict, total=False):
    """Spearman x 100 on the dev pairs: before the first step, at the last evaluation, and the best with its step."""

    start: float
    last: float
    best: float
    best_step: int


class TrainingRecord(TypedDict, total=False):
    """The training part of a checkpoint's config: settings, method of selecting the state, dev scores."""

    settings: dict[str, Any]
    selection: str
    dev: DevScores


@dataclass(frozen=True)
class BackboneRecord:
    """The backbone a checkpoint was trained on: folder or hub id, hub commit, and fingerprint at that time.

    `relative` is the path of a folder from the checkpoint's.
    """

    name: str
    revision: str | None
    fingerprint: str
    relative: str | None = None

    def place(self, checkpoint: Path) -> str:
        """Return the name that opens the backbone of a checkpoint's folder: where it was, or else at `relative`."""
        if self.name == f"./{EMBEDDED}":
            return str(checkpoint / EMBEDDED)
        if self.relative and not Path(self.name).exists() and (moved := checkpoint / self.relative).is_dir():
            return str(moved.resolve())
        return self.name


@dataclass(frozen=True)
class CheckpointConfig:
    """The record of a checkpoint; `learned_numbers` counts the parameters that its method learned.

    `whole`: the folder contains the whole model, not only these; then `reason` is why sentence-transformers cannot
    compute its vectors, a phrase after a name, "" if it can. `sha256` has the checksums of the files by name. The first
    versions recorded neither these nor a digest of the other fields, so changes to a template or a setting there are
    not noticed.
    """

    method: Method
    backbone: BackboneRecord
    frozen_embeddings: bool
    learned_numbers: int
    storage: Storage
    training: TrainingRecord
    sha256: dict[str, str] = field(default_factory=dict)
    whole: bool = False
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the object in the file, with the versions of the libraries that write it."""
        versions = {name: version(name) for name in ("torch", "transformers")}
        backbone = {key: item for key, item in asdict(self.backbone).items() if key != "relative" or item}
        value = {
            "format": WHOLE if self.whole else FORMATS[self.storage], "storage": self.storage.value,
            "method": to_json(self.method), "backbone": backbone,
            "frozen_embeddings": self.frozen_embeddings, "learned_numbers": self.learned_numbers, **self.training,
            **({"sha256": self.sha256} if self.sha256 else {}), **({"reason": self.reason} if self.reason else {}),
            "versions": {"python": platform.python_version(), **versions},
        }  # fmt: skip
        return {**value, DIGEST: _own_digest(value)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> CheckpointConfig:
        """Read the output of `to_json`. Raises ValueError with the reason for anything else."""
        if value.get("format") not in (*FORMATS.values(), WHOLE):
            raise ValueError(f"checkpoint format {value.get('format')}, this version reads 1 to {WHOLE}")
        if DIGEST in value and value[DIGEST] != _own_digest(value):
            raise ValueError("damaged (its digest is not the one recorded)")
        try:
            method, origin = from_json(value["method"]), value["backbone"]
            backbone = BackboneRecord(
                str(origin["name"]), origin.get("revision"), origin["fingerprint"], origin.get("relative")
            )
            training: TrainingRecord = {
                "settings": dict(value.get("settings", {})),
                "selection": value.get("selection", ""),
                "dev": DevScores(**(value.get("dev") or {})),
            }
            storage = Storage(value.get("storage", Storage.FLOAT32))  # not recorded by the first versions
            learned = int(value.get("learned_numbers", 0))
            sums = {str(name): str(checksum) for name, checksum in value.get("sha256", {}).items()}
            return cls(
                method,
                backbone,
                bool(value.get("frozen_embeddings")),
                learned,
                storage,
                training,
                sums,
                value["format"] == WHOLE,
                str(value.get("reason", "")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"not a checkpoint of this project ({error})") from error


def _own_digest(value: dict[str, Any]) -> str:
    """Return the digest of a record without the digest itself and the backbone's paths, which may change."""
    backbone = value.get("backbone")
    if isinstance(backbone, dict):
        backbone = {key: item for key, item in backbone.items() if key not in ("name", "relative")}
    return content_digest({**value, "backbone": backbone})
