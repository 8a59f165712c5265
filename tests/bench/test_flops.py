"""FLOPs of training against a sum by hand."""

import pytest
from transformers import AutoModelForMaskedLM

from cse.training.pretraining_model import freeze_lowest
from tests.bench.flops import encoding_flops, training_flops


def test_training_flops_are_six_a_weight_and_token_plus_attention(bert_folder: str) -> None:
    model = AutoModelForMaskedLM.from_pretrained(bert_folder)
    width, layers, inner, vocabulary = 32, 2, 64, model.config.vocab_size
    block = 4 * width * width + 2 * width * inner
    attention = 2 * 2 * 10 * width  # scores and weighted sum of ten tokens: a multiply-add per head width and token
    head = 0.15 * (width * width + vocabulary * width)
    expected = 6 * (layers * block + layers * attention / 2 + head)
    assert training_flops(model, 10) == pytest.approx(expected)


def test_a_frozen_layer_is_passed_forward_alone(bert_folder: str) -> None:
    model = AutoModelForMaskedLM.from_pretrained(bert_folder)
    whole = training_flops(model, 10)
    freeze_lowest(model, 1)
    block = 4 * 32 * 32 + 2 * 32 * 64 + 2 * 10 * 32
    assert training_flops(model, 10) == pytest.approx(whole - 4 * block)


def test_encoding_flops_are_two_a_weight_and_token_plus_attention_on_the_prefix_too(bert_folder: str) -> None:
    model = AutoModelForMaskedLM.from_pretrained(bert_folder)
    block = 4 * 32 * 32 + 2 * 32 * 64
    rows = sum(2 * 2 * length * (block + 2 * 32 * (length + 3)) for length in (10, 4))
    assert encoding_flops(model, [10, 4], prefix=3) == pytest.approx(rows)
