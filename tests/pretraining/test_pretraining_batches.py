"""MLM batches: text in a template, masked tokens, the position of the vector and its bag of words."""

from pathlib import Path

import numpy as np
import pytest
import torch
from pretraining_runs import repeated_sentences
from transformers import AutoTokenizer

from cse.encoding.rows import render
from cse.methods.templates import PLAIN
from cse.pretraining.batches import IGNORED, TEMPLATES, BatchSize, MaskedBatch, masked_inputs, sample_batch
from cse.pretraining.corpus import TokenFile


@pytest.fixture
def corpus(bert_folder: str) -> TokenFile:
    return repeated_sentences(bert_folder)


def test_masking_is_fifteen_percent_of_which_eighty_ten_ten(bert_folder: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    text = torch.full((400, 100), 20)
    inputs, labels = masked_inputs(text, render(PLAIN, tokenizer), tokenizer, torch.Generator().manual_seed(0))
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


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.text)
def test_rows_are_text_in_its_template_read_where_sentences_are(bert_folder: str, corpus: TokenFile, template) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    around = render(template, tokenizer)
    rows = sample_batch(corpus, around, tokenizer, BatchSize(400, 14, max_length=40), np.random.default_rng(0))
    assert len(rows.inputs) == 400 // (12 + around.length)
    assert rows.bag.shape[1] == 12 + 32
    starts = {
        tuple(corpus.ids[start : start + 44].tolist()) for start in corpus.starts if start + 44 <= len(corpus.ids)
    }
    first, last = len(around.before), len(around.after)
    for inputs, labels, bag in zip(rows.inputs, rows.labels, rows.bag, strict=True):
        assert tuple(bag.tolist()) in starts
        assert tuple(inputs[:first].tolist()) == around.before
        assert tuple(inputs[-last:].tolist()) == around.after
        text, wanted = inputs[first:-last], labels[first:-last]
        assert torch.equal(text[wanted == IGNORED], bag[:12][wanted == IGNORED])
        assert torch.equal(wanted[wanted != IGNORED], bag[:12][wanted != IGNORED])
        assert (labels[:first] == IGNORED).all()
        assert (labels[-last:] == IGNORED).all()
    pooled_id = tokenizer.cls_token_id if template is PLAIN else tokenizer.mask_token_id
    assert set(rows.inputs[:, rows.pool_at].tolist()) == {pooled_id}


def test_rows_shrink_to_the_positions_and_the_corpus_there_are(bert_folder: str, corpus: TokenFile) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    around, rng = render(TEMPLATES[1], tokenizer), np.random.default_rng(0)
    rows = sample_batch(corpus, around, tokenizer, BatchSize(100, 64, max_length=20), rng)
    assert rows.inputs.shape == (5, 20)
    tiny = TokenFile(corpus.ids[:6], corpus.starts[:1])
    rows = sample_batch(tiny, around, tokenizer, BatchSize(100, 64, max_length=40), rng)
    assert (rows.inputs.shape[1], rows.bag.shape[1]) == (6 + around.length, 6)


def test_rows_split_into_parts_that_make_the_whole(bert_folder: str, corpus: TokenFile, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    around, rng = render(TEMPLATES[2], tokenizer), np.random.default_rng(0)
    rows = sample_batch(corpus, around, tokenizer, BatchSize(200, 10, max_length=40), rng)
    parts = rows.split(4)
    assert {part.pool_at for part in parts} == {rows.pool_at}
    for name in ("inputs", "labels", "bag"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(rows, name))
    assert isinstance(parts[0], MaskedBatch)
