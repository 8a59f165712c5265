"""Rows through the backbone: dropout, biases, passes of many sentences, and gradients of rows in groups."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import SENTENCES, WORDS
from encoders import IN_FAMILIES, make, reading
from training_runs import OneProcess, run_of

from cse.encoder import encoder as encoder_module
from cse.encoder import rows
from cse.encoder.backbone import load_backbone, set_dropout
from cse.encoder.rows import TokenRows
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.catalogue import UNTRAINED
from cse.methods.method import When
from cse.training.run import Run
from cse.training.step import contrast, masked_language_loss, set_up, step_data

TEXTS = [
    *SENTENCES, "", "a", "dog " * 200,
    *(" ".join(np.random.default_rng(n).choice(WORDS, n % 23)) for n in range(30)),
]  # fmt: skip


def plain(encoder: TorchEncoder, texts: list[str]) -> np.ndarray:
    """(N, d) vectors of a pass for each text, in which every layer is computed everywhere."""
    template = encoder.views[0][0]
    with pytest.MonkeyPatch.context() as patch, encoder.inference():
        patch.setattr(encoder, "reads_at", False)
        rows = [encoder(encoder.rows_of([text], [template])) for text in texts]
        return torch.cat(rows).numpy()


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_every_method_gives_the_vectors_of_the_plain_path_in_any_order_and_batch(
    open_backbone, family, name, supervised
):
    encoder = make(open_backbone(family), name, supervised)
    expected = plain(encoder, TEXTS)
    for count in (0, 1, len(TEXTS)):
        np.testing.assert_allclose(encoder.encode(TEXTS[:count]), expected[:count], atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1], batch_size=3)[::-1], expected, atol=1e-5)
    assert np.isfinite(expected).all()
    assert np.abs(expected - expected[0]).max() > 1e-3


def test_a_long_list_that_is_encoded_in_parts_has_the_same_vectors(bert_folder, monkeypatch):
    encoder = reading(str(bert_folder), UNTRAINED["prompt"].replaced(denoise=When.ALWAYS))
    texts = (TEXTS * 5)[:200]
    expected = encoder.encode(texts)
    monkeypatch.setattr(encoder_module, "WINDOW", 32)
    monkeypatch.setattr(rows, "TOKENS", {"cpu": 120})
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)


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


def gradients(encoder: TorchEncoder, run: Run, chunk: int | None) -> dict[str, torch.Tensor]:
    """Of the whole loss of one step, the random state as a step has it."""
    set_up(encoder, replace(run.config, chunk=chunk))
    encoder.train().zero_grad()
    torch.manual_seed(3)
    views, plain, rows = step_data(encoder, run.batch(0), run.config, 0)
    vectors = encoder(rows)
    loss = contrast(vectors, views, run.config, OneProcess(), kind=encoder.method.contrast)
    if encoder.method.mlm_weight:
        loss = loss + encoder.method.mlm_weight * masked_language_loss(encoder, plain)
    loss.backward()
    return {name: tensor.grad.clone() for name, tensor in encoder.learned(training=True).items()}


@pytest.mark.parametrize(
    ("name", "supervised"),
    [("promptbert", True), ("dcpcse", True), ("conpvp", False), ("consert", False)],
)
def test_gradients_are_the_same_in_chunks_of_any_size(bert_folder, name, supervised):
    """Hard negatives, prototypes, denoising, prefixes and the masked-LM term included."""
    encoder = make(str(bert_folder), name, supervised)
    encoder.method = encoder.method.replaced(mlm_weight=0.1)
    run = run_of(encoder, dropout=0.0, temperature=1.0)  # where gradients are about 1 in size
    whole = gradients(encoder, run, None)
    assert any(float(tensor.abs().max()) > 0.01 for tensor in whole.values())
    for chunk in (1, 3):
        for key, tensor in gradients(encoder, run, chunk).items():
            torch.testing.assert_close(tensor, whole[key], atol=1e-6, rtol=1e-5, msg=f"{key} in chunks of {chunk}")


@pytest.mark.parametrize("name", ["promptbert", "dcpcse"])
def test_chunks_repeat_their_dropout(bert_folder, name, monkeypatch):
    """The oracle keeps the states of the same chunks instead of computing them anew."""
    encoder = make(str(bert_folder), name)
    run = run_of(encoder, dropout=0.3, temperature=1.0)
    chunked = gradients(encoder, run, 2)
    monkeypatch.setattr("cse.encoder.torch_encoder.checkpoint", lambda read, part, use_reentrant: read(part))
    for key, tensor in gradients(encoder, run, 2).items():
        torch.testing.assert_close(chunked[key], tensor, atol=1e-6, rtol=1e-5, msg=key)
    set_dropout(encoder.model, 0.0)
    calm = gradients(encoder, replace(run, config=replace(run.config, dropout=0.0)), 2)
    assert any(float((calm[key] - tensor).abs().max()) > 1e-3 for key, tensor in chunked.items())
