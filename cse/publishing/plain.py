"""An encoder in terms of other tools: weights, a tokenizer that adds the template, and a pooling."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import torch

from cse.encoding.rows import HARD, TokenTemplate
from cse.engines.torch_encoder import TorchEncoder
from cse.methods.method import Head, Pooling, When

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BEFORE, AFTER = "template before", "template after"  # names of special tokens in the tokenizer's post-processor


class Reading(str, Enum):
    """Pooling: the vector at the mask, at the first token, or the mean of all tokens."""

    MASK = "mask"
    FIRST = "cls"
    MEAN = "mean"


@dataclass(frozen=True)
class PlainModel:
    """The parts of an encoder: `tensors` of the bare backbone, among them `words` (V, d) with a row per learned slot.

    `tokenizer` is the content of a `tokenizer.json`, `vocabulary` its tokens by id, `slots` the ids of the learned
    slots. If `spaced`, a space must be put before each sentence, as it changes the tokens.
    """

    encoder: TorchEncoder
    tensors: dict[str, torch.Tensor]
    words: str
    tokenizer: dict[str, Any]
    vocabulary: list[str]
    slots: list[int]
    reading: Reading
    spaced: bool

    @property
    def mask_token(self) -> str:
        """The mask token, at which templates are read."""
        return str(self.encoder.tokenizer.mask_token)

    @property
    def mask_id(self) -> int:
        """The id of that token."""
        return int(self.encoder.tokenizer.mask_token_id)

    @property
    def head(self) -> torch.nn.Module | None:
        """The head applied to the pooled vector in encoding, or None."""
        return self.encoder.head if self.encoder.method.head_when is When.ALWAYS else None


def check_exportable(encoder: TorchEncoder) -> None:
    """Raise ValueError, with the reason, for an encoder that other tools cannot represent."""
    method = encoder.method
    if method.denoise is When.ALWAYS:
        reason = "subtracts its template's bias, which depends on the length of the sentence"
    elif method.pooling not in (Pooling.TOKEN, Pooling.MEAN):
        reason = f"pools by {method.pooling.value}"
    elif method.head_when is When.ALWAYS and method.head is Head.TRANSFORM:
        reason = "has a head of several layers"
    elif not getattr(encoder.tokenizer, "is_fast", False):
        reason = "has a tokenizer without a tokenizer.json"
    else:
        return
    raise ValueError(f"{encoder.name} {reason}, which no export supports; use it with cse")


def plain_model(encoder: TorchEncoder) -> PlainModel:
    """The parts of an encoder. Raises ValueError for one that `check_exportable` refuses."""
    from tokenizers import Tokenizer

    check_exportable(encoder)
    template = encoder.views[0][0]
    backend = Tokenizer.from_str(encoder.tokenizer.backend_tokenizer.to_str())
    names = [f"[P{number}]" for number in range(len(template.slot_ids) if encoder.slots is not None else 0)]
    taken = backend.get_vocab(with_added_tokens=True)
    if clash := next((name for name in names if name in taken), None):
        raise ValueError(f"{encoder.name}: its vocabulary already has {clash}, the name of a learned slot")
    slots = _add_tokens(backend, names)
    mean = encoder.method.pooling is Pooling.MEAN
    reading = Reading.MEAN if mean else Reading.FIRST if template.mask_index is None else Reading.MASK
    tensors, words = _tensors(encoder, slots)
    return PlainModel(
        encoder, tensors, words, _tokenizer_json(backend, template, slots), _vocabulary(backend, len(tensors[words])),
        slots, reading, template.spaced and _sees_spaces(encoder),
    )  # fmt: skip


def _add_tokens(backend: Tokenizer, names: list[str]) -> list[int]:
    from tokenizers import AddedToken

    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    return [number for name in names if (number := backend.token_to_id(name)) is not None]


def _tensors(encoder: TorchEncoder, slots: list[int]) -> tuple[dict[str, torch.Tensor], str]:
    base: Any = encoder.model.base_model
    table = base.get_input_embeddings().weight
    words = next(name for name, tensor in base.named_parameters() if tensor is table)
    tensors = {name: tensor.detach().float().cpu() for name, tensor in base.named_parameters()}
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("pooler.")}
    if slots and encoder.slots is not None:
        rows = torch.cat([tensors[words], tensors[words].new_zeros(max(0, max(slots) + 1 - len(table)), encoder.dim)])
        rows[slots] = encoder.slots.detach().float().cpu()
        tensors[words] = rows
    return {name: tensor.clone().contiguous() for name, tensor in tensors.items()}, words


def _tokenizer_json(backend: Tokenizer, template: TokenTemplate, slots: list[int]) -> dict[str, Any]:
    """The tokenizer with the template as its special tokens; NUL is read as a space, as in `TorchEncoder.tokenise`."""
    value = json.loads(backend.to_str())
    pieces: dict[str, Any] = {}
    sides = {BEFORE: (template.before, template.before_slots), AFTER: (template.after, template.after_slots)}
    for name, (ids, of_slots) in sides.items():
        real = [token if slot == HARD else slots[slot] for token, slot in zip(ids, of_slots, strict=True)]
        pieces[name] = {"id": name, "ids": real, "tokens": [backend.id_to_token(token) for token in real]}
    before, after = ({"SpecialToken": {"id": name, "type_id": 0}} for name in (BEFORE, AFTER))
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    value["post_processor"] = {
        "type": "TemplateProcessing", "single": [before, first, after], "pair": [before, first, second, after],
        "special_tokens": pieces,
    }  # fmt: skip
    nul = {"type": "Replace", "pattern": {"String": "\x00"}, "content": " "}
    normalizers = [nul, *([value["normalizer"]] if value.get("normalizer") else [])]
    return {
        **value, "truncation": None, "padding": None, "normalizer": {"type": "Sequence", "normalizers": normalizers}
    }  # fmt: skip


def _vocabulary(backend: Tokenizer, rows: int) -> list[str]:
    known = {number: token for token, number in backend.get_vocab(with_added_tokens=True).items()}
    return [known.get(number, f"[unused row {number}]") for number in range(rows)]


def _sees_spaces(encoder: TorchEncoder) -> bool:
    plain, spaced = (encoder.tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("a", " a"))
    return plain != spaced
