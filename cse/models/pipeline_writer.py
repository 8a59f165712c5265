"""Folders that transformers and sentence-transformers open with an encoder's vectors, without code of this project."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub import save_torch_state_dict
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer

from cse.encoder.backbone import as_arrays
from cse.encoder.rows import HARD, TokenTemplate, render
from cse.encoder.stored_tokenizer import BY_WORD, NUL, OWN_KEY, ROLES
from cse.encoder.torch_encoder import TorchEncoder
from cse.files.weights import SINGLE
from cse.methods.method import LAYERS, Head, Reading, When
from cse.methods.settings import to_json
from cse.methods.templates import PLAIN
from cse.models.pipeline import HEAD, SAVED_KEY, SPACE_PROMPT, config_number, hidden_size, layer_modules
from cse.models.sentence_transformers import LAYER_MEAN, LAYER_MODULES, POOLINGS, READ_POOLINGS, pooling_name

SLOT_BIAS = -1e4  # output bias of a slot, so that no tool predicts one as a word
NEWER_POOLINGS = ("weightedmean", "lasttoken")  # that the first versions of the package do not know
BEFORE, AFTER = "template before", "template after"  # names of special tokens in the tokenizer's post-processor


@dataclass(frozen=True)
class PlainModel:
    """The parts of an encoder: `tensors` of the bare backbone, among them `words` (V, d) with a last row per slot.

    `tokenizer` is the content of a `tokenizer.json`, `vocabulary` its tokens by id, `tokens` how many there were before
    `slots`, the ids of the learned slots. If `spaced`, a space must be put before each sentence, as it changes the
    tokens.
    """

    encoder: TorchEncoder
    tensors: dict[str, torch.Tensor]
    words: str
    tokenizer: dict[str, Any]
    vocabulary: list[str]
    tokens: int
    slots: list[int]
    spaced: bool

    @property
    def head(self) -> torch.nn.Module | None:
        """The head applied to the pooled vector in encoding, or None."""
        return self.encoder.head if self.encoder.reading.head_when is When.ALWAYS else None

    def whole(self) -> dict[str, torch.Tensor]:
        """Return the tensors of the masked language model by transformers' names, with a row or a bias per slot.

        They are those of the bare backbone if it has no masked-language-model head.
        """
        model: Any = self.encoder.model
        bare = {id(tensor) for tensor in model.base_model.parameters()}
        start = "" if model.base_model is model else f"{model.base_model_prefix}."
        tensors = {f"{start}{name}": tensor for name, tensor in self.tensors.items()}
        for name, tensor in model.named_parameters():
            if id(tensor) not in bare:
                value = tensor.detach().float().cpu().clone()
                if self.slots and BY_WORD.fullmatch(name):
                    fill = SLOT_BIAS if name.endswith("bias") else 0.0
                    value = torch.cat([value, value.new_full((len(self.slots), *value.shape[1:]), fill)])
                tensors[name] = value.contiguous()
        return tensors


def reason_against(encoder: TorchEncoder) -> str:
    """Return why other tools cannot compute an encoder's vectors, as a phrase after its name; "" if they can."""
    reading = encoder.reading
    if reading.denoise is When.ALWAYS:
        return "subtracts its template's bias, which depends on the length of the sentence"
    if pooling_name(reading.pooling) not in READ_POOLINGS:
        return f"pools by {reading.pooling.value}"
    if reading.head_when is When.ALWAYS and reading.head is Head.TRANSFORM:
        return "has a head of several layers"
    if not getattr(encoder.tokenizer, "is_fast", False):
        return "has a tokenizer without a tokenizer.json"
    return ""


def plain_model(encoder: TorchEncoder) -> PlainModel:
    """Return the parts of an encoder. Raises ValueError for one that other tools cannot compute."""
    if reason := reason_against(encoder):
        raise ValueError(f"{encoder.name} {reason}, which no export supports; use it with cse")
    return _parts(encoder, encoder.views[0][0])


def _parts(encoder: TorchEncoder, template: TokenTemplate) -> PlainModel:
    backend = Tokenizer.from_str(encoder.tokenizer.backend_tokenizer.to_str())
    count = 0 if encoder.slots is None else len(encoder.slots)
    tokens = backend.get_vocab_size(with_added_tokens=True)
    slots = _add_slots(backend, encoder, count)
    base: Any = encoder.model.base_model
    table = base.get_input_embeddings().weight
    words = next(name for name, tensor in base.named_parameters() if tensor is table)
    unread = () if base is not encoder.model else ("pooler.",)  # masked language models that have a pooler need it
    parameters = {name: tensor for name, tensor in base.named_parameters() if not name.startswith(unread)}
    tensors = {name: tensor.detach().float().cpu() for name, tensor in parameters.items()}
    if encoder.slots is not None:
        tensors[words] = torch.cat([tensors[words], encoder.slots.detach().float().cpu()])
    tensors = {name: tensor.clone().contiguous() for name, tensor in tensors.items()}
    known = {number: token for token, number in backend.get_vocab(with_added_tokens=True).items()}
    vocabulary = [known.get(number, _unused(number)) for number in range(len(tensors[words]))]
    bare, spaced = (encoder.tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("a", " a"))
    return PlainModel(
        encoder, tensors, words, _tokenizer_json(backend, template, slots), vocabulary, tokens, slots,
        template.spaced and bare != spaced,
    )  # fmt: skip


def _add_slots(backend: Tokenizer, encoder: TorchEncoder, count: int) -> list[int]:
    """Add a token per slot, after all rows of the table of words, and return their ids."""
    rows, vocabulary = encoder.model.get_input_embeddings().num_embeddings, backend.get_vocab(with_added_tokens=True)
    names = [f"[P{number}]" for number in range(count)]
    if clash := next((name for name in names if name in vocabulary), None):
        raise ValueError(f"{encoder.name}: its vocabulary already has {clash}, the name of a learned slot")
    unused = [_unused(row) for row in range(len(vocabulary), rows)] if names else []
    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in (*unused, *names)])
    slots = [number for name in names if (number := backend.token_to_id(name)) is not None]
    if slots != list(range(rows, rows + count)):
        raise ValueError(f"{encoder.name}: its vocabulary has gaps, so that its learned slots cannot become words")
    return slots


def _unused(row: int) -> str:
    return f"[unused row {row}]"


def _tokenizer_json(backend: Tokenizer, template: TokenTemplate, slots: list[int]) -> dict[str, Any]:
    """The tokenizer with the template as its special tokens; NUL is read as a space, as in `TorchEncoder.tokenise`."""
    value = json.loads(backend.to_str())
    pieces: dict[str, Any] = {}
    ids = [token if slot == HARD else slots[slot] for token, slot in zip(template.ids, template.slots, strict=True)]
    for name, real in {BEFORE: ids[: template.start], AFTER: ids[template.start :]}.items():
        pieces[name] = {"id": name, "ids": real, "tokens": [backend.id_to_token(token) for token in real]}
    before, after = ({"SpecialToken": {"id": name, "type_id": 0}} for name in (BEFORE, AFTER))
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    value["post_processor"] = {
        "type": "TemplateProcessing", "single": [before, first, after], "pair": [before, first, second, after],
        "special_tokens": pieces,
    }  # fmt: skip
    normalizers = [NUL, *([value["normalizer"]] if value.get("normalizer") else [])]
    return {
        **value, "truncation": None, "padding": None, "normalizer": {"type": "Sequence", "normalizers": normalizers}
    }  # fmt: skip


MODULES = "sentence_transformers.models."  # valid in every version of the package
# Word weight of the mask in a run's folder. Further training cannot give other tokens a share too: their
# gradients are below the epsilon of Adam. In float16, which has no such number, vectors are NaN; an export has 1.
MASK_WEIGHT = 2.0**40
ACTIVATIONS = {
    Head.TANH: "torch.nn.modules.activation.Tanh", Head.LINEAR: "torch.nn.modules.linear.Identity"
}  # fmt: skip
TYPED_AS_TEXT = {"split_special_tokens": True}  # in a tokenizer_config.json: a typed "[MASK]" is text, as here
REFUSED_MODULE = "cse.models.pipeline.OnlyHere"  # a module that sentence-transformers refuses to open


def write_json(path: Path, value: object) -> None:
    """Write JSON to a file, creating its folder."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


def write_model(encoder: TorchEncoder, target: Path, *, half: bool = False) -> str:
    """Write an encoder to an empty folder: for sentence-transformers if it can compute its vectors.

    Otherwise the folder is one of transformers and of this project alone, sentence-transformers refuses it, and the
    reason is returned (`reason_against`). Weights are stored in float16 if `half`, else in float32.
    """
    if not (reason := reason_against(encoder)):
        write_pipeline(encoder, target, half=half, weight=MASK_WEIGHT)
        return ""
    plain, head = _parts(encoder, render(PLAIN, encoder.tokenizer)), None  # no template for those tools
    if plain.head is not None:
        head = HEAD
        (target / head).mkdir()
        save_file(_stored(dict(plain.head.named_parameters()), half), target / head / "model.safetensors")
    write_weights(target, plain, plain.whole(), half=half, **_record(plain, head))
    write_tokenizer(target, encoder, plain.tokenizer)
    write_json(target / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": REFUSED_MODULE}])
    return reason


def write_pipeline(
    encoder: TorchEncoder, target: Path, *, half: bool = False, weight: float = 1.0, weights: bool = True, **config: Any
) -> PlainModel:
    """Write an encoder to an empty folder for sentence-transformers, `config` into its `config.json`.

    `weight` is the word weight of a template's mask; that of other tokens is 0. A prefix is written next to the bare
    backbone, whose `config` then has to name a class that reads it. Without `weights` the backbone is its configuration
    alone, beside a graph that computes it. Raises ValueError for an encoder that sentence-transformers cannot compute.
    """
    plain = plain_model(encoder)
    modules = ["Transformer"]
    if encoder.reading.at_mask:
        modules.append("WordWeights")
        mask, mask_id = str(encoder.tokenizer.mask_token), int(encoder.tokenizer.mask_token_id)
        table = torch.tensor([[weight * (number == mask_id)] for number in range(len(plain.vocabulary))])
        only = {"vocab": plain.vocabulary, "word_weights": {mask: weight}, "unknown_word_weight": 0.0}
        for file in ("wordweights_config.json", "config.json"):  # the second in newer versions
            write_json(target / "1_WordWeights" / file, only)
        save_file({"emb_layer.weight": table}, target / "1_WordWeights" / "model.safetensors")
    modules += write_pooling(encoder.reading, target, len(modules), encoder.model.config.to_dict())
    first_layer = None
    if plain.head is not None:
        modules += _write_layers(plain.head, encoder.reading.head_layers, target, len(modules), half=half)
        first_layer = next((f"{at}_{kind}" for at, kind in enumerate(modules) if kind in LAYER_MODULES), None)
    if encoder.reading.normalised:
        modules.append("Normalize")
    write_modules(target, modules)
    config = {**_record(plain, first_layer), **all_layers(encoder.reading), **config}
    tensors: dict[str, torch.Tensor] = {}
    if weights:
        tensors = plain.whole() if encoder.prefix is None else plain.tensors | {"prefix": encoder.prefix}
    write_weights(target, plain, tensors, half=half, **config)
    write_tokenizer(target, encoder, plain.tokenizer)
    _write_calls(plain, target, weights)
    return plain


def _write_layers(head: torch.nn.Module, layers: Sequence[str], target: Path, start: int, *, half: bool) -> list[str]:
    """Write the layers of a head as modules, numbered from `start`, and return their kinds."""
    arrays, kinds = as_arrays(dict(head.named_parameters())), layer_modules(layers)
    numbers = [number for number, layer in enumerate(layers) if layer != "tanh"]
    for at, (number, kind) in enumerate(zip(numbers, kinds, strict=True), start):
        own = {f"0.{part}": arrays[f"{number}.{part}"] for part in ("weight", "bias") if kind in LAYER_MODULES}
        folder = target / f"{at}_{kind}"
        if kind == "Dense":
            tanh = layers[number + 1 : number + 2] == ("tanh",)
            write_dense(own, Head.TANH if tanh else Head.LINEAR, folder, half=half)
        elif kind == "LayerNorm":
            write_json(folder / "config.json", {"dimension": len(own["0.bias"])})
            _write_parts(own, "norm", folder, half=half)
    return kinds


def write_modules(target: Path, kinds: Sequence[str]) -> None:
    """Write the `modules.json` of a pipeline whose first module lies in `target` itself."""
    modules = [
        {"idx": at, "name": str(at), "path": f"{at}_{kind}" if at else "", "type": f"{MODULES}{kind}"}
        for at, kind in enumerate(kinds)
    ]
    write_json(target / "modules.json", modules)


def write_tokenizer(target: Path, encoder: TorchEncoder, tokenizer: dict[str, Any]) -> None:
    """Write a tokenizer, with its post-processor, that reads typed special tokens and truncates like cse."""
    source = encoder.tokenizer
    specials = {name: str(token) for name in ROLES if (token := getattr(source, name, None)) is not None}
    write_json(target / "tokenizer.json", tokenizer)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",  # a model's own class would replace the post-processor
        "split_special_tokens": not encoder.reading.typed_specials,
        "model_max_length": encoder.max_seq_length, "padding_side": "right",
        "truncation_side": source.truncation_side, "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"], **specials,
    }  # fmt: skip
    write_json(target / "tokenizer_config.json", config)


def write_weights(
    target: Path, plain: PlainModel, tensors: dict[str, torch.Tensor], *, half: bool = False, **config: Any
) -> None:
    """Write a model's tensors, whole, bare or none, and the configuration of the backbone updated with `config`.

    The configuration asks for float32, in which float16 tensors are then computed.
    """
    whole = plain.encoder.model
    model = whole if tensors and not plain.tensors.keys() <= tensors.keys() else whole.base_model
    values = {key: value for key, value in model.config.to_dict().items() if not key.startswith("_")}
    rows = len(plain.tensors[plain.words])
    values |= {"architectures": [type(model).__name__], "dtype": "float32", "vocab_size": rows}
    for key in (OWN_KEY, SAVED_KEY):  # of a backbone that was trained here; written by transformers alone
        values.pop(key, None)
    write_json(target / "config.json", {**values, **config})
    if tensors:
        save_torch_state_dict(_stored(tensors, half), target)


def _stored(tensors: Mapping[str, torch.Tensor], half: bool) -> dict[str, torch.Tensor]:
    dtype = torch.float16 if half else torch.float32
    return {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in tensors.items()}


def _record(plain: PlainModel, head: str | None) -> dict[str, Any]:
    """Return what `cse.models.pipeline` reads of the folder, also after another tool has saved it again."""
    record = {"method": to_json(plain.encoder.method.in_encoding), "tokens": plain.tokens, "slots": len(plain.slots)}
    return {OWN_KEY: {**record, "spaced": plain.spaced, "head": head}}


def _write_calls(plain: PlainModel, target: Path, weights: bool) -> None:
    encoder = plain.encoder
    options: dict[str, Any] = {"max_seq_length": encoder.max_seq_length, "do_lower_case": False}
    if weights and "add_pooling_layer" in signature(type(encoder.model.base_model)).parameters:
        options["model_args"] = {"add_pooling_layer": False}
    write_json(target / "sentence_bert_config.json", options)
    space = " " if plain.spaced else ""
    prompts = {name: space + text for name, text in encoder.prompts.items()} | ({SPACE_PROMPT: space} if space else {})
    calls = {
        "prompts": prompts, "default_prompt_name": encoder.default_prompt_name or (SPACE_PROMPT if space else None),
        "similarity_fn_name": encoder.similarity_fn_name, "truncate_dim": encoder.truncate_dim,
    }  # fmt: skip
    write_json(target / "config_sentence_transformers.json", calls)


def write_pooling(reading: Reading, target: Path, start: int, config: dict[str, Any]) -> list[str]:
    """Write a pooling, and before it the mean of layers that it reads, as modules numbered from `start`.

    `config` is the backbone's configuration. Returns the kinds of the modules.
    """
    kinds, width = ["Pooling"], hidden_size(config)
    if reading.pooling in LAYERS:
        kinds.insert(0, LAYER_MEAN)
        count = config_number(config, "num_hidden_layers", "num_layers", "n_layers", "n_layer")
        folder = target / f"{start}_{LAYER_MEAN}"
        weights = np.zeros(count + 1, np.float32)
        weights[[*LAYERS[reading.pooling]]] = 1
        write_json(
            folder / "config.json", {"word_embedding_dimension": width, "layer_start": 0, "num_hidden_layers": count}
        )
        save_arrays({"layer_weights": weights}, folder / SINGLE)
    mode = "mean" if reading.at_mask else pooling_name(reading.pooling)
    modes = READ_POOLINGS[mode]
    keys: dict[str, Any] = {"embedding_dimension": width, "pooling_mode": modes}
    if mode != "mean-cls":  # which the older keys, that every version of the package reads, mean in the other order
        older = {key: name in modes for key, name in POOLINGS.items() if name in modes or name not in NEWER_POOLINGS}
        keys = {"word_embedding_dimension": width, **older}
    folder = target / f"{start + len(kinds) - 1}_Pooling"
    write_json(folder / "config.json", {**keys, "include_prompt": reading.prompt_pooled})
    return kinds


def all_layers(reading: Reading) -> dict[str, bool]:
    """Return the entry of a backbone's configuration by which sentence-transformers reads more layers than the last."""
    return {"output_hidden_states": True} if reading.pooling in LAYERS else {}


def write_dense(arrays: Mapping[str, np.ndarray], kind: Head, folder: Path, *, half: bool = False) -> None:
    """Write a head, a linear layer of `0.weight` (m, n) and `0.bias` (m,), as a `Dense` module."""
    outputs, inputs = arrays["0.weight"].shape
    shape = {"in_features": inputs, "out_features": outputs, "bias": True, "activation_function": ACTIVATIONS[kind]}
    write_json(folder / "config.json", shape)
    _write_parts(arrays, "linear", folder, half=half)


def _write_parts(arrays: Mapping[str, np.ndarray], name: str, folder: Path, *, half: bool) -> None:
    dtype = np.float16 if half else np.float32
    stored = {f"{name}.{part}": np.ascontiguousarray(arrays[f"0.{part}"], dtype) for part in ("weight", "bias")}
    save_arrays(stored, folder / SINGLE)
