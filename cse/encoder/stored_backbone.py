"""A backbone as arrays read from its files, and checks that its config.json fits its weights.

Modules are built before their weights are read, so a damaged or hostile configuration could allocate any memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.encoder.stored_tokenizer import NEEDED_ROLES, Additions, StoredTokenizer, read_tokenizer
from cse.errors import ArtefactError
from cse.files import hub
from cse.files.checksums import CHECKSUM_CURE, Version, backbone_digest, check_checksums, version
from cse.files.weights import find_weights, read_arrays
from cse.files.writing import read_json
from cse.methods.method import Head

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

SIZE_KEY = re.compile(r"(num|n)_\w+|\w+_(size|dim|positions|embeddings|labels)")  # names of sizes
LAYER_NUMBERS = re.compile(r"\.(\d+)(?=\.)")  # in a key; a block may be numbered within a group
# Sizes of every supported family.
POSITIVE = (
    "hidden_size", "intermediate_size", "max_position_embeddings", "num_attention_heads", "num_hidden_layers",
    "vocab_size",
)  # fmt: skip
MAX_PARAMETERS_PER_NUMBER = 2  # parameters of a model per stored number; a file may lack the head or tied embeddings
COPY_CURE = "copy the model again, with the files that belong together"
MAX_COMPUTED_POSITIONS = 1 << 20  # of a model that stores no row for each of them


def check_sizes(path: Path, weights: Mapping[str, np.ndarray]) -> None:
    """Raise ArtefactError if a size in a config.json is no number, or larger than any dimension of the weights.

    Call it before transformers reads the file and creates lists of these sizes.
    """
    largest = max((size for tensor in weights.values() for size in tensor.shape), default=0)
    for name, value in read_json(path).items():
        limit = max(largest, MAX_COMPUTED_POSITIONS if "position" in name else 0)
        if SIZE_KEY.fullmatch(name) and isinstance(value, int | float) and value > limit:
            raise ArtefactError(
                f"{path}: its {name} is {value:,}, and no weights are larger than {largest:,}; {COPY_CURE}"
            )
        if name in POSITIVE and (type(value) is not int or value < 1):
            raise ArtefactError(f"{path}: its {name} is {value!r:.40}, not a number of 1 or more; {COPY_CURE}")


def check_fit(
    source: str, config: PreTrainedConfig, model: Callable[[PreTrainedConfig], Any], weights: Mapping[str, np.ndarray]
) -> None:
    """Raise ArtefactError if a `model` of `config` has more layers or many more parameters than its weights.

    After the check of its layers, the model is built without memory (PyTorch's meta device).
    """
    import torch

    layers = len({numbers for key in weights if (numbers := tuple(LAYER_NUMBERS.findall(key)))})
    stated = int(getattr(config, "num_hidden_groups", config.num_hidden_layers))  # ALBERT's layers share weights
    if stated > layers:
        raise ArtefactError(
            f"{source}: its config.json asks for {stated:,} layers, its weights have {layers}; {COPY_CURE}"
        )
    with torch.device("meta"):
        numbers = sum(parameter.numel() for parameter in model(config).parameters())
    if numbers > MAX_PARAMETERS_PER_NUMBER * (stored := sum(tensor.size for tensor in weights.values())):
        raise ArtefactError(
            f"{source}: its config.json asks for {numbers:,} numbers, its weights have {stored:,}; {COPY_CURE}"
        )


STORED = {  # name in the released checkpoints -> name here
    Head.TANH: {"dense.weight": "0.weight", "dense.bias": "0.bias"},
    Head.TRANSFORM: {
        "dense.weight": "dense.weight", "dense.bias": "dense.bias",
        "LayerNorm.weight": "norm.weight", "LayerNorm.bias": "norm.bias",
    },
}  # fmt: skip


def head_width(arrays: Mapping[str, np.ndarray]) -> int:
    """Return the width of a head's output."""
    return len([array for name, array in arrays.items() if name.endswith(".bias")][-1])


def stored_head(
    name: str, kind: Head, width: int, weights: Mapping[str, np.ndarray], places: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the head in the `weights` of `name`, under the first of `places` (key prefixes) that they have.

    Its keys are those of the module. Raises ArtefactError for a head that is missing, of another kind or of another
    width than the backbone.
    """
    start = next((start for start in places if any(key.startswith(start) for key in weights)), places[0])
    arrays = {key.removeprefix(start): array for key, array in weights.items() if key.startswith(start)}
    if odd := sorted(arrays.keys() ^ STORED[kind].keys()):
        key = f"{start}{odd[0]}"
        raise ArtefactError(
            f"{name}: unknown weight {key} in its head" if odd[0] in arrays else f"{name}: its head lacks {key}"
        )
    for key, array in arrays.items():
        expected = (width, width) if key == "dense.weight" else (width,)
        if array.shape != expected:
            raise ArtefactError(f"{name}: {start}{key} is {array.shape}, not {expected}")
    return {STORED[kind][key]: np.ascontiguousarray(array, np.float32) for key, array in arrays.items()}


ROBERTA = ("roberta", "xlm-roberta", "camembert")  # model types whose modules have RoBERTa's names
FAMILIES = ("bert", *ROBERTA)  # whose blocks read positions, and a prefix
ACTIVATIONS = ("gelu", "relu")
# Keys that a file may hold besides the layers of a backbone: buffers of old versions of transformers, heads of
# pretraining, pretrained poolers and heads of contrastive training, heads of other tasks, ESimCSE's second model.
UNUSED_WEIGHT = re.compile(
    r"(\w+\.)*embeddings\.(position_ids|token_type_ids)|(cls|lm_head|classifier|qa_outputs|momentum_model)\..+"
    r"|((\w+\.)?pooler|mlp)\.((dense|LayerNorm)\.)?(weight|bias)|(\w+_)?predictions\..+"
)
EPS = 1e-12  # transformers' default
WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"
BERT_HEAD = {
    "cls.predictions.transform.dense": "dense", "cls.predictions.transform.LayerNorm": "norm",
    "cls.predictions": "words", "cls.predictions.decoder": "decoder",
}  # fmt: skip
ROBERTA_HEAD = {
    "lm_head.dense": "dense", "lm_head.layer_norm": "norm", "lm_head": "words", "lm_head.decoder": "decoder"
}  # fmt: skip
_fingerprints: dict[tuple[Version, ...], str] = {}  # of the backbones that this process has read, by their files


class UnsupportedError(ValueError):
    """A model that only PyTorch and transformers can read; the text says why."""


@dataclass(frozen=True)
class StoredBackbone:
    """A backbone as float32 arrays: `blocks` by their names in the bare model, `head` by those of the graph.

    The word embeddings, half of a small model, stay float16 if they are stored so. `head` is the masked-language-model
    head: dense, norm and words.bias; its decoder is the word embeddings. It is empty if the model has none.
    `fingerprint` is that of the same model in PyTorch.
    """

    config: Mapping[str, Any]
    tokenizer: StoredTokenizer
    blocks: dict[str, np.ndarray]
    head: dict[str, np.ndarray]
    fingerprint: str = ""
    roberta: bool = False

    @property
    def first_position(self) -> int:
        """The position id of a row's first token: 0 in BERT, one past the padding id in RoBERTa."""
        return int(self.config["pad_token_id"]) + 1 if self.roberta else 0

    @property
    def eps(self) -> float:
        """The number that layer normalisation adds to the variance."""
        return float(self.config.get("layer_norm_eps", EPS))

    @property
    def row_limit(self) -> int:
        """The maximum row length in tokens, by the model's positions."""
        return int(self.config["max_position_embeddings"]) - self.first_position


def read_backbone(
    name: str | Path, revision: str | None = None, weights: Mapping[str, np.ndarray] | None = None
) -> StoredBackbone:
    """Read the backbone of a folder or hub id, as `cse.encoder.backbone.load_backbone` does with PyTorch.

    Raises UnsupportedError for whatever this reader does not know: PyTorch then opens the model or says what is wrong
    with it. Raises ArtefactError for files that are no JSON, that do not match the folder's checksums, and for sizes
    beyond those of the weights.
    """
    check_checksums(Path(name), CHECKSUM_CURE)
    commit = hub.commit_of(str(name), revision)
    revision = commit or revision or hub.split_revision(str(name))[1] or "main"
    files = [hub.cached_file(str(name), file, revision) for file in ("config.json", "tokenizer.json")]
    config_file, tokenizer_file = files
    if config_file is None or tokenizer_file is None:
        raise UnsupportedError("it has no config.json and tokenizer.json")
    settings = hub.cached_file(str(name), "tokenizer_config.json", revision)
    stored, versions = weights, tuple[Version, ...]()
    if stored is None:
        weight_files = find_weights(str(name), revision=revision)
        versions = tuple(version(path) for path in (*files, settings, *weight_files) if path is not None)
        stored = read_arrays(weight_files)
    check_sizes(config_file, stored)
    try:
        config = read_json(config_file)
        added = Additions.of(config)
        tokenizer = read_tokenizer(tokenizer_file, settings, added)
        if tokenizer is None:
            raise UnsupportedError("its tokenizer needs transformers")
        if added:
            stored, config["vocab_size"] = added.without(stored), config["vocab_size"] - added.slots
        backbone = _backbone_of(config, tokenizer, stored, versions)
        if backbone.eps < 0 or backbone.row_limit < 1:  # or an error of a value that is no number
            raise UnsupportedError("its configuration is unusual")
        return backbone
    except (UnsupportedError, ArtefactError):
        raise
    except Exception as error:  # `tokenizers` raises nothing more special
        raise UnsupportedError(f"its files are unusual ({type(error).__name__}: {error})") from error


def _backbone_of(
    config: dict[str, Any], tokenizer: StoredTokenizer, stored: Mapping[str, np.ndarray], versions: tuple[Version, ...]
) -> StoredBackbone:
    kind = config.get("model_type")
    roberta = kind in ROBERTA
    if kind != "bert" and not roberta:
        raise UnsupportedError(f"a {kind} model")
    if config.get("hidden_act", "gelu") not in ACTIVATIONS:
        raise UnsupportedError(f"its activation is {config['hidden_act']}")
    if config.get("is_decoder") or config.get("position_embedding_type", "absolute") != "absolute":
        raise UnsupportedError("it is a decoder, or has relative positions")
    base = "roberta" if roberta else "bert"
    blocks, head_weights = {}, {}
    for key, array in stored.items():
        name = re.sub(r"\.(gamma|beta)$", lambda suffix: {"gamma": ".weight", "beta": ".bias"}[suffix[1]], key)
        if kind == "bert":  # PromCSE's BERT has RoBERTa's name for the head
            name = re.sub("^lm_head[.]", "cls.predictions.", name)
        if name.startswith(("cls.predictions.", "lm_head.")):
            head_weights[name] = array
        elif UNUSED_WEIGHT.fullmatch(name):
            continue
        elif (bare := name.removeprefix(f"{base}.")).startswith(("embeddings.", "encoder.")):
            blocks[bare] = array
        else:
            raise UnsupportedError(f"its weight {key} is unknown")
    _check_shapes(config, blocks)
    head, head_names = _head(config, head_weights, blocks[WORD_EMBEDDINGS], ROBERTA_HEAD if roberta else BERT_HEAD)
    words = blocks.pop(WORD_EMBEDDINGS)
    blocks, head_names, head = (
        {name: float32(array) for name, array in arrays.items()} for arrays in (blocks, head_names, head)
    )
    blocks[WORD_EMBEDDINGS] = words if words.dtype == np.float16 else float32(words)
    vocabulary = tokenizer.get_vocab()
    needed = [getattr(tokenizer, f"{role}_token_id") for role in NEEDED_ROLES]
    if max(vocabulary.values()) >= len(blocks[WORD_EMBEDDINGS]) or None in needed:
        raise UnsupportedError("its tokenizer and its embeddings do not fit")
    whole = {f"{base}.{name}": array for name, array in blocks.items()} | head_names if head else blocks
    known = _fingerprints if versions else {}
    fingerprint = known[versions] = known.get(versions) or backbone_digest(whole, vocabulary)
    return StoredBackbone(config, tokenizer, blocks, head, fingerprint, roberta)


def no_words(kind: str) -> ArtefactError:
    """Return the error of a model of a kind (`model_type`) that was saved without its head."""
    return ArtefactError(
        f"this {kind} model has no masked-language-model head, which words at [MASK] come from; give the model it was "
        "made from"
    )


def float32(array: np.ndarray) -> np.ndarray:
    """Return an array as contiguous float32, itself if it is that."""
    return np.ascontiguousarray(array, np.float32)


def _check_shapes(config: Mapping[str, Any], blocks: Mapping[str, np.ndarray]) -> None:
    """Raise UnsupportedError unless the weights are exactly those of the configured blocks."""
    d, inner = int(config["hidden_size"]), int(config["intermediate_size"])
    expected: dict[str, tuple[int, ...]] = {
        WORD_EMBEDDINGS: (int(config["vocab_size"]), d), "embeddings.position_embeddings.weight": (
            int(config["max_position_embeddings"]), d
        ), "embeddings.token_type_embeddings.weight": (int(config["type_vocab_size"]), d),
        "embeddings.LayerNorm.weight": (d,), "embeddings.LayerNorm.bias": (d,),
    }  # fmt: skip
    dense = {
        **{f"attention.self.{part}": (d, d) for part in ("query", "key", "value")}, "attention.output.dense": (d, d),
        "intermediate.dense": (inner, d), "output.dense": (d, inner),
        "attention.output.LayerNorm": (d,), "output.LayerNorm": (d,),
    }  # fmt: skip
    if int(config["num_hidden_layers"]) > len(blocks):  # before a list of that size is made
        raise UnsupportedError("its configuration has more layers than its weights")
    for layer in range(int(config["num_hidden_layers"])):
        for name, shape in dense.items():
            expected[f"encoder.layer.{layer}.{name}.weight"] = shape
            expected[f"encoder.layer.{layer}.{name}.bias"] = shape[:1]
    if {name: array.shape for name, array in blocks.items()} != expected or d % int(config["num_attention_heads"]):
        raise UnsupportedError("its weights are not those of its configuration")


def _head(
    config: Mapping[str, Any], head_weights: Mapping[str, np.ndarray], words: np.ndarray, names: Mapping[str, str]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the head by the graph's names and by those of PyTorch's parameters; both empty if it is not complete.

    The decoder is tied to the word embeddings, so transformers has no parameter for it.
    """
    head: dict[str, np.ndarray] = {}
    own: dict[str, np.ndarray] = {}
    for name, array in head_weights.items():
        module, _, kind = name.rpartition(".")
        if module not in names:
            raise UnsupportedError(f"its weight {name} is unknown")
        if names[module] == "decoder":
            bias = head_weights.get(f"{module.rpartition('.')[0]}.bias", np.empty(0))
            if not np.array_equal(array, words if kind == "weight" else bias):
                raise UnsupportedError("its decoder is not tied to its word embeddings")
        else:
            head[f"{names[module]}.{kind}"], own[name] = array, array
    if not {"dense.weight", "dense.bias", "norm.weight", "norm.bias", "words.bias"} <= head.keys():
        return {}, {}
    if not config.get("tie_word_embeddings", True):
        raise UnsupportedError("its decoder is not tied to its word embeddings")
    v, d = words.shape
    shapes = {"dense.weight": (d, d), "words.bias": (v,)}
    if odd := [name for name, array in head.items() if array.shape != shapes.get(name, (d,))]:
        raise UnsupportedError(f"the {odd[0]} of its head has an unexpected shape")
    return head, own
