"""The pretraining loop, its schedule and its defaults: it learns, resumes exactly and accumulates gradients."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import ROOT, SENTENCES
from pretraining_runs import CONFIG, curve, kill_at, run_pretraining, write_corpus
from transformers import AutoModelForMaskedLM, AutoTokenizer

from cse.errors import ArtefactError
from cse.models.names import BUNDLED
from cse.training import pretraining
from cse.training.pretraining_data import PretrainConfig, learning_rate


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path)


def test_a_killed_pretraining_resumes_to_the_same_model(corpus: Path, tmp_path: Path) -> None:
    whole = run_pretraining(corpus, tmp_path / "whole", CONFIG, eval_every=4)
    with pytest.raises(KeyboardInterrupt):
        run_pretraining(corpus, tmp_path / "killed", CONFIG, eval_every=4, report=kill_at(8))
    resumed = run_pretraining(corpus, tmp_path / "killed", CONFIG, eval_every=4, resume=True)
    assert curve(resumed) == curve(whole)
    models = [AutoModelForMaskedLM.from_pretrained(tmp_path / name / "model") for name in ("whole", "killed")]
    for first, second in zip(*(model.state_dict().values() for model in models), strict=True):
        assert torch.equal(first, second)
    recipe = json.loads((tmp_path / "whole" / "model" / "pretraining.json").read_text())
    assert recipe["recipe"]["seed"] == 3
    with pytest.raises(ArtefactError, match="another recipe"):
        run_pretraining(corpus, tmp_path / "killed", replace(CONFIG, learning_rate=0.5), resume=True)


def test_pretraining_learns_and_goes_on_from_the_model_it_is_given(corpus: Path, tmp_path: Path) -> None:
    corpus.write_text("\n".join([*SENTENCES, ""] * 150))  # the held-out documents say what the others say
    config = replace(CONFIG, vocabulary=60, hidden=48, tokens=512 * 120, batch_tokens=512, learning_rate=5e-3)
    first = run_pretraining(corpus, tmp_path / "a", config, eval_every=20)
    assert curve(first)[-1] < curve(first)[0] - 0.2
    start = str(tmp_path / "a" / "model")
    rest = replace(config, vocabulary=None, tokens=512, learning_rate=1e-9)
    more = run_pretraining(corpus, tmp_path / "b", rest, init=start)
    assert more["before"]["recipe"]["tokens"] == config.tokens
    assert curve(more)[0] == pytest.approx(curve(first)[-1], abs=0.01)  # the model is stored in half precision
    vocabularies = [AutoTokenizer.from_pretrained(folder).get_vocab() for folder in (start, tmp_path / "b" / "model")]
    assert vocabularies[0] == vocabularies[1]


def test_a_step_in_parts_is_the_whole_step(corpus: Path, tmp_path: Path) -> None:
    config = replace(CONFIG, tokens=512 * 6, batch_tokens=512)
    whole = run_pretraining(corpus, tmp_path / "whole", config, eval_every=2)
    accumulated = run_pretraining(corpus, tmp_path / "parts", replace(config, accumulate=5), eval_every=2)
    losses = [[entry["loss"] for entry in result["curve"]] for result in (whole, accumulated)]
    assert losses[1] == pytest.approx(losses[0], abs=2e-4)
    assert curve(accumulated) == pytest.approx(curve(whole), abs=2e-4)


def test_pretraining_needs_no_data_index_or_app_library(corpus: Path, tmp_path: Path) -> None:
    """A rented GPU machine may have torch, transformers, tokenizers, accelerate, numpy, pyarrow and typer alone."""
    options = ["--vocabulary", "90", "--layers", "1", "--hidden", "16", "--tokens", "128", "--batch-tokens", "64"]
    arguments = [str(corpus), "--output", str(tmp_path / "out"), *options]
    code = f"""
import sys
from cse.commands.pretrain import app
try:
    app({arguments})
finally:
    print([name for name in ("datasets", "faiss", "gradio", "pandas", "matplotlib") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "held-out loss" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_pretraining_goes_on_from_the_bundled_backbone(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretraining, "EVAL_ROWS", 16)
    config = replace(CONFIG, vocabulary=None, tokens=64, lengths=(8,))
    more = run_pretraining(corpus, tmp_path / "out", config, init="bundled")
    assert more["recipe"]["init"] == "bundled"
    assert more["before"] == json.loads((BUNDLED / "backbone" / "pretraining.json").read_text())


def test_the_rate_warms_up_and_decays_to_nothing() -> None:
    config = PretrainConfig(tokens=100 * 4096, warmup=0.1, learning_rate=1.0)
    rates = [learning_rate(config, step) for step in range(config.steps)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(rates[10])
    assert rates[-1] == pytest.approx(1 / 90)
