"""The record of a checkpoint, stored as JSON (`cse.models.names.record_file`), and the cards of uploads."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from cse.errors import ArtefactError
from cse.files.checksums import DIGEST, content_digest
from cse.files.hub import split_revision
from cse.methods.method import Method
from cse.methods.settings import from_json, to_json
from cse.models.names import BACKBONE, START

DIFFERENCE, SCALE = ".difference", ".scale"  # suffixes of a tensor's name
LEVELS = 127  # of an int8, on each side of zero


class Storage(str, Enum):
    """The number format in a checkpoint's file; computation is in float32."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    DELTA = "delta"  # float16 differences from the backbone; the rest as float32
    INT8 = "int8"  # matrices as differences from the backbone, with a scale per row; the rest as float16

    @property
    def differs(self) -> bool:
        """True if differences from the backbone are stored."""
        return self in (Storage.DELTA, Storage.INT8)


def pack(learned: Mapping[str, np.ndarray], start: Mapping[str, np.ndarray], storage: Storage) -> dict[str, np.ndarray]:
    """Return the arrays to store for `learned`; `start` holds the backbone's by the same names, for differences.

    With `DELTA` an array of the backbone becomes its difference in float16. With `INT8` a matrix (n, m) of the backbone
    becomes its difference (n, m) int8 and scales (n, 1) float32, the largest difference of each row over 127. Arrays
    that the backbone lacks, such as a prefix or a head, are stored directly.
    """
    stored: dict[str, np.ndarray] = {}
    for name, array in learned.items():
        # Training changes weights little, so a rounded difference is closer than float16, in half the space.
        if storage is Storage.INT8 and name in start and array.ndim == 2:
            difference = array - start[name]
            scale = np.abs(difference).max(1, keepdims=True) / np.float32(LEVELS)
            levels = np.rint(np.divide(difference, scale, out=np.zeros_like(difference), where=scale > 0))
            stored |= {name + DIFFERENCE: levels.astype(np.int8), name + SCALE: scale}
        elif storage is Storage.DELTA and name in start:
            stored[name + DIFFERENCE] = (array - start[name]).astype(np.float16)
        else:
            stored[name] = array.astype(np.float32 if storage in (Storage.FLOAT32, Storage.DELTA) else np.float16)
    return stored


def unpack(
    stored: Mapping[str, np.ndarray], start: Mapping[str, np.ndarray], source: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the learned array of each of `pack`'s, in any storage; `start` holds the backbone's by name.

    Raises ArtefactError, beginning with `source`, for a difference that lacks its scale or fits no array of `start`.
    """
    for key, array in stored.items():
        name = key.removesuffix(DIFFERENCE)
        if name != key:
            origin, scale = start.get(name), stored.get(name + SCALE)
            rounded = array.dtype == np.int8
            fits = scale is not None and scale.shape == (len(array), 1) if rounded else scale is None
            if origin is None or origin.shape != array.shape or not fits:
                raise ArtefactError(f"{source}: {key} does not fit its backbone or its scale; train it again")
            yield name, origin + array.astype(np.float32) * (1 if scale is None else scale)
        elif key.removesuffix(SCALE) + DIFFERENCE not in stored:
            yield key, array


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
            origin = value["backbone"]
            return cls(
                from_json(value["method"]),
                BackboneRecord(origin["name"], origin.get("revision"), origin["fingerprint"], origin.get("relative")),
                bool(value.get("frozen_embeddings")),
                int(value.get("learned_numbers", 0)),
                Storage(value.get("storage", Storage.FLOAT32)),  # not recorded by the first versions
                {
                    "settings": dict(value.get("settings", {})), "selection": value.get("selection", ""),
                    "dev": DevScores(**(value.get("dev") or {})),
                },
                dict(value.get("sha256", {})), value["format"] == WHOLE, value.get("reason", ""),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"not a checkpoint of this project ({error})") from error


def _own_digest(value: dict[str, Any]) -> str:
    """Return the digest of a record without the digest itself and the backbone's paths, which may change."""
    backbone = value.get("backbone")
    if isinstance(backbone, dict):
        backbone = {key: item for key, item in backbone.items() if key not in ("name", "relative")}
    return content_digest({**value, "backbone": backbone})


LIBRARY, TASK = "cse", "sentence-similarity"
ELSEWHERE = "sentence-transformers"
MASK_WARNING = (
    "The vector is read at the template's mask: `1_WordWeights` gives every other token the weight 0. Servers and "
    "converters that read only `1_Pooling/config.json` or a pooling's name average all tokens instead, which gives "
    "different, worse vectors."
)
HALF_NOTE = (
    "Use float32 or bfloat16: float16 cannot hold that weight of the mask. A folder of `cse export` can use float16."
)
BUNDLED_FROM, BUNDLED_LICENCE = "sentence-transformers/all-MiniLM-L6-v2", "apache-2.0"


@dataclass(frozen=True)
class CardFacts:
    """Facts that the files do not hold: the name to open them by, their licence, hub ids of their training data.

    Without `licence`, checkpoints on the bundled backbone get its licence, and others none.
    """

    name: str = "THIS_FOLDER"
    licence: str | None = None
    datasets: Sequence[str] = ()


def model_card(config: CheckpointConfig, facts: CardFacts | None = None) -> str:
    """Return a checkpoint's card in the hub's format.

    Its `model-index` has the dev score by which the state was selected, with its protocol. A run without dev pairs has
    none: the score of held-out texts is no correlation.
    """
    from huggingface_hub import EvalResult, ModelCardData

    facts = facts or CardFacts()
    method, backbone, elsewhere = config.method, config.backbone, opens_elsewhere(config)
    settings, dev = config.training.get("settings", {}), config.training.get("dev", {})
    selection = config.training.get("selection")
    title = f"{method.name}{' (supervised)' if method.supervised else ''}"
    bundled, scored = backbone.name == BACKBONE, "best" in dev and "held_out" not in settings
    results = []
    if scored:
        protocol = {
            "seed": settings.get("seed"), "step": dev.get("best_step"), "selection": selection,
            "note": "the state was selected on these pairs",
        }  # fmt: skip
        results.append(EvalResult(
            task_type=TASK, dataset_type="scored-pairs", dataset_split="dev",
            dataset_name=f"{settings.get('dev_pairs', 'all')} scored dev pairs of the run",
            metric_type="spearman_cosine", metric_name="Spearman x 100 of cosines", metric_value=dev["best"],
            metric_args={key: value for key, value in protocol.items() if value is not None},
        ))  # fmt: skip
    data = ModelCardData(
        base_model=base_model(backbone.name), license=facts.licence or (BUNDLED_LICENCE if bundled else None),
        datasets=list(facts.datasets) or None, pipeline_tag=TASK, library_name=ELSEWHERE if elsewhere else LIBRARY,
        model_name=title if scored else None, eval_results=results or None,
    )  # fmt: skip
    location = f"in the folder `{EMBEDDED}`" if backbone.name == f"./{EMBEDDED}" else backbone.name
    lines = [
        "---", data.to_yaml(), "---", f"# {title}", "", f"{method.summary} ({method.citation}).", "",
        f"Backbone: {location} ({backbone.fingerprint}). Learned numbers: {config.learned_numbers:,}.",
        "", f"This folder {openers(config)}.", "", *([START, ""] if bundled else []),
        "```python", "import cse", "", f'encoder = cse.load("{facts.name}")  # of a hub id, @COMMIT pins a version',
        'sentences = ["A man is playing a guitar.", "Someone plays an instrument."]',
        "vectors = encoder.encode(sentences, normalize_embeddings=True)", "print(float(vectors[0] @ vectors[1]))",
        "```", "",
    ]  # fmt: skip
    if elsewhere:
        lines += [
            "The same vectors without cse (the tokenizer adds the template):", "", "```python",
            "from sentence_transformers import SentenceTransformer", "",
            f'model = SentenceTransformer("{facts.name}")',
            "vectors = model.encode(sentences, normalize_embeddings=True)", "```", "",
            *([MASK_WARNING, HALF_NOTE, ""] if method.reading.at_mask else []),
        ]  # fmt: skip
    measure = f"percent; {selection}" if "held_out" in settings else "Spearman x 100"
    recorded = {**settings, **dev}
    lines += [f"Settings and dev scores ({measure}):", "", *(f"- {key}: {value}" for key, value in recorded.items())]
    return "\n".join([*lines, ""])


def opens_elsewhere(config: CheckpointConfig) -> bool:
    """True if sentence-transformers opens a checkpoint's folder with the same vectors."""
    return config.whole and not config.reason


def openers(config: CheckpointConfig) -> str:
    """Return which tools open a checkpoint's folder, and why others cannot, as a phrase after its name."""
    if opens_elsewhere(config):
        return "opens in cse, sentence-transformers and transformers"
    if config.whole:
        return (
            f"opens in cse and, as a masked language model, in transformers, but not in sentence-transformers: "
            f"{config.method.name} {config.reason}"
        )
    return (
        "holds only what was learned and needs its backbone; opens in cse, and `export` writes a folder for other tools"
    )


def base_model(backbone: str) -> str | None:
    """Return the hub id of a backbone or of the model it was trained from; None for a folder and if unknown."""
    if backbone == BACKBONE:
        return BUNDLED_FROM
    repository, _ = split_revision(backbone)
    return (repository or None) if not repository.startswith((".", "/")) and repository.count("/") <= 1 else None


def index_card(facts: CardFacts, model: str, rows: int, factory: str) -> str:
    """Return the card of an index: `rows` sentences as vectors of `model` in a FAISS index of type `factory`."""
    from huggingface_hub import DatasetCardData

    data = DatasetCardData(
        license=facts.licence, tags=["cse-index", TASK], source_datasets=list(facts.datasets) or None
    )
    return "\n".join(
        [
            "---", data.to_yaml(), "---", "# A search index", "",
            f"{rows:,} sentences with the columns of their table, and vectors by {model} in a FAISS index ({factory}).",
            "", "```bash", f'cse search {facts.name} "A man is playing a guitar." -k 3', "```", "",
        ]
    )  # fmt: skip
