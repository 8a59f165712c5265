"""The loop: learned and frozen parameters, losses by hand, resume, selection, several processes."""

import json
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import ROOT, SENTENCES
from encoders import IN_FAMILIES, make
from ports import free_port
from training_runs import CONFIG, DEV, TEXTS, Killed, OneProcess, kill_after, losses, run_of
from typer.testing import CliRunner

import cse
from cse.commands.train import app
from cse.encoder.backbone import set_dropout
from cse.errors import ArtefactError
from cse.evaluation.metrics import spearman
from cse.files.writing import partial_folder
from cse.models.config import Storage
from cse.models.loading import load
from cse.training.loop import train
from cse.training.step import contrast


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_frozen_parameters_do_not_move_by_a_bit_and_every_learned_one_does(
    open_backbone, family, name, supervised, tmp_path
):
    encoder = make(open_backbone(family), name, supervised)
    before = {key: tensor.detach().clone() for key, tensor in encoder.named_parameters()}
    learned = {id(tensor) for tensor in encoder.learned(training=True).values()}
    train(encoder, run_of(encoder, max_steps=2), tmp_path / "out")
    for key, tensor in encoder.named_parameters():
        cancels = key == "head.norm.bias" and supervised  # head(h) - head(bias) does not depend on it
        assert torch.equal(tensor, before[key]) == (cancels or id(tensor) not in learned), key


@pytest.mark.parametrize("name", ["dcpcse", "esimcse"])
def test_a_killed_run_resumes_to_the_result_of_an_uninterrupted_one(bert_folder, name, tmp_path):
    whole = make(str(bert_folder), name)
    summary = train(whole, run_of(whole, DEV), tmp_path / "whole")
    killed = make(str(bert_folder), name)
    with pytest.raises(Killed):
        train(killed, run_of(killed, DEV), tmp_path / "killed", report=kill_after(5))
    assert not (tmp_path / "killed").exists()
    fresh = make(str(bert_folder), name)
    with pytest.raises(ValueError, match="begun with storage float32, not float16; repeat that one"):
        train(fresh, run_of(fresh, DEV), tmp_path / "killed", resume=True, storage=Storage.FLOAT16)
    fresh = make(str(bert_folder), name)
    resumed = train(fresh, run_of(fresh, DEV), tmp_path / "killed", resume=True)
    assert losses(tmp_path / "killed") == pytest.approx(losses(tmp_path / "whole"), abs=1e-6)
    assert {k: getattr(resumed, k) for k in ("start", "best", "best_step")} == {
        k: getattr(summary, k) for k in ("start", "best", "best_step")
    }
    np.testing.assert_allclose(fresh.encode(SENTENCES), whole.encode(SENTENCES), atol=1e-6)
    copied = pickle.loads(pickle.dumps(whole))  # which the trainer has let go of
    np.testing.assert_allclose(copied.encode(SENTENCES), whole.encode(SENTENCES), atol=1e-6)
    assert not partial_folder(tmp_path / "killed").exists()


def test_a_model_that_collapses_is_not_selected(bert_folder, tmp_path):
    encoder = make(str(bert_folder), "simcse")

    def collapse(entry: dict) -> None:
        if entry["step"] == 5:
            with torch.no_grad():
                for tensor in encoder.parameters():
                    tensor.zero_()

    with pytest.raises(ValueError, match=r"all 12 pairs have the same cosine, .* step 6; lower `learning_rate`"):
        train(encoder, run_of(encoder, DEV), tmp_path / "out", report=collapse)
    kept = json.loads((partial_folder(tmp_path / "out") / "best" / "cse_checkpoint.json").read_text())
    assert kept["dev"]["best_step"] == 3


def test_another_recipe_is_refused(bert_folder, tmp_path):
    encoder = make(str(bert_folder), "dcpcse")
    with pytest.raises(Killed):
        train(encoder, run_of(encoder), tmp_path / "out", report=kill_after(4))
    with pytest.raises(ArtefactError, match=r"learning_rate: 0\.001 there, 0\.5 here"):
        train(encoder, run_of(encoder, learning_rate=0.5), tmp_path / "out", resume=True)


def test_the_best_dev_evaluation_is_kept_and_the_last_without_dev(bert_folder, tmp_path):
    encoder = make(str(bert_folder), "simcse")
    summary = train(encoder, run_of(encoder, DEV, learning_rate=0.01), tmp_path / "dev")
    scores = [json.loads(line).get("dev") for line in (tmp_path / "dev" / "train_log.jsonl").read_text().splitlines()]
    assert summary.best == max(score for score in scores if score is not None)
    assert spearman(cse.load(str(tmp_path / "dev"), backend="torch").encode, DEV) == pytest.approx(
        summary.best, abs=1e-3
    )
    blind = make(str(bert_folder), "simcse")
    train(blind, run_of(blind), tmp_path / "blind")
    np.testing.assert_array_equal(
        cse.load(str(tmp_path / "blind"), backend="torch").encode(SENTENCES), blind.encode(SENTENCES)
    )


def test_mixed_precision_leaves_the_loss_and_the_dev_vectors_in_float32(bert_folder, tmp_path):
    encoder = make(str(bert_folder), "promptbert")
    summary = train(encoder, run_of(encoder, DEV), tmp_path / "out", precision="bf16")
    loaded = cse.load(str(tmp_path / "out"), backend="torch")
    assert spearman(loaded.encode, DEV) == pytest.approx(summary.best, abs=1e-3)
    vectors = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16):
        mixed = contrast(vectors, 2, CONFIG, OneProcess())
    assert float(mixed) == pytest.approx(float(contrast(vectors, 2, CONFIG, OneProcess())), abs=1e-6)


def test_a_share_of_the_start_is_averaged_into_what_is_saved_and_not_into_what_is_trained(bert_folder, tmp_path):
    def trained(folder: str, **settings: float) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        torch.manual_seed(3)
        encoder = make(str(bert_folder), "conpvp")
        initial = {name: value.copy() for name, value in encoder.learned_arrays().items()}
        train(encoder, run_of(encoder, **settings), tmp_path / folder)
        return initial, load(str(tmp_path / folder), backend="torch").learned_arrays()

    initial, whole = trained("whole")
    _, saved = trained("averaged", start_share=0.25)
    assert whole.keys() == saved.keys()
    for name, value in whole.items():
        np.testing.assert_allclose(saved[name], 0.25 * initial[name] + 0.75 * value, atol=1e-6, err_msg=name)
    assert any(not np.allclose(saved[name], value, atol=1e-5) for name, value in whole.items())
    assert losses(tmp_path / "whole") == losses(tmp_path / "averaged")


def test_embeddings_can_stay_frozen_and_are_not_stored(bert_folder, tmp_path):
    encoder = make(str(bert_folder), "simcse")
    words = encoder.model.get_input_embeddings().weight.detach().clone()
    train(encoder, run_of(encoder, freeze_embeddings=True), tmp_path / "out")
    assert torch.equal(encoder.model.get_input_embeddings().weight, words)
    loaded = cse.load(str(tmp_path / "out"), backend="torch")
    np.testing.assert_array_equal(loaded.encode(SENTENCES), encoder.encode(SENTENCES))
    assert not any("word_embeddings" in name for name in loaded.learned())


def test_training_applies_the_dropout_it_records(bert_folder, tmp_path):
    """Every rate is the setting, the prefix's too, as in an encoder of a backbone with these rates."""
    applied, expected = make(str(bert_folder), "dcpcse"), make(str(bert_folder), "dcpcse")
    set_dropout(expected.model, 0.4)
    expected.dropout.p = 0.4
    train(applied, run_of(applied, dropout=0.4), tmp_path / "applied")
    train(expected, run_of(expected), tmp_path / "expected")
    assert {module.p for module in applied.modules() if isinstance(module, torch.nn.Dropout)} == {0.4}
    assert applied.model.config.hidden_dropout_prob == applied.model.config.attention_probs_dropout_prob == 0.4
    assert losses(tmp_path / "applied") == losses(tmp_path / "expected")


# Pairs of processes, forked when what all need is imported, which takes seconds. Each writes to a file what it says;
# the alarm ends one that waits for ever.
PAIRS = """
import json, os, signal, sys
import datasets, torch
from transformers import BertForMaskedLM
from cse.commands.train import app
from cse.training import loop

def raising(error):
    def raised(*args, **named):
        raise error
    return raised

FAILURES = {  # the process, and what fails there
    "loss": ("1", loop, "masked_language_loss", lambda *args: torch.tensor(float("nan"), requires_grad=True)),
    "publish": ("0", loop, "publish", raising(KeyboardInterrupt())),
}

for name, port, words in json.loads(sys.argv[1]):
    failing, *change = FAILURES.get(name, ("",))
    for rank in "01":
        if not os.fork():
            signal.alarm(300)
            os.environ.update(RANK=rank, LOCAL_RANK=rank, MASTER_PORT=port)
            said = os.open(f"{name}-{rank}.txt", os.O_WRONLY | os.O_CREAT)
            os.dup2(said, 1), os.dup2(said, 2)
            if rank == failing:
                setattr(*change)
            app([*words, "--output", name])
    print(name, *sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in "01"))
"""
ERRORS = {  # the one of the process that fails, with the exit codes of both
    "loss": ("the loss became nan at step 1; lower --learning-rate, and pass --overwrite", "3 3"),
    "publish": ("interrupted", "130 130"),
    "taken": ("taken already holds something; give another --output or pass --overwrite", "3 3"),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, 2026-11-26")
def test_two_processes_train_as_one_and_end_with_the_error_of_one(bert_folder, tmp_path):
    """Without dropout every process count must give the same losses: candidates and gradients are shared exactly."""
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("mine")
    common = ["--data", str(tmp_path / "texts.txt"), "--backbone", str(bert_folder), "--batch-size", "8"]
    good = ["promptbert", *common, "--learning-rate", "0.01", "--dropout", "0"]
    bad = ["dcpcse", *common, "--mlm-weight", "0.1", "--eval-every", "2"]
    alone = CliRunner().invoke(app, [*good, "--output", str(tmp_path / "one")])
    assert alone.stdout.count("steps: 3") == 1, alone.output
    pairs = [("two", str(free_port()), good)]
    pairs += [(name, str(free_port()), bad) for name in ERRORS]
    # What `accelerate launch` sets for each process; with --cpu and without MPI it starts one alone.
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "ACCELERATE_USE_CPU": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PAIRS, json.dumps(pairs)]
    ran = subprocess.run(command, cwd=tmp_path, env={**os.environ, **world}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    said = {name: [(tmp_path / f"{name}-{rank}.txt").read_text() for rank in "01"] for name in ("two", *ERRORS)}
    ended = dict(line.split(maxsplit=1) for line in ran.stdout.splitlines())
    assert ended == {"two": "0 0", **{name: codes for name, (_, codes) in ERRORS.items()}}, said["two"]
    assert "".join(said["two"]).count("steps: 3") == 1
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)
    for name, (error, _) in ERRORS.items():
        for text in said[name]:
            (line,) = re.findall("Error: (.*)", text)
            assert re.sub("^process [01]: ", "", line) == error
