"""Untied output embeddings (PromptBERT's Table 12): a matrix of its own that is trained, saved, counted and kept."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pretraining_runs import CONFIG, run_pretraining, write_corpus

from cse.encoding.backbone import load_backbone, mlm_head
from tests.bench.flops import training_flops


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path)


def test_an_untied_decoder_learns_apart_from_the_embeddings_it_started_as(corpus: Path, tmp_path: Path) -> None:
    untied = run_pretraining(corpus, tmp_path / "untied", replace(CONFIG, untied=True, learning_rate=1e-2))
    tied = run_pretraining(corpus, tmp_path / "tied", CONFIG)
    model, same = (load_backbone(tmp_path / name / "model")[0] for name in ("untied", "tied"))
    words, decoder = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    assert same.get_output_embeddings().weight is same.get_input_embeddings().weight
    assert float((words - decoder).detach().abs().max()) > 1e-2
    assert untied["model"]["parameters"] == tied["model"]["parameters"] + words.numel() + len(words)  # matrix and bias
    assert training_flops(model, 16) == training_flops(same, 16)
    head = model.cls.predictions
    hidden = torch.randn(3, 16)
    torch.testing.assert_close(mlm_head(model)(hidden), head.transform(hidden) @ decoder.T + head.decoder.bias)
    assert untied["recipe"]["untied"]


def test_before_its_first_step_an_untied_model_is_the_tied_one(corpus: Path, tmp_path: Path) -> None:
    tiny = replace(CONFIG, tokens=64, learning_rate=1e-9)
    losses = [
        run_pretraining(corpus, tmp_path / str(untied), replace(tiny, untied=untied))["curve"][-1]["held_out_loss"]
        for untied in (False, True)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


def test_what_continues_from_an_untied_model_stays_untied(corpus: Path, tmp_path: Path) -> None:
    run_pretraining(corpus, tmp_path / "a", replace(CONFIG, untied=True, learning_rate=1e-2))
    start = str(tmp_path / "a" / "model")
    run_pretraining(corpus, tmp_path / "b", replace(CONFIG, vocabulary=None, tokens=64, learning_rate=1e-9), init=start)
    before, after = (load_backbone(tmp_path / name / "model")[0] for name in ("a", "b"))
    for table in ("get_input_embeddings", "get_output_embeddings"):
        torch.testing.assert_close(getattr(after, table)().weight, getattr(before, table)().weight, atol=2e-3, rtol=0)
