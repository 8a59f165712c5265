"""Rows of a training step in groups: least padding, whole, and gradients that do not depend on them."""

from dataclasses import replace

import pytest
import torch
from encoders import make
from training_runs import OneProcess, run_of

from cse.encoder.backbone import set_dropout
from cse.encoder.torch_encoder import TorchEncoder
from cse.training.run import Run
from cse.training.step import contrast, masked_language_loss, set_up, step_data


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
    monkeypatch.setattr("cse.encoder.prompted_backbone.checkpoint", lambda read, part, use_reentrant: read(part))
    for key, tensor in gradients(encoder, run, 2).items():
        torch.testing.assert_close(chunked[key], tensor, atol=1e-6, rtol=1e-5, msg=key)
    set_dropout(encoder.model, 0.0)
    calm = gradients(encoder, replace(run, config=replace(run.config, dropout=0.0)), 2)
    assert any(float((calm[key] - tensor).abs().max()) > 1e-3 for key, tensor in chunked.items())
