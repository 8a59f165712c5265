"""A results file: what was scored, with what, when. Written after every unit: an interruption loses one at most."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.files import file_digest, write_json

if TYPE_CHECKING:
    from cse.evaluation import Encode, Unit

LIBRARIES = ("numpy", "scikit-learn", "scipy", "torch", "transformers")


def new_results(task: str, protocol: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Results without a score: `protocol` is every option that decides them, `command` what the user ran."""
    return {"task": task, "protocol": dict(protocol), "command": command, "models": {}}


def provenance() -> dict[str, Any]:
    """When and with which libraries a model is scored."""
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return {"date": date.today().isoformat(), "versions": versions}


def name_and_checksum(path: Path | None) -> str | None:
    """What stands in a protocol for a text: a file's name and checksum, a hub id as it is, None for none."""
    if path is None:
        return None
    return f"{path.name} {file_digest(path)}" if path.is_file() else str(path)


def open_results(path: Path | None, fresh: dict[str, Any]) -> dict[str, Any]:
    """`fresh` with the scores that `path` already holds for the same task and protocol.

    Raises ValueError where the file holds anything else.
    """
    if path is None or not path.exists():
        return fresh
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
        same = {key: earlier[key] for key in ("task", "protocol")} == {key: fresh[key] for key in ("task", "protocol")}
        models = dict(earlier["models"])
        whole = all({"model", "fingerprint", "scores"} <= record.keys() for record in models.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a results file ({error}); give another --json or --overwrite") from error
    if not whole:
        raise ValueError(f"{path}: a record lacks model, fingerprint or scores; give another --json or --overwrite")
    if not same:
        raise ValueError(
            f"{path}: holds {earlier['task']} under {earlier['protocol']}, not {fresh['task']} under "
            f"{fresh['protocol']}; give another --json or --overwrite"
        )
    return {**fresh, "models": models}


def save_results(path: Path, results: Mapping[str, Any]) -> None:
    """Write `results` to `path` at once, or leave the earlier file as it was and raise OSError naming it."""
    write_json(path, results)


def run_units(
    encode: Encode, units: Mapping[str, Unit], done: dict[str, Any], save: Callable[[str], None]
) -> dict[str, Any]:
    """`done` completed by the units it lacks, these in the units' order; `save` is called with the name after each."""
    remembering = remembered(encode)
    for name, unit in units.items():
        if name not in done:
            done[name] = unit(remembering)
            save(name)
    return {**{name: done[name] for name in units}, **done}


def remembered(encode: Encode) -> Encode:
    """`encode` that asks for each distinct text once, however many units share it."""
    known: dict[str, np.ndarray] = {}

    def encode_new(texts: list[str]) -> np.ndarray:
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            known.update(zip(new, encode(new), strict=True))
        return np.stack([known[text] for text in texts]) if texts else encode([])

    return encode_new
