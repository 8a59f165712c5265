"""Rows through the backbone: soft slots, dropout, template biases, and prefixes under any name of the argument."""

import pytest
import torch
from conftest import SENTENCES
from encoders import make

from cse.encoder.backbone import load_backbone, set_dropout
from cse.encoder.rows import TokenRows
from cse.encoder.torch_encoder import TorchEncoder


def test_every_row_gets_its_own_prefix_dropout(bert_folder):
    """It is part of what makes SimCSE's two views differ (the released code drops after expanding to the batch)."""
    encoder = make(str(bert_folder), "dcpcse").train()
    encoder.model.eval()
    with torch.no_grad():
        encoder.prefix.normal_()
        first, second = encoder.pool(TokenRows.of([[9, 10]] * 2, [encoder.views[0][0]] * 2))
    assert float((first - second).abs().max()) > 1e-2


def test_a_dropout_rate_set_is_that_of_a_model_configured_so(bert_folder, tmp_path):
    model, tokenizer = load_backbone(bert_folder)
    set_dropout(model, 0.37)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    configured, _ = load_backbone(tmp_path)  # its rates come from the saved config
    inputs = {"input_ids": torch.arange(5, 25).view(2, 10)}
    states = []
    for read in (model, configured):
        torch.manual_seed(0)
        states.append(read.train().base_model(**inputs).last_hidden_state)
    assert torch.equal(*states)


@pytest.mark.parametrize("name", ["promptbert", "dcpcse", "conpvp"])
def test_tokens_after_a_fused_training_step_are_those_of_the_trained_weights(bert_folder, name):
    encoder = make(str(bert_folder), name)
    encoder.top_tokens("the dog", k=3)  # remembers the bias of the untrained weights
    optimizer = torch.optim.AdamW(encoder.learned(training=True).values(), lr=0.05, fused=True)
    templates = [view[0] for view in encoder.views for _ in range(2)]
    rows = encoder.rows_of(SENTENCES[:2] * len(encoder.views), templates)
    encoder.train()
    encoder(rows).square().sum().backward()
    optimizer.step()
    predictions = encoder.eval().top_tokens("the dog", k=3)
    fresh = TorchEncoder(encoder.model, encoder.tokenizer, encoder.method, name="fresh")  # which remembers nothing
    fresh.load_state_dict(encoder.state_dict())
    assert predictions == fresh.top_tokens("the dog", k=3)
