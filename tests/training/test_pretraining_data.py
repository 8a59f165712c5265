"""What pretraining reads: the tokenised corpus, its vocabulary, and masked rows with the loss of masked positions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pretraining_runs import CONFIG, repeated_sentences, write_corpus
from transformers import AutoModelForMaskedLM, AutoTokenizer

from cse.encoder.rows import render
from cse.methods.templates import PLAIN
from cse.training.pretraining_data import (
    IGNORED,
    BatchSampler,
    PretrainRequest,
    TokenFile,
    masked_inputs,
    masked_lm_loss,
    masked_logits,
    tokenise,
    train_tokenizer,
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path)


def test_every_hundredth_document_is_held_out_and_rows_begin_with_sentences(corpus, tmp_path):
    request = PretrainRequest([corpus], tmp_path / "out", CONFIG)
    tokenizer = train_tokenizer(request)
    tokenise(request, tokenizer, tmp_path / "tokens")
    train, valid = (TokenFile.open(tmp_path / "tokens", split) for split in ("train", "valid"))
    assert tokenizer.decode(valid.ids).count("rain rain rain") == 2
    assert "rain rain rain" not in tokenizer.decode(train.ids)
    assert (len(train.starts), len(valid.starts)) == (496, 4)
    starts = {tuple(train.ids[start : start + 3]) for start in train.starts}
    for row in train.rows(50, 6, np.random.default_rng(0)):
        assert tuple(row[:3]) in starts


def test_the_same_text_gives_the_same_vocabulary(corpus, tmp_path):
    request = PretrainRequest([corpus], tmp_path / "out", replace(CONFIG, vocabulary=60))
    learned = [train_tokenizer(request).get_vocab() for _ in range(4)]
    assert all(pieces == learned[0] for pieces in learned)
    assert len(learned[0]) == 60


def sampler(bert_folder: str, tokens: int, length: int) -> BatchSampler:
    config = replace(CONFIG, batch_tokens=tokens, lengths=(length,))
    corpus = repeated_sentences(bert_folder)
    return BatchSampler(config, corpus, AutoTokenizer.from_pretrained(bert_folder), max_length=40)


def test_masking_is_fifteen_percent_of_which_eighty_ten_ten(bert_folder):
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    batch = masked_inputs(torch.full((400, 100), 20), render(PLAIN, tokenizer), tokenizer, torch.Generator())
    inputs, labels = batch.inputs, batch.labels
    assert set(inputs[:, 0].tolist()) == {tokenizer.cls_token_id}
    assert set(inputs[:, -1].tolist()) == {tokenizer.sep_token_id}
    chosen = labels != IGNORED
    assert not chosen[:, [0, -1]].any()
    assert float(chosen[:, 1:-1].float().mean()) == pytest.approx(0.15, abs=0.01)
    assert set(labels[chosen].tolist()) == {20}
    masked = (inputs[chosen] == tokenizer.mask_token_id).float().mean()
    kept = (inputs[chosen] == 20).float().mean()
    assert (float(masked), float(kept)) == (pytest.approx(0.8, abs=0.02), pytest.approx(0.1, abs=0.02))
    assert (inputs[~chosen][:, None] != tokenizer.mask_token_id).all()


def test_only_masked_positions_reach_the_vocabulary(bert_folder):
    model = AutoModelForMaskedLM.from_pretrained(bert_folder).eval()
    batch = sampler(bert_folder, tokens=200, length=10).batch(0)
    with torch.no_grad():
        everywhere = model(input_ids=batch.inputs).logits
        logits = masked_logits(model, batch)
    count = int(batch.masked.sum())
    torch.testing.assert_close(logits[:count], everywhere[batch.labels != IGNORED])
    hidden_ids = batch.labels[batch.labels != IGNORED].tolist()
    assert batch.targets.tolist() == hidden_ids + [IGNORED] * (len(logits) - count)
    mean = torch.nn.functional.cross_entropy(everywhere.flatten(0, 1), batch.labels.flatten())
    torch.testing.assert_close(masked_lm_loss(logits, batch.targets), mean)
