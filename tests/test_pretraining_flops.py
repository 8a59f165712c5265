"""FLOPs of training against a sum by hand."""

import pytest
from transformers import AutoModelForMaskedLM

from cse.pretraining.flops import training_flops


def test_training_flops_are_six_a_weight_and_token_plus_attention(bert_folder: str) -> None:
    model = AutoModelForMaskedLM.from_pretrained(bert_folder)
    width, layers, inner, vocabulary = 32, 2, 64, model.config.vocab_size
    block = 4 * width * width + 2 * width * inner
    attention = 2 * 2 * 10 * width  # scores and weighted sum of ten tokens: a multiply-add per head width and token
    head = 0.15 * (width * width + vocabulary * width)
    expected = 6 * (layers * block + layers * attention / 2 + head)
    assert training_flops(model, 10) == pytest.approx(expected)
    pooled = width * width + vocabulary * width  # of one position in ten
    assert training_flops(model, 10, bag=True) == pytest.approx(expected + 6 * pooled / 10)
