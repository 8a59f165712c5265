"""Backbones of the BERT and RoBERTa families read from their files as numpy arrays, without PyTorch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cse.backbones.additions import Additions
from cse.backbones.sizes import check_sizes
from cse.backbones.stored_tokenizer import NEEDED, StoredTokenizer, read_tokenizer
from cse.errors import ArtefactError
from cse.storage import hub
from cse.storage.checksums import Version, backbone_digest, check_checksums, version
from cse.storage.weights import find_weights, read_arrays
from cse.storage.writing import read_json

ROBERTA = ("roberta", "xlm-roberta", "camembert")  # model types whose modules have RoBERTa's names
ACTIVATIONS = ("gelu", "relu")
# Keys that a file may hold besides the layers of a backbone: buffers of old versions of transformers, heads of
# pretraining, pretrained poolers and heads of contrastive training, heads of other tasks, ESimCSE's second model.
UNUSED = re.compile(
    r"(\w+\.)*embeddings\.(position_ids|token_type_ids)|(cls|lm_head|classifier|qa_outputs|momentum_model)\..+"
    r"|((\w+\.)?pooler|mlp)\.(dense|LayerNorm)\.(weight|bias)"
)
EPS = 1e-12  # transformers' default
WORDS = "embeddings.word_embeddings.weight"
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
    roberta: bool = field(default=False)

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
    """Read the backbone of a folder or hub id, as `cse.backbones.backbone.load_backbone` does with PyTorch.

    Raises UnsupportedError for whatever this reader does not know: PyTorch then opens the model or says what is wrong
    with it. Raises ArtefactError for files that are no JSON, that do not match the folder's checksums, and for sizes
    beyond those of the weights.
    """
    check_checksums(Path(name), "copy it again")
    commit = hub.commit_of(str(name), revision)
    revision = commit or revision or hub.split_revision(str(name))[1] or "main"
    files = [hub.cached_file(str(name), file, revision) for file in ("config.json", "tokenizer.json")]
    config_file, tokenizer_file = files
    if config_file is None or tokenizer_file is None:
        raise UnsupportedError("it has no config.json and tokenizer.json")
    settings = hub.cached_file(str(name), "tokenizer_config.json", revision)
    stored, versions = weights, tuple[Version, ...]()
    if stored is None:
        found = find_weights(str(name), revision=revision)
        versions = tuple(version(path) for path in (*files, settings, *found) if path is not None)
        stored = read_arrays(found)
    check_sizes(config_file, stored)
    try:
        config = read_json(config_file)
        added = Additions.of(config)
        tokenizer = read_tokenizer(tokenizer_file, settings, added)
        if tokenizer is None:
            raise UnsupportedError("its tokenizer needs transformers")
        if added:
            stored, config["vocab_size"] = added.without(stored), config["vocab_size"] - added.slots
        backbone = _sorted_out(config, tokenizer, stored, versions)
        if backbone.eps < 0 or backbone.row_limit < 1:  # or an error of a value that is no number
            raise UnsupportedError("its configuration is unusual")
        return backbone
    except (UnsupportedError, ArtefactError):
        raise
    except Exception as error:  # `tokenizers` raises nothing more special
        raise UnsupportedError(f"its files are unusual ({type(error).__name__}: {error})") from error


def _sorted_out(
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
    blocks, named = {}, {}
    for key, array in stored.items():
        name = re.sub(r"\.(gamma|beta)$", lambda found: {"gamma": ".weight", "beta": ".bias"}[found[1]], key)
        if kind == "bert":  # PromCSE's BERT has RoBERTa's name for the head
            name = re.sub("^lm_head[.]", "cls.predictions.", name)
        if name.startswith(("cls.predictions.", "lm_head.")):
            named[name] = array
        elif UNUSED.fullmatch(name):
            continue
        elif (bare := name.removeprefix(f"{base}.")).startswith(("embeddings.", "encoder.")):
            blocks[bare] = array
        else:
            raise UnsupportedError(f"its weight {key} is unknown")
    _check_shapes(config, blocks)
    head, head_names = _head(config, named, blocks[WORDS], ROBERTA_HEAD if roberta else BERT_HEAD)
    words = blocks.pop(WORDS)
    blocks, head_names, head = (
        {name: float32(array) for name, array in each.items()} for each in (blocks, head_names, head)
    )
    blocks[WORDS] = words if words.dtype == np.float16 else float32(words)
    vocabulary = tokenizer.get_vocab()
    needed = [getattr(tokenizer, f"{role}_token_id") for role in NEEDED]
    if max(vocabulary.values()) >= len(blocks[WORDS]) or None in needed:
        raise UnsupportedError("its tokenizer and its embeddings do not fit")
    whole = {f"{base}.{name}": array for name, array in blocks.items()} | head_names if head else blocks
    return StoredBackbone(config, tokenizer, blocks, head, _fingerprint(versions, whole, vocabulary), roberta=roberta)


def _fingerprint(
    versions: tuple[Version, ...], parameters: Mapping[str, np.ndarray], vocabulary: Mapping[str, int]
) -> str:
    """Return the fingerprint of a backbone, computed once in a process for the same versions of its files."""
    found = _fingerprints.get(versions)
    if found is None:
        found = backbone_digest(parameters, vocabulary)
        if versions:
            _fingerprints[versions] = found
    return found


def float32(array: np.ndarray) -> np.ndarray:
    """Return an array as contiguous float32, itself if it is that."""
    return np.ascontiguousarray(array, np.float32)


def _check_shapes(config: Mapping[str, Any], blocks: Mapping[str, np.ndarray]) -> None:
    """Raise UnsupportedError unless the weights are exactly those of the configured blocks."""
    d, inner = int(config["hidden_size"]), int(config["intermediate_size"])
    wanted: dict[str, tuple[int, ...]] = {
        WORDS: (int(config["vocab_size"]), d), "embeddings.position_embeddings.weight": (
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
            wanted[f"encoder.layer.{layer}.{name}.weight"] = shape
            wanted[f"encoder.layer.{layer}.{name}.bias"] = shape[:1]
    if {name: array.shape for name, array in blocks.items()} != wanted or d % int(config["num_attention_heads"]):
        raise UnsupportedError("its weights are not those of its configuration")


def _head(
    config: Mapping[str, Any], named: Mapping[str, np.ndarray], words: np.ndarray, names: Mapping[str, str]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the head by the graph's names and by those of PyTorch's parameters; both empty if it is not complete.

    The decoder is tied to the word embeddings, so transformers has no parameter for it.
    """
    head: dict[str, np.ndarray] = {}
    own: dict[str, np.ndarray] = {}
    for name, array in named.items():
        module, _, kind = name.rpartition(".")
        if module not in names:
            raise UnsupportedError(f"its weight {name} is unknown")
        if names[module] == "decoder":
            bias = named.get(f"{module.rpartition('.')[0]}.bias", np.empty(0))
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
