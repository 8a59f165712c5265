"""Compiled training passes: the losses and weights of passes that are not, few sizes, and one line where they fail."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from command_line import refused, run
from encoders import make
from safetensors.numpy import load_file
from torch._dynamo.testing import CompileCounterWithBackend
from training_runs import DEV, TEXTS, Killed, kill_after, losses, run_of

import cse
from cse.encoder import backbone
from cse.encoder.prompted_backbone import fixed_size
from cse.training import loop
from cse.training.loop import TrainingLoop, train
from cse.training.recipe import read_recipe
from cse.training.records import TrainingState

SAME = 1e-4  # of losses and weights, float32 sums in another order
# Attention does not depend on the first, nor a denoised vector on the last: AdamW scales the noise of their gradients.
UNDETERMINED = ("key.bias", "layer.1.output.LayerNorm.bias")


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[CompileCounterWithBackend]:
    """The count of what is compiled, by a backend that only traces."""
    counter = CompileCounterWithBackend("eager")
    monkeypatch.setattr(backbone, "BACKEND", counter)
    yield counter
    torch.compiler.reset()


def trained(folder: Path, name: str, output: Path, **settings: Any) -> tuple[list[float], dict[str, np.ndarray]]:
    """The losses and the saved weights of a run without dropout, whose draws depend on the width of a pass."""
    encoder = make(str(folder), name)
    train(encoder, run_of(encoder, dropout=0.0, **settings), output)
    assert not encoder.compiled
    (weights,) = output.glob("*.safetensors")
    return losses(output), load_file(weights)


def check_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert first.keys() == second.keys()
    for name in first:
        if not name.endswith(UNDETERMINED):
            np.testing.assert_allclose(second[name], first[name], rtol=SAME, atol=SAME, err_msg=name)


@pytest.mark.parametrize(
    ("name", "chunk"), [("promptbert", 4), *((name, None) for name in ("dcpcse", "conpvp", "esimcse", "consert"))]
)
def test_compiled_steps_are_those_that_are_not(bert_folder, name, chunk, tmp_path, compiler):
    expected, before = trained(bert_folder, name, tmp_path / "plain")  # `auto` is no on a CPU
    assert compiler.frame_count == 0
    measured, after = trained(bert_folder, name, tmp_path / "compiled", compile="yes", chunk=chunk)
    assert measured == pytest.approx(expected, rel=SAME)
    check_same(before, after)
    assert compiler.frame_count
    if not chunk:  # 7 steps with batches of 4: at most three widths of the sentences, and for two templates of biases
        assert compiler.frame_count <= (6 if name == "conpvp" else 3)


def test_a_killed_run_with_compiled_steps_resumes_to_the_same_weights(bert_folder, tmp_path, compiler):
    whole, killed = (make(str(bert_folder), "dcpcse") for _ in range(2))
    train(whole, run_of(whole, DEV, compile="yes"), tmp_path / "whole")
    with pytest.raises(Killed):
        train(killed, run_of(killed, DEV, compile="yes"), tmp_path / "killed", report=kill_after(5))
    again = make(str(bert_folder), "dcpcse")
    train(again, run_of(again, DEV, compile="yes"), tmp_path / "killed", resume=True)
    first, second = (tmp_path / name / "model.safetensors" for name in ("whole", "killed"))
    assert first.read_bytes() == second.read_bytes()


def test_sizes_are_few_and_pad_by_a_third_at_most():
    sizes = [fixed_size(size) for size in range(1, 513)]
    assert sorted(set(sizes)) == [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]
    assert all(size <= fixed <= max(16, 1.5 * size) for size, fixed in enumerate(sizes, 1))


def test_a_recipe_has_it_and_the_log_says_so(bert_folder, tmp_path, compiler, caplog):
    run_settings: dict[str, Any] = {"max_steps": 1, "batch_size": 4, "progress": False}
    cse.train("simcse", TEXTS, output=tmp_path / "one", backbone=bert_folder, compile="yes", **run_settings)
    assert "training passes are compiled" in caplog.text
    assert read_recipe(str(tmp_path / "one")).settings["compile"] == "yes"
    assert compiler.frame_count


@pytest.mark.parametrize(("steps", "line"), [(7, "not compiled: 7 steps are fewer"), (8, "are compiled")])
def test_a_long_run_on_a_gpu_is_compiled(bert_folder, monkeypatch, compiler, steps, line):
    monkeypatch.setattr(loop, "MIN_COMPILED_STEPS", 8)
    encoder = make(str(bert_folder), "simcse")
    notes: list[Any] = []
    accelerator: Any = SimpleNamespace(device=torch.device("cuda"))
    optimizer: Any = None  # no step is taken
    run = run_of(encoder, epochs=2, max_steps=steps)
    state: TrainingState = {"step": 0, "recipe": {}, "seconds": 0.0, "dev": {}}
    training = TrainingLoop(
        encoder, run, Path(), accelerator, encoder, optimizer, None, state, {}, run.examples.__getitem__
    )
    with training.compiled(notes.append):
        assert bool(encoder.compiled) is (steps == 8)
    assert line in notes[0]["note"]


def test_a_machine_without_a_compiler_is_refused_in_one_line(bert_folder, tmp_path, monkeypatch):
    def fail(graph: object, inputs: object) -> None:
        raise OSError("no C++ compiler")

    monkeypatch.setattr(backbone, "BACKEND", fail)
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS))
    words = ["simcse", "--backbone", bert_folder, "--data", texts, "--output", tmp_path / "out", "--compile"]
    refused(run("train", *words, "yes"), 3, "no C++ compiler", "--compile no")
    assert run("train", *words, "no", "--overwrite").exit_code == 0
