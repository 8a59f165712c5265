"""Compiled training passes: the losses and weights of passes that are not, few sizes, and one line where they fail."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import refused, run
from encoders import make
from safetensors.numpy import load_file
from torch._dynamo.testing import CompileCounterWithBackend
from training_runs import TEXTS, losses, run_of

from cse.encoder import backbone
from cse.training.loop import train

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


@pytest.mark.parametrize(("name", "chunk"), [("promptbert", 4), ("conpvp", None)])
def test_compiled_steps_are_those_that_are_not(bert_folder, name, chunk, tmp_path, compiler):
    expected, before = trained(bert_folder, name, tmp_path / "plain")  # `auto` is no on a CPU
    assert compiler.frame_count == 0
    measured, after = trained(bert_folder, name, tmp_path / "compiled", compile="yes", chunk=chunk)
    assert measured == pytest.approx(expected, rel=SAME)
    check_same(before, after)
    assert compiler.frame_count
    if not chunk:  # 7 steps with batches of 4: at most three widths of the sentences, and for two templates of biases
        assert compiler.frame_count <= 6


def test_a_machine_without_a_compiler_is_refused_in_one_line(bert_folder, tmp_path, monkeypatch):
    def fail(graph: object, inputs: object) -> None:
        raise OSError("no C++ compiler")

    monkeypatch.setattr(backbone, "BACKEND", fail)
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS))
    words = ["simcse", "--backbone", bert_folder, "--data", texts, "--output", tmp_path / "out", "--compile"]
    refused(run("train", *words, "yes"), 3, "no C++ compiler", "--compile no")
    assert run("train", *words, "no", "--overwrite").exit_code == 0
