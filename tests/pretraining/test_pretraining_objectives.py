"""Objectives of pretraining: SIF weights, the bag-of-words loss against a slow sum, positions with logits."""

import math

import numpy as np
import pytest
import torch
from pretraining_runs import repeated_sentences
from transformers import AutoModelForMaskedLM, AutoTokenizer

from cse.encoding.rows import render
from cse.pretraining.batches import IGNORED, TEMPLATES, BatchSize, sample_batch
from cse.pretraining.corpus import TokenFile
from cse.pretraining.objectives import SIF_CONSTANT, bag_loss, forward_logits, masked_lm_loss, sif_weights


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
    count = int(rows.masked.sum())
    torch.testing.assert_close(masked[:count], everywhere[rows.labels != IGNORED])
    assert rows.targets.tolist() == rows.labels[rows.labels != IGNORED].tolist() + [IGNORED] * (len(masked) - count)
    mean = torch.nn.functional.cross_entropy(everywhere.flatten(0, 1), rows.labels.flatten())
    torch.testing.assert_close(masked_lm_loss(masked, rows.targets), mean)
    torch.testing.assert_close(pooled, everywhere[:, rows.pool_at] if bag else everywhere[:0, 0])


def test_a_part_with_nothing_to_guess_costs_nothing() -> None:
    assert masked_lm_loss(torch.zeros(0, 9), torch.zeros(0, dtype=torch.long)).item() == 0.0


def test_batches_of_many_steps_come_in_few_shapes(bert_folder: str, corpus: TokenFile) -> None:
    """Every new shape costs memory that stays: of 40 batches of one row length hardly two mask equally many tokens."""
    tokenizer, around = AutoTokenizer.from_pretrained(bert_folder), TEMPLATES[0]
    size = BatchSize(4096, 32, max_length=40)
    rng = np.random.default_rng(0)
    batches = [sample_batch(corpus, render(around, tokenizer), tokenizer, size, rng) for _ in range(40)]
    assert len({int(batch.masked.sum()) for batch in batches}) > 20
    assert len({len(batch.places) for batch in batches}) <= 4
