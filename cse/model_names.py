"""What a model name means: decided here once, for `cse.load`, the evaluation, the app and the index alike."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from cse import hub
from cse.errors import ArtefactError
from cse.files import read_json
from cse.methods import UNTRAINED
from cse.sentence_transformers import RecordedPooling, recorded_pooling

BUNDLED = Path(__file__).resolve().parent / "bundled"
BUNDLED_NAMES = ("simcse", "promptbert", "dcpcse", "conpvp")
BACKBONE = "bundled"  # this project's own backbone
CONFIG = "config.json"
DEFAULT_POOLING = "mean"


class Kind(str, Enum):
    """What is behind a name."""

    CHECKPOINT = "checkpoint"  # made by this project's training, bundled or in a folder
    BACKBONE = "backbone"  # a masked language model read by one of `methods.UNTRAINED`
    SENTENCE_TRANSFORMERS = "sentence-transformers"  # a backbone read as its `modules.json` says
    WORD_VECTORS = "word-vectors"  # a file of word vectors, such as GloVe's


@dataclass(frozen=True)
class ModelReference:
    """A model by the `name` and the `pooling` that open it again from any working folder.

    `pooling` is None where the model itself says how it is read; `recorded` is what a sentence-transformers model says.
    """

    name: str
    kind: Kind
    pooling: str | None = None
    recorded: RecordedPooling | None = None

    @property
    def label(self) -> str:
        """What tables and pages call it: the last part of its name, and its pooling where it has one."""
        pooling = self.recorded.pooling if self.recorded else self.pooling
        return "-".join(part for part in (Path(self.name).name, pooling) if part)


def resolve(model: str, pooling: str | None = None) -> ModelReference:
    """What `model` is: a bundled name, a checkpoint, a backbone, a sentence-transformers model or word vectors.

    `pooling` reads a backbone, or the backbone of a sentence-transformers model, in that way instead of the mean or of
    what is recorded. Reads configurations and no weights. Raises ArtefactError, with the choices, for a name behind
    which there is no model; ValueError for an unknown pooling and for one given to what pools its own way.
    """
    if not model.strip():
        raise ArtefactError(f"no model given; choose {_choices()}")
    if pooling is not None and pooling not in UNTRAINED:
        raise ValueError(f"unknown pooling {pooling!r}; choose from {', '.join(UNTRAINED)}")
    name = canonical_name(model)
    own_way = Kind.WORD_VECTORS if Path(name).is_file() else Kind.CHECKPOINT if _is_checkpoint(name) else None
    if own_way:
        if pooling is not None:
            raise ValueError(f"{model} is a {own_way.value} and pools its own way; leave out `pooling`")
        return ModelReference(name, own_way)
    recorded = None if pooling else recorded_pooling(location(name))
    if recorded:
        return ModelReference(name, Kind.SENTENCE_TRANSFORMERS, recorded=recorded)
    return ModelReference(name, Kind.BACKBONE, pooling or DEFAULT_POOLING)


def resolve_backbone(model: str) -> ModelReference:
    """What `model` is, where it can be trained: a backbone, or a sentence-transformers model for its backbone.

    Raises ArtefactError as `resolve` does, for a checkpoint, which is trained already, and for a file.
    """
    reference = resolve(model)
    if reference.kind is Kind.CHECKPOINT:
        raise ArtefactError(f"{model} is a trained checkpoint; give a backbone: {BACKBONE}, a folder or a hub id")
    if reference.kind is Kind.WORD_VECTORS:
        raise ArtefactError(f"{model} is a file; give a backbone: {BACKBONE}, a folder or a hub id")
    return reference


def resolve_again(name: str, pooling: str | None, model: str | None, asked: str | None) -> ModelReference:
    """The model recorded as `name` and `pooling`, or `model` read by the pooling `asked` where these are given.

    The recorded pooling holds for the recorded model where no other is asked for.
    """
    if asked is None and (model is None or canonical_name(model) == name):
        asked = pooling
    return resolve(model or name, asked)


def canonical_name(model: str) -> str:
    """What opens the same model from anywhere: a bundled name, an absolute path, or the hub id as it is."""
    path = Path(model)
    if model in (*BUNDLED_NAMES, BACKBONE) or not path.exists():
        return model
    path = path.resolve()
    if path.parent == BUNDLED and path.name in (*BUNDLED_NAMES, "backbone"):
        return BACKBONE if path.name == "backbone" else path.name
    return str(path)


def location(name: str) -> str:
    """The folder or hub id behind a name."""
    if name == BACKBONE:
        return str(BUNDLED / "backbone")
    return str(BUNDLED / name) if name in BUNDLED_NAMES else name


def read_config(folder: Path) -> dict[str, Any]:
    """The object in a model folder's `config.json`. Raises ArtefactError where it is missing or damaged."""
    return read_json(folder / CONFIG)


def _is_checkpoint(name: str) -> bool:
    if name in (*BUNDLED_NAMES, BACKBONE):
        return name != BACKBONE
    if Path(name).is_dir():
        config = read_config(Path(name))
        if "method" not in config and not any(Path(name).glob("*.safetensors*")):
            raise ArtefactError(f"{name}: no safetensors file in it; copy or train it again")
        return "method" in config
    config_file = hub.cached_file(name, CONFIG)
    if config_file is None:
        reason = "" if hub.reachable() else " (no such folder, and the model hub cannot be reached)"
        raise ArtefactError(f"no model {name!r}; choose {_choices()}{reason}")
    return "method" in read_config(config_file.parent)


def _choices() -> str:
    return f"{', '.join((*BUNDLED_NAMES, BACKBONE))}, a model folder or a hub id"
