"""Every published layout gives the vectors of a plain transformers computation, written out here, to 1e-5."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from released import PREFIX, SLOTS, release, trainer_keys
from torch.nn.functional import gelu, layer_norm, linear
from transformers import AutoModel, AutoTokenizer, BertModel, DynamicCache

import cse

CACHE = next(name for name in ("cache", "past_key_values") if name in signature(BertModel.forward).parameters)
TEXTS = [*SENTENCES, "The dog, happy.", "cat"]
TOLERANCE = 1e-5  # of float32 numbers up to 3; the last layer, read at one position, adds in another order
LAYOUTS = [  # family, backbone, converted to transformers' own keys, a pickle of tensors
    ("simcse", "bert", False, True), ("simcse", "roberta", True, False),
    ("simcse-supervised", "bert", True, True), ("simcse-supervised", "roberta", False, False),
    ("esimcse", "bert", True, False), ("esimcse", "roberta", False, True),
    ("promptbert", "bert", False, True), ("promptbert", "roberta", False, True),
    ("promptbert-supervised", "bert", False, False), ("promptbert-supervised", "bert", True, True),
    ("promptbert-supervised", "roberta", True, True),
    ("promcse", "bert", False, True), ("promcse", "roberta", False, False), ("promcse-supervised", "bert", False, True),
    ("conpvp", "bert", True, False), ("conpvp", "roberta", False, True), ("optiprompt", "bert", False, False),
]  # fmt: skip


class Plain:
    """A backbone by transformers alone, and the tensors of a layout."""

    def __init__(self, backbone: Path, family: str) -> None:
        self.model = AutoModel.from_pretrained(backbone, add_pooling_layer=False, dtype=torch.float32).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(backbone)
        self.kind = self.model.config.model_type
        self.tensors = trainer_keys(backbone, family)

    def ids(self, text: str, specials: bool = False) -> list[int]:
        return self.tokenizer(text, add_special_tokens=specials)["input_ids"]

    def hidden(self, ids: list[int], **inputs: torch.Tensor) -> torch.Tensor:
        """(L, d) last hidden states of one row."""
        return self.model(input_ids=torch.tensor([ids]), **inputs).last_hidden_state[0]

    def at_mask(self, ids: list[int], **inputs: torch.Tensor) -> torch.Tensor:
        return self.hidden(ids, **inputs)[ids.index(self.tokenizer.mask_token_id)]

    def dense(self, hidden: torch.Tensor) -> torch.Tensor:
        return linear(hidden, self.tensors["mlp.dense.weight"], self.tensors["mlp.dense.bias"])


def first_token(plain: Plain, text: str) -> torch.Tensor:
    return plain.hidden(plain.ids(text, specials=True))[0]


def first_token_with_head(plain: Plain, text: str) -> torch.Tensor:
    return torch.tanh(plain.dense(first_token(plain, text)))


def template(plain: Plain, text: str) -> tuple[list[int], list[int]]:
    """PromptBERT's prediction template: the ids before the end of the sentence, and those after it."""
    before, after = ('This sentence of "', '" means[MASK].') if plain.kind == "bert" else (
        "This sentence : '", " ' means<mask>."
    )  # fmt: skip
    sentence = f" {text}" if plain.kind == "roberta" and text else text
    return plain.ids(before + sentence, specials=True)[:-1], plain.ids(after, specials=True)[1:]


def prompted(plain: Plain, text: str) -> torch.Tensor:
    before, after = template(plain, text)
    return plain.at_mask(before + after)


def bias(plain: Plain, text: str) -> torch.Tensor:
    """The template without the sentence, what follows it where it would stand behind the sentence's n tokens."""
    around, after = template(plain, "")
    n = len(template(plain, text)[0]) - len(around)
    start = 2 if plain.kind == "roberta" else 0
    positions = [*range(len(around)), *(len(around) + n + k for k in range(len(after)))]
    return plain.at_mask(around + after, position_ids=torch.tensor([positions]) + start)


def prompted_with_head(plain: Plain, text: str) -> torch.Tensor:
    hidden, alone = prompted(plain, text), bias(plain, text)
    if plain.kind == "roberta":
        return torch.tanh(plain.dense(hidden - alone))
    width = (len(hidden),)
    weight, shift = plain.tensors["mlp.LayerNorm.weight"], plain.tensors["mlp.LayerNorm.bias"]
    first, second = (layer_norm(gelu(plain.dense(part)), width, weight, shift, 1e-12) for part in (hidden, alone))
    return first - second


def behind_the_prefix(plain: Plain, text: str) -> torch.Tensor:
    """Each row of the prefix: keys of layer 0, values of layer 0, keys of layer 1, ... each in heads."""
    config, rows = plain.model.config, plain.tensors["prefix_encoder.embedding.weight"]
    width, heads = config.hidden_size, config.num_attention_heads
    cache = DynamicCache()
    for layer in range(config.num_hidden_layers):
        keys, values = (rows[:, (2 * layer + part) * width :][:, :width] for part in (0, 1))
        cache.update(*(part.view(1, PREFIX, heads, -1).transpose(1, 2) for part in (keys, values)), layer)
    ids = plain.ids(text, specials=True)
    return plain.hidden(ids, **{CACHE: cache}, attention_mask=torch.ones(1, PREFIX + len(ids)))[0]


def behind_the_prefix_with_head(plain: Plain, text: str) -> torch.Tensor:
    return torch.tanh(plain.dense(behind_the_prefix(plain, text)))


def embedded(plain: Plain, ids: list[int], learned: dict[int, torch.Tensor]) -> torch.Tensor:
    """(d,) at the mask of a row some of whose word embeddings are learned vectors, by place."""
    embeddings = plain.model.get_input_embeddings()(torch.tensor([ids]))
    for position, vector in learned.items():
        embeddings[0, position] = vector
    states = plain.model(inputs_embeds=embeddings).last_hidden_state[0]
    return states[ids.index(plain.tokenizer.mask_token_id)]


def continuous(plain: Plain, text: str) -> torch.Tensor:
    """ConPVP: sentence, slots, mask, period."""
    tokenizer = plain.tokenizer
    sentence, end = plain.ids(text, specials=True)[:-1], plain.ids(" .", specials=True)[1:]
    ids = [*sentence, *[tokenizer.pad_token_id] * SLOTS, tokenizer.mask_token_id, *end]
    return embedded(plain, ids, {len(sentence) + k: vector for k, vector in enumerate(plain.tensors["endp"])})


def soft_words(plain: Plain, text: str) -> torch.Tensor:
    """OptiPrompt: the words of the template are learned vectors, found by their place from either end."""
    ids = plain.ids(f'This sentence : "{text}" means[MASK].', specials=True)
    places = [1, 2, 3, 4, *(len(ids) - back for back in (5, 4, 2))]  # ... " means [MASK] . [SEP]
    return embedded(plain, ids, dict(zip(places, plain.tensors["p_mbv"], strict=True)))


READINGS: dict[str, Callable[[Plain, str], torch.Tensor]] = {
    "simcse": first_token, "simcse-supervised": first_token_with_head, "esimcse": first_token,
    "promptbert": prompted, "promptbert-supervised": prompted_with_head, "promcse": behind_the_prefix,
    "promcse-supervised": behind_the_prefix_with_head, "conpvp": continuous, "optiprompt": soft_words,
}  # fmt: skip


@pytest.mark.parametrize(("family", "kind", "converted", "binary"), LAYOUTS)
def test_a_layout_gives_the_vectors_of_the_plain_computation(
    family, kind, converted, binary, bert_folder, roberta_folder, tmp_path
):
    backbone = {"bert": bert_folder, "roberta": roberta_folder}[kind]
    folder = release(tmp_path / "model", backbone, family, converted=converted, binary=binary)
    encoder = cse.load(str(folder), family=family)
    plain = Plain(backbone, family)
    with torch.no_grad():
        expected = np.stack([READINGS[family](plain, text).numpy() for text in TEXTS])
    vectors = encoder.encode(TEXTS, batch_size=1)  # one by one as there, for batches round otherwise
    np.testing.assert_allclose(vectors, expected, atol=TOLERANCE, rtol=0)
    assert encoder.fingerprint == cse.load(str(folder), family=family).fingerprint
    assert np.abs(vectors - cse.load(str(backbone)).encode(TEXTS)).max() > 1e-2  # not the mean that it was read as once
