"""Blocks read a prefix, whatever an installed transformers calls the argument."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from encoders import make
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer, BertModel, DynamicCache

from cse.encoder.stored_backbone import FAMILIES

FORWARD = BertModel.forward
NAME = next(name for name in ("cache", "past_key_values") if name in inspect.signature(FORWARD).parameters)


def before_5_24(model: Any, *inputs: Any, past_key_values: Any = None, **options: Any) -> Any:
    options.pop("cache", None)  # as a version that does not know it
    return FORWARD(model, *inputs, **{NAME: past_key_values}, **options)


def since_5_24(model: Any, *inputs: Any, cache: Any = None, **options: Any) -> Any:
    options.pop("past_key_values", None)
    return FORWARD(model, *inputs, **{NAME: cache}, **options)


@pytest.mark.parametrize("forward", [before_5_24, since_5_24])
def test_a_prefix_is_read_under_both_names_of_the_argument(
    bert_folder: Path, monkeypatch: pytest.MonkeyPatch, forward: Callable
) -> None:
    expected = make(str(bert_folder), "dcpcse").encode(SENTENCES)
    monkeypatch.setattr(BertModel, "forward", forward)
    np.testing.assert_array_equal(make(str(bert_folder), "dcpcse").encode(SENTENCES), expected)


@pytest.mark.parametrize("name", ["past_key_values", "cache", "keys_and_values"])
def test_the_last_block_reads_a_cache_of_any_name(bert_folder: Path, name: str) -> None:
    encoder = make(str(bert_folder), "dcpcse")
    block = encoder.model.base_model.encoder.layer[-1]
    hidden, (keys, values) = torch.randn(1, 3, 32), torch.randn(2, 1, 2, 5, 16)
    numbers: list[torch.Tensor] = []
    for argument, read_at in ((NAME, None), (name, torch.tensor([1]))):
        cache = DynamicCache()
        for layer in range(2):
            cache.update(keys, values, layer)
        numbers.append(block(hidden, **{argument: cache}, **({} if read_at is None else {"read_at": read_at})))
    torch.testing.assert_close(numbers[1][:, 0], numbers[0][:, 1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_blocks_of_a_family_read_a_prefix(bert_folder: Path, tmp_path: Path, kind: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    config = AutoConfig.for_model(
        kind, vocab_size=len(tokenizer), hidden_size=32, pad_token_id=0, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=80, initializer_range=0.2,
    )  # fmt: skip
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    encoder = make(str(tmp_path), "dcpcse")
    first = encoder.encode(SENTENCES)
    with torch.no_grad():
        encoder.prefix.neg_()
    assert np.abs(encoder.encode(SENTENCES) - first).max() > 0.01
