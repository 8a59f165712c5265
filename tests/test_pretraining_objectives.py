"""Objectives of pretraining: SIF weights, the bag-of-words loss against its slow sum, which positions get logits."""

import math

import numpy as np
import pytest
import torch
from pretraining_runs import repeated_sentences
from transformers import AutoModelForMaskedLM, AutoTokenizer

from cse.pretraining.batches import IGNORED, TEMPLATES, BatchSize, sample_batch
from cse.pretraining.corpus import TokenFile
from cse.pretraining.objectives import SIF_CONSTANT, bag_loss, forward_logits, masked_lm_loss, sif_weights
from cse.templates import render


@pytest.fixture
def corpus(bert_folder: str) -> TokenFile:
    return repeated_sentences(bert_folder)


def test_rare_words_weigh_as_in_sif_and_special_tokens_nothing() -> None:
    weights = sif_weights(np.array([50.0, 900.0, 0.0, 50.0]), [0])
    assert weights.tolist() == pytest.approx(
        [0.0, SIF_CONSTANT / (SIF_CONSTANT + 0.9), 1.0, SIF_CONSTANT / (SIF_CONSTANT + 0.05)]
    )


def test_the_bag_loss_is_its_slow_sum() -> None:
    torch.manual_seed(0)
    logits, bag = torch.randn(3, 7), torch.randint(7, (3, 5))
    weights = torch.tensor([0.0, 0.1, 0.2, 0.5, 0.9, 1.0, 0.3])
    expected = 0.0
    for row in range(3):
        total = sum(float(weights[word]) for word in bag[row])
        norm = math.log(sum(math.exp(float(value)) for value in logits[row]))
        expected += sum(float(weights[word]) / total * (norm - float(logits[row, word])) for word in bag[row]) / 3
    assert float(bag_loss(logits, bag, weights)) == pytest.approx(expected, rel=1e-5)


def test_a_bag_of_special_tokens_costs_nothing() -> None:
    assert float(bag_loss(torch.randn(2, 4), torch.zeros(2, 3, dtype=torch.long), torch.tensor([0.0, 1, 1, 1]))) == 0


@pytest.mark.parametrize("bag", [True, False])
def test_only_masked_positions_and_where_rows_are_read_reach_the_vocabulary(
    bert_folder: str, corpus: TokenFile, bag: bool
) -> None:
    tokenizer, model = AutoTokenizer.from_pretrained(bert_folder), AutoModelForMaskedLM.from_pretrained(bert_folder)
    around, rng = render(TEMPLATES[1], tokenizer), np.random.default_rng(0)
    rows = sample_batch(corpus, around, tokenizer, BatchSize(200, 10, max_length=40), rng)
    with torch.no_grad():
        everywhere = model.eval()(input_ids=rows.inputs).logits
        masked, pooled = forward_logits(model, rows, bag=bag)
    torch.testing.assert_close(masked, everywhere[rows.labels != IGNORED])
    torch.testing.assert_close(pooled, everywhere[:, rows.pool_at] if bag else everywhere[:0, 0])


def test_a_part_with_nothing_to_guess_costs_nothing() -> None:
    assert masked_lm_loss(torch.zeros(0, 9), torch.zeros(0, dtype=torch.long)).item() == 0.0
