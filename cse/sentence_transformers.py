"""What a sentence-transformers folder or hub id says about how its backbone is read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cse import hub
from cse.errors import ArtefactError

POOLINGS = {"cls": "cls", "mean": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


@dataclass(frozen=True)
class RecordedPooling:
    """How a sentence-transformers model pools, and the tokens it was cut to, specials included."""

    pooling: str
    max_length: int | None


def recorded_pooling(name: str) -> RecordedPooling | None:
    """The pipeline recorded beside a model; None for a plain transformers model.

    Vectors are not normalised here, whether or not the pipeline ends so. Raises ArtefactError for a pipeline with
    more than a backbone, a mean or first-token pooling and normalisation.
    """
    modules = _read(name, "modules.json")
    if modules is None:
        return None
    try:
        kinds = {module["type"].rsplit(".", 1)[-1]: module["path"] for module in modules}
        chosen = _read(name, f"{kinds['Pooling']}/config.json") if "Pooling" in kinds else {}
        modes = [key for key, on in (chosen or {}).items() if key.startswith("pooling_mode_") and on is True]
        modes = [chosen["pooling_mode"]] if chosen and "pooling_mode" in chosen else modes
        transformer = kinds.get("Transformer", "")
        config = _read(name, "sentence_bert_config.json") or {}
        length, lowers = config.get("max_seq_length"), config.get("do_lower_case")
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtefactError(f"{name}: its sentence-transformers configuration is damaged ({error!r})") from error
    if kinds.keys() - {"Transformer", "Pooling", "Normalize"} or len(modes) != 1 or modes[0] not in POOLINGS:
        raise ArtefactError(
            f"{name}: its pipeline ({', '.join(kinds)}; pooling {', '.join(map(str, modes)) or 'unknown'}) is not a "
            "backbone with mean or cls pooling; give `pooling` to read the backbone alone"
        )
    if transformer or lowers:
        odd = f"its backbone lies in {transformer}" if transformer else "it lower-cases its text itself"
        raise ArtefactError(f"{name}: {odd}, which is not supported; give `pooling` to read the backbone alone")
    return RecordedPooling(POOLINGS[modes[0]], length if isinstance(length, int) else None)


def _read(name: str, file: str) -> Any:
    path = hub.cached_file(name, file)
    try:
        return None if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArtefactError(f"{name}: {file} is damaged ({error})") from error
