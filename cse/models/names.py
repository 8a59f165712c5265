"""Resolution of model names, and the families of published checkpoints as values: how each is read and recognised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any

from cse.encoder.stored_tokenizer import Additions
from cse.errors import ArtefactError
from cse.files import hub
from cse.files.hub import split_revision
from cse.files.replace import recover
from cse.files.weights import find_weights, stored_keys
from cse.files.writing import damage_named, read_json
from cse.methods.catalogue import METHODS, SUPERVISED, UNTRAINED
from cse.methods.method import Method, Reading
from cse.methods.templates import Template
from cse.models.pipeline import CONFIG, SAVED_KEY, is_pipeline
from cse.models.sentence_transformers import (
    RecordedPooling,
    check_vectors,
    modules_of,
    recorded_pooling,
    static_folder,
    transformer_folder,
)

HEADS = ("mlp.", "pooler.")  # key prefixes of a head in the training code's files and after SimCSE's converter


@dataclass(frozen=True)
class Family:
    """A format of checkpoints: the `method` that encodes like it, and the hub `ids` it is published under.

    `tensor` is the key of a learned tensor other than backbone and head, `learned` the attribute of `Encoder` for it,
    and `fit` adapts the reading to its number of rows. `mark` is a pattern of keys that only this format stores.
    """

    name: str
    method: Method
    ids: tuple[str, ...] = ()
    mark: str | None = None
    tensor: str | None = None
    learned: str = ""
    fit: Callable[[Reading, int], Reading] = lambda reading, rows: reading

    def published(self, roberta: bool, rows: int) -> Method:
        """Return the method of a checkpoint: the first view only, and the head only if encoding uses it.

        `rows` is the number of rows of `tensor`.
        """
        method = self.method.on_roberta() if roberta else self.method
        reading = self.fit(method.reading, rows)
        return replace(method, further=(), reading=replace(reading, head_when=reading.head_when.in_encoding))


def _ids(owner: str, start: str, *ends: str) -> tuple[str, ...]:
    return tuple(f"{owner}/{start}-{end}" for end in ends)


SIZES = ("bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large")
PROMCSE: dict[str, Any] = {
    "mark": r"prefix_encoder\..+", "tensor": "prefix_encoder.embedding.weight", "learned": "prefix",
    "fit": lambda reading, rows: replace(reading, prefix=rows),
}  # fmt: skip

# If a file has the marks of several families, the first one applies.
FAMILIES = {
    family.name: family
    for family in (
        Family("simcse", METHODS["simcse"], _ids("princeton-nlp", "unsup-simcse", *SIZES)),
        Family("simcse-supervised", SUPERVISED["simcse"], _ids("princeton-nlp", "sup-simcse", *SIZES)),
        Family(
            "esimcse", METHODS["esimcse"],
            _ids("ffgcc", "esimcse", *SIZES), r"momentum_model\..+",
        ),
        Family("promptbert", METHODS["promptbert"], _ids("royokong", "unsup", "PromptBERT", "PromptRoBERTa")),
        Family(
            "promcse", METHODS["dcpcse"], ("YuxinJiang/unsup-promcse-bert-base-uncased",), **PROMCSE
        ),
        Family(
            "promcse-supervised", SUPERVISED["dcpcse"], _ids("YuxinJiang", "sup-promcse", *SIZES[2:]), **PROMCSE
        ),
        # Its RoBERTa form has spaces and pads between sentence and slots; they are omitted here (docs/decisions.md).
        Family(
            "conpvp", METHODS["conpvp"], mark="endp", tensor="endp", learned="slots",
            fit=lambda reading, rows: replace(reading, template=Template(f"[X] {'[P]' * rows} [MASK] .")),
        ),
        Family("optiprompt", METHODS["optiprompt"], mark="p_mbv", tensor="p_mbv", learned="slots"),
        Family(
            "promptbert-supervised", SUPERVISED["promptbert"], _ids("royokong", "sup", "PromptBERT", "PromptRoBERTa"),
            r"(mlp|pooler)\.LayerNorm\.weight",  # of the BERT form
        ),
    )
}  # fmt: skip
PUBLISHED_IDS = {name: family for family in FAMILIES.values() for name in family.ids}


def marked(keys: Iterable[str]) -> tuple[str, tuple[Family, ...]]:
    """Return the first key with a family's mark and the families with this mark; "" and () if there is none."""
    for family in FAMILIES.values():
        if family.mark and (marks := sorted(key for key in keys if re.fullmatch(family.mark, key))):
            return marks[0], tuple(other for other in FAMILIES.values() if other.mark == family.mark)
    return "", ()


def identify(name: str, keys: frozenset[str], requested: str | None) -> Family | None:
    """Return the family of the model `name` that stores `keys`; None if nothing identifies one.

    The keys decide, then the table of published ids, then `requested`, a family's name. Raises ValueError if these
    contradict each other, ArtefactError if more than one family remains.
    """
    key, possible = marked(keys)
    published = PUBLISHED_IDS.get(split_revision(name)[0])
    stated = FAMILIES[requested] if requested else published
    if stated and published and stated is not published:
        raise ValueError(f"{name} is published as {published.name}, not as {stated.name}; leave out `family`")
    if stated and possible and stated not in possible:
        raise ValueError(f"{name}: only {_names(possible)} has {key}, not {stated.name}; give that `family` or none")
    if stated or len(possible) < 2:
        return stated or next(iter(possible), None)
    raise ArtefactError(f"{name}: {key} may be of {_names(possible)}; give one of them as `family`")


def _names(families: Iterable[Family]) -> str:
    return " or ".join(family.name for family in families)


BUNDLED = Path(__file__).resolve().parents[1] / "bundled"
BUNDLED_NAMES = ("simcse", "promptbert", "dcpcse", "conpvp")
BACKBONE = "bundled"  # the name of this project's backbone
START = (
    "The bundled backbone began as all-MiniLM-L6-v2, which has seen more than a billion sentence pairs, labelled ones "
    "among them. So no score made on it is an unsupervised result: compare it only with scores of the other bundled "
    "models and with those of the untrained backbone."
)
RECORD = "cse_checkpoint.json"  # in a checkpoint whose config.json is that of transformers
EXPORT_RECORD = "cse_export.json"  # in a folder that was made for another tool
DEFAULT_POOLING = "mean"
AUTO, TORCH, OPENVINO = BACKENDS = ("auto", "torch", "openvino")


class Kind(str, Enum):
    """Kinds of models."""

    CHECKPOINT = "checkpoint"  # of this project's training, bundled or in a folder
    START = "start"  # a checkpoint's method on its backbone, before the first training step
    BACKBONE = "backbone"  # a masked language model read by one of `methods.UNTRAINED`
    SENTENCE_TRANSFORMERS = "sentence-transformers"  # a backbone read as its `modules.json` says
    STATIC = "table of static embeddings"  # a StaticEmbedding, or model2vec's
    PUBLISHED = "published checkpoint"  # of other training code, read by its family in `FAMILIES`
    EXPORT = "export"  # made by `cse export` for another tool, or a checkpoint that such a tool has saved again


@dataclass(frozen=True)
class ModelReference:
    """The `name`, `pooling` and `family` that open a model again from any working directory.

    `pooling` is None if the model itself determines it; `recorded` is that of a sentence-transformers model, `family`
    that of a published checkpoint.
    """

    name: str
    kind: Kind
    pooling: str | None = None
    recorded: RecordedPooling | None = None
    family: str | None = None

    @property
    def label(self) -> str:
        """Return the name for tables and pages: the last part of its name, and its pooling or "start" if it has one."""
        pooling = self.recorded.pooling if self.recorded else self.pooling
        start = Kind.START.value if self.kind is Kind.START else None
        return "-".join(part for part in (Path(self.name).name, pooling, start) if part)

    @property
    def start(self) -> ModelReference:
        """Return the reference of a checkpoint before its first training step. Raises ValueError for other kinds."""
        if self.kind not in (Kind.CHECKPOINT, Kind.START):
            raise ValueError(f"{self.name} is a {self.kind.value}, no checkpoint of a training; leave out `start`")
        return replace(self, kind=Kind.START)


def resolve_recorded(recorded: Any, model: str | None, pooling: str | None, family: str | None) -> ModelReference:
    """Return the `model` that an index's manifest has `recorded`, or another `model`, `pooling` or `family`.

    The recorded pooling and family apply if the model is the recorded one and neither is given. None records nothing.
    """
    if recorded is None:
        return resolve(model or "", pooling, family)
    if pooling is None and family is None and (model is None or canonical_name(model) == recorded.model):
        pooling, family = recorded.pooling, recorded.family
    return resolve(model or recorded.model, pooling, family)


@damage_named
def resolve(
    model: str, pooling: str | None = None, family: str | None = None, *, lenient: bool = False
) -> ModelReference:
    """Return the reference of a bundled name, a folder, a hub id or a file of word vectors.

    `pooling` replaces the mean of a backbone, or the recorded pooling of a sentence-transformers model. `family` is
    that of a published checkpoint that neither its keys nor its id identify. With `lenient`, for options that several
    models share, a model that takes no `pooling` or no `family` ignores it. Reads configurations and the names of
    weights; a hub id's weights are downloaded for that. Raises ArtefactError, with the choices, if there is no such
    model or a checkpoint's family is unclear; ValueError for an unknown pooling or family, or one that contradicts the
    model.
    """
    for what, value, known in (("pooling", pooling, UNTRAINED), ("family", family, FAMILIES)):
        if value is not None and value not in known:
            raise ValueError(f"unknown {what} {value!r}; choose from {', '.join(known)}")
    if pooling and family and not lenient:
        raise ValueError("a family has its own pooling; give `pooling` or `family`")
    name, kind = _kind_by_name(model, pooling)
    if kind:
        option = "pooling" if pooling else "family" if family else ""
        if option and not lenient:
            raise ValueError(f"{model} is a {kind.value} and has its own pooling; leave out `{option}`")
        return ModelReference(name, kind)
    keys = stored_keys(find_weights(location(name)))
    if pooling and not lenient:
        key, possible = marked(keys)
        if key:
            raise ValueError(
                f"{model} is a {possible[0].name} checkpoint ({key}) and has its own pooling; leave out `pooling`"
            )
    elif published := identify(name, keys, None if lenient and name == BACKBONE else family):
        return ModelReference(name, Kind.PUBLISHED, family=published.name)
    reference = _plain(name, pooling)
    heads = sorted(key for key in keys if key.startswith(HEADS))
    if heads and pooling is None and reference.kind is Kind.BACKBONE:
        # SimCSE's converter writes the keys of a plain model with its pooler: a guess would be silently wrong for one.
        raise ArtefactError(
            f"{name}: its {heads[0]} may be a trained head or a plain pooler; give `family` "
            f"({', '.join(FAMILIES)}), or a `pooling` to read it as a plain backbone; where neither can be given, give "
            "an export that was made with one"
        )
    return reference


@damage_named
def resolve_backbone(model: str, family: str | None = None) -> ModelReference:
    """Return the reference of a model that can be trained: a backbone, or that of a sentence-transformers model.

    A checkpoint that contains its whole backbone counts as that. A published checkpoint counts as a backbone, whatever
    its `family`, if no key identifies it. Raises ArtefactError as `resolve` does, for any other checkpoint, which is
    trained already, and for a file; ValueError for a wrong family.
    """
    name, kind = _kind_by_name(model, DEFAULT_POOLING)
    if family:
        resolve(model, family=family)
    if kind in (Kind.CHECKPOINT, None) and name not in (*BUNDLED_NAMES, BACKBONE) and Additions.of(read_config(name)):
        modules = {kind for kind, _ in modules_of(name) or ()}
        plain = modules and modules <= {"Transformer", "Pooling", "Normalize"}
        return _plain(name, None if plain else DEFAULT_POOLING)
    key = "" if kind else marked(stored_keys(find_weights(location(name))))[0]
    if kind or key:
        what = f"trained checkpoint{key and f' ({key})'}"
        what = f"{kind.value}, without layers to train" if kind is Kind.STATIC else what
        raise ArtefactError(f"{model} is a {what}; give a backbone: {BACKBONE}, a folder or a hub id")
    reference = _plain(name, None)
    if reference.recorded and reference.recorded.head:
        layer = next((path for path in reference.recorded.head.paths if path), "Normalize")
        raise ArtefactError(
            f"{model} has a layer after its pooling ({layer}), which training would leave out; give the model that it "
            "was fitted on"
        )
    if reference.recorded and reference.recorded.lower_case:
        raise ArtefactError(
            f"{model} lower-cases its text by do_lower_case, not by its tokenizer, and training would leave that out; "
            "give it a tokenizer that does"
        )
    return reference


def check_name(model: str) -> None:
    """Raise ArtefactError, as `resolve` does, if there is no model of this name; reads no weights."""
    _kind_by_name(model)


def canonical_name(model: str) -> str:
    """Return a name that opens the model from any working directory: bundled name, absolute path or hub id."""
    path = Path(model)
    if model in (*BUNDLED_NAMES, BACKBONE):
        return model
    recover(path)  # else a model whose replacement was killed would be missing
    if not path.exists():
        return model
    path = path.resolve()
    if path.parent == BUNDLED and path.name in (*BUNDLED_NAMES, "backbone"):
        return BACKBONE if path.name == "backbone" else path.name
    return str(path)


def location(name: str) -> str:
    """Return the folder or hub id of a name, for an old sentence-transformers folder that of its backbone."""
    return transformer_folder(model_folder(name))


def model_folder(name: str) -> str:
    """Return the folder or hub id of a name."""
    if name == BACKBONE:
        return str(BUNDLED / "backbone")
    return str(BUNDLED / name) if name in BUNDLED_NAMES else name


def record_file(folder: Path) -> Path:
    """Return the file of a checkpoint's record: `RECORD`, or `CONFIG` if only what was learned is in the folder.

    Earlier versions wrote no `RECORD`.
    """
    return folder / (RECORD if (folder / RECORD).is_file() else CONFIG)


def read_config(name: str) -> dict[str, Any]:
    """Return the object in the `config.json` of a folder or hub id.

    Raises ArtefactError if there is no such model, or the file is missing or damaged.
    """
    config_file = Path(name) / CONFIG if Path(name).is_dir() else hub.cached_file(name, CONFIG)
    if config_file is None:
        reason = "" if hub.reachable() else " (no such folder, and the model hub cannot be reached)"
        near = get_close_matches(name, (*BUNDLED_NAMES, BACKBONE), 1)
        guess = f" (did you mean {near[0]}?)" if near else ""
        raise ArtefactError(f"no model {name!r}{guess}; choose {_choices()}{reason}")
    return read_json(config_file)


def _kind_by_name(model: str, pooling: str | None = None) -> tuple[str, Kind | None]:
    """Return the canonical name of `model`, and its kind if its files alone determine how it is read."""
    if not isinstance(model, str | PathLike):
        raise ArtefactError(f"model is {model!r}, not a name; choose {_choices()}")
    if not str(model).strip():
        raise ArtefactError(f"no model given; choose {_choices()}")
    name = canonical_name(str(model))
    if Path(name).is_file():
        raise ArtefactError(f"{model} is a file; give a model's folder or hub id")
    if name in (*BUNDLED_NAMES, BACKBONE):
        return name, Kind.CHECKPOINT if name != BACKBONE else None
    if hub.cached_file(name, EXPORT_RECORD):
        return name, Kind.EXPORT
    if static_folder(name) is not None:
        return name, Kind.STATIC
    if pooling is None:
        check_vectors(name)
    config = read_config(location(name))
    if "method" in config or (hub.cached_file(name, RECORD) and SAVED_KEY not in config):
        return name, Kind.CHECKPOINT
    return name, Kind.EXPORT if pooling is None and is_pipeline(name, config) else None


def _plain(name: str, pooling: str | None) -> ModelReference:
    recorded = None if pooling else recorded_pooling(model_folder(name))
    if recorded:
        return ModelReference(name, Kind.SENTENCE_TRANSFORMERS, recorded=recorded)
    return ModelReference(name, Kind.BACKBONE, pooling or DEFAULT_POOLING)


def _choices() -> str:
    return f"{', '.join((*BUNDLED_NAMES, BACKBONE))}, a model folder or a hub id"
