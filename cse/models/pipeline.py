"""Reading of folders that `cse.models.pipeline_writer` wrote, also after another tool has saved them again.

The folder's `config.json`, which transformers keeps, holds what is needed under the key of
`cse.encoder.stored_tokenizer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cse.encoder.stored_tokenizer import OWN_KEY, WORD_TABLE, Additions
from cse.errors import ArtefactError
from cse.files.weights import ANY, INDEX, SAFE, SHARD, SINGLE, check_finite, find_weights, read_arrays
from cse.files.writing import read_json
from cse.methods.method import LAYERS, Head, Method, When
from cse.methods.settings import from_json
from cse.models.sentence_transformers import (
    IDLE,
    LAYER_MEAN,
    LAYER_MODULES,
    RecordedLayers,
    call_as,
    modules_of,
    pooling_name,
    recorded_settings,
)

if TYPE_CHECKING:
    import numpy as np

    from cse.encoder.encoder import Encoder

    Engine = TypeVar("Engine", bound=Encoder)

SENTENCE_TRANSFORMERS = "sentence-transformers"
CONFIG = "config.json"
HEAD = "head"  # a subfolder with a head that is no module of sentence-transformers
SPACE_PROMPT = "sentence"  # name of the prompt that is only a space
MAX_STRAY_WEIGHT = 1e-6  # largest word weight of another token, relative to that of the mask
SAVED_KEY = "transformers_version"  # key that transformers writes into a config.json, and this project does not
PIPELINE_FILES = (
    CONFIG, SINGLE, SHARD, INDEX, "tokenizer.json", "tokenizer_config.json",
    "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json",
    *(f"[1-9]_{name}{end}" for name in ("WordWeights", LAYER_MEAN, "Pooling", "Dense", "LayerNorm", "Normalize")
      for end in ("", "/config.json", "/wordweights_config.json", "/model.safetensors")),
)  # fmt: skip


class OnlyHere:
    """A module that sentence-transformers cannot open, in folders whose vectors it cannot compute."""

    @classmethod
    def load(cls, *_: object, **__: object) -> OnlyHere:
        """Raise ValueError."""
        raise ValueError("sentence-transformers cannot compute this model's vectors; its README.md says why")


def written_record(config: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a `config.json` says of the reading of its folder; None for a folder of another kind."""
    value = config.get(OWN_KEY)
    return value if Additions.of(config) and isinstance(value, dict) and "method" in value else None


def is_pipeline(name: str, config: dict[str, Any]) -> bool:
    """True if a folder or hub id has the modules of sentence-transformers that its `config.json` was written with.

    Raises ArtefactError if it has others, whose vectors are not those of its method.
    """
    record = written_record(config)
    modules = None if record is None else modules_of(name)
    if record is None or modules is None:
        return False
    method = _method(record, name)
    layers = layer_modules(method.reading.head_layers)
    reading = method.reading
    before = ["WordWeights"] if reading.at_mask else [LAYER_MEAN] if reading.pooling in LAYERS else []
    expected = ["Transformer", *before, "Pooling", *layers]
    kinds = [kind for kind, _ in modules if kind != IDLE]
    if kinds not in (expected, [*expected, "Normalize"]):
        raise ArtefactError(
            f"{name}: its modules ({', '.join(kinds)}) are not those of its method, {method.name} "
            f"({', '.join(expected)}); give `pooling` to read the backbone alone"
        )
    return True


def layer_modules(layers: Sequence[str]) -> list[str]:
    """Return the modules of sentence-transformers that hold the layers of a head; tanh belongs to the linear one."""
    kinds = {layer: kind for kind, layer in LAYER_MODULES.items()} | {"unit": "Normalize"}
    return [kinds[layer] for layer in layers if layer in kinds]


def hidden_size(config: dict[str, Any]) -> int:
    """Return the width of a backbone's states by its `config.json`; 0 if that does not say."""
    return config_number(config, "hidden_size", "d_model", "dim", "n_embd")


def config_number(config: dict[str, Any], *names: str) -> int:
    """Return the number that a `config.json` has under one of these names; 0 if under none."""
    return next((int(config[name]) for name in names if config.get(name)), 0)


def open_pipeline(
    folder: Path, method: Method, engine: type[Engine], *, name: str, backbone: str = "", head: str | None = None,
    slots: Sequence[int] = (), layouts: Sequence[str] = ANY, cure: str = "",
) -> Engine:  # fmt: skip
    """Open the encoder of a folder: its weights, the head in the subfolder `head`, and learned slots.

    `slots` are the words that hold these, by default those of the folder's additions. Raises ArtefactError, ending with
    `cure`, for tensors that do not fit the method.
    """
    weights = read_arrays(find_weights(str(folder), layouts))
    check_finite(weights, str(folder), cure)
    added = Additions.of(read_json(folder / CONFIG))
    rows = added.rows(weights) if added else None
    if slots and rows is None:  # an export of the first versions
        words = next(array for key, array in weights.items() if key.endswith(WORD_TABLE))
        rows = words[list(slots)]
    stored = {"prefix": weights.pop("prefix", None), "slots": rows}
    layer = _head(folder, Path(head).name, method, cure) if head and method.reading.head_when is When.ALWAYS else {}
    stored |= {f"head.{key}": array for key, array in layer.items()}
    wide = layer if layer and method.reading.head is not Head.TRANSFORM else None  # it may have a width of its own
    encoder = engine.open(folder, method, name=name, backbone=backbone or str(folder), weights=weights, head=wide)
    copy_learned({key: array for key, array in stored.items() if array is not None}, encoder, str(folder), cure)
    return encoder


def copy_learned(
    stored: dict[str, np.ndarray], encoder: Encoder, source: str, cure: str, *, backbone: bool = False
) -> None:
    """Copy the arrays that a method learned, its backbone's only with `backbone`.

    Raises ArtefactError, ending with `cure`, for one that is missing or unexpected.
    """
    learned = encoder.learned_arrays()
    own = {name for name in learned if backbone or not name.startswith("backbone.")}
    if odd := sorted(own ^ stored.keys()):
        what = "lack" if odd[0] in own else "hold an unexpected"
        raise ArtefactError(f"{source}: its files {what} {odd[0]} of {encoder.method.name}; {cure}")
    for name, array in stored.items():
        copy_array(array, learned[name], f"{source}: {name}")


def copy_array(array: np.ndarray, target: np.ndarray, what: str) -> None:
    """Copy a stored array into one of `learned_arrays`.

    Raises ArtefactError, beginning with `what`, for another shape.
    """
    if array.shape != target.shape:
        raise ArtefactError(f"{what} is {array.shape}, not {target.shape}")
    target[...] = array


def saved_again(folder: Path, name: str, engine: type[Engine]) -> Engine:
    """Open a folder that sentence-transformers has saved, trained further or not, as it opens it there.

    Typed special tokens stay text where a mask is read, of which there is one. Raises ArtefactError for another
    pooling, and if its further training has made a vector of more than the mask's state.
    """
    cure = "train the run again, or save it with its own modules"
    record = written_record(read_json(folder / CONFIG)) or {}
    method = _method(record, str(folder))
    modules = modules_of(str(folder)) or []
    paths, recorded, masked = dict(modules), recorded_settings(str(folder), modules), method.reading.at_mask
    pooling = "mean" if masked else pooling_name(method.reading.pooling)
    if recorded.pooling != pooling or (masked and not recorded.prompt_pooled):
        without = "" if recorded.prompt_pooled else " without the prompt"
        raise ArtefactError(
            f"{folder}: its pooling is {recorded.pooling}{without}, not the {pooling} of {method.name}; {cure}"
        )
    if masked:
        weighting = folder / paths["WordWeights"]
        (weights,) = read_arrays(find_weights(str(weighting), SAFE)).values()
        *others, mask = sorted(abs(weights).ravel().tolist())
        if others and others[-1] > MAX_STRAY_WEIGHT * mask:
            raise ArtefactError(f"{weighting}: its weights are not of the mask alone, as its method reads; {cure}")
        recorded = replace(recorded, typed_specials=False)
    method = recorded.applied_to(method)
    head = next((paths[kind] for kind in LAYER_MODULES if kind in paths), None)
    encoder = open_pipeline(folder, method, engine, name=name, head=head, cure=cure)
    if record.get("spaced"):  # a template that brings its own space
        prompts = tuple((key, text.removeprefix(" ")) for key, text in recorded.prompts if key != SPACE_PROMPT)
        default = None if recorded.default_prompt_name == SPACE_PROMPT else recorded.default_prompt_name
        recorded = replace(recorded, prompts=prompts, default_prompt_name=default)
    call_as(recorded, encoder, str(folder))
    return encoder


def _method(record: dict[str, Any], source: str) -> Method:
    try:
        return from_json(record["method"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtefactError(f"{source}: the {OWN_KEY} in its {CONFIG} is damaged ({error}); copy it again") from error


def _head(folder: Path, path: str, method: Method, cure: str) -> dict[str, np.ndarray]:
    """Return the head in a subfolder by the names of its module: sentence-transformers' modules, or one of its own."""
    if method.reading.head is not Head.TRANSFORM and (folder / path / CONFIG).is_file():
        recorded = RecordedLayers.of(str(folder), modules_of(str(folder)) or [])
        if recorded is None or recorded.layers != method.reading.head_layers:
            raise ArtefactError(f"{folder / path}: its layers or activation are not those of {method.name}; {cure}")
        return recorded.arrays(str(folder), method.reading.width(hidden_size(read_json(folder / CONFIG))))
    stored = read_arrays(find_weights(str(folder / path), SAFE))
    check_finite(stored, str(folder / path), cure)
    return stored
