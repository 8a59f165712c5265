"""An encoder in terms of other tools: weights, a tokenizer that adds the template, and a pooling."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import torch

from cse.encoder.rows import HARD, TokenTemplate, render
from cse.encoder.stored_tokenizer import BY_WORD, NUL
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.method import JOINED, Head, Pooling, When
from cse.methods.templates import PLAIN

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SLOT_BIAS = -1e4  # output bias of a slot, so that no tool predicts one as a word
BEFORE, AFTER = "template before", "template after"  # names of special tokens in the tokenizer's post-processor


class ReadAt(str, Enum):
    """Pooling: the vector at the mask, at the first token, the mean of all tokens, or the last two joined."""

    MASK = "mask"
    FIRST = "cls"
    MEAN = "mean"
    CLS_MEAN = "cls-mean"
    MEAN_CLS = "mean-cls"


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
    read_at: ReadAt
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
    if reading.pooling not in (Pooling.TOKEN, Pooling.MEAN, *JOINED):
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


def bare_model(encoder: TorchEncoder) -> PlainModel:
    """Return the parts of an encoder with a tokenizer that adds no template, for tools that use the backbone alone."""
    return _parts(encoder, render(PLAIN, encoder.tokenizer))


def _parts(encoder: TorchEncoder, template: TokenTemplate) -> PlainModel:
    from tokenizers import Tokenizer

    backend = Tokenizer.from_str(encoder.tokenizer.backend_tokenizer.to_str())
    count = 0 if encoder.slots is None else len(encoder.slots)
    tokens = backend.get_vocab_size(with_added_tokens=True)
    slots = _add_slots(backend, encoder, count)
    read_at = ReadAt.FIRST if template.mask_index is None else ReadAt.MASK
    read_at = next((kind for kind in ReadAt if kind.value == encoder.reading.pooling.value), read_at)
    tensors, words = _tensors(encoder)
    known = {number: token for token, number in backend.get_vocab(with_added_tokens=True).items()}
    vocabulary = [known.get(number, _unused(number)) for number in range(len(tensors[words]))]
    bare, spaced = (encoder.tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("a", " a"))
    return PlainModel(
        encoder, tensors, words, _tokenizer_json(backend, template, slots), vocabulary, tokens, slots, read_at,
        template.spaced and bare != spaced,
    )  # fmt: skip


def _add_slots(backend: Tokenizer, encoder: TorchEncoder, count: int) -> list[int]:
    """Add a token per slot, after all rows of the table of words, and return their ids."""
    from tokenizers import AddedToken

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


def _tensors(encoder: TorchEncoder) -> tuple[dict[str, torch.Tensor], str]:
    base: Any = encoder.model.base_model
    table = base.get_input_embeddings().weight
    words = next(name for name, tensor in base.named_parameters() if tensor is table)
    tensors = {name: tensor.detach().float().cpu() for name, tensor in base.named_parameters()}
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("pooler.")}
    if encoder.slots is not None:
        tensors[words] = torch.cat([tensors[words], encoder.slots.detach().float().cpu()])
    return {name: tensor.clone().contiguous() for name, tensor in tensors.items()}, words


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
