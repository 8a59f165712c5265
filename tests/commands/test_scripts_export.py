"""scripts.export from the command line: what it writes, and each refusal as one line with its exit code."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from app_models import write_model
from index_corpus import build
from typer.testing import CliRunner, Result

import cse
from cse.commands import export

runner = CliRunner()


def run(*arguments: object) -> Result:
    return runner.invoke(export.app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> Path:
    return write_model(tmp_path_factory.mktemp("checkpoints") / "mine", bert_folder, "promptbert")


def test_a_checkpoint_is_written_and_read_back(checkpoint: Path, tmp_path: Path) -> None:
    done = run(checkpoint, "--to", "sentence-transformers", "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    sentences = ["a man is playing", "", "[MASK]"]
    expected = cse.load(str(checkpoint)).encode(sentences)
    np.testing.assert_allclose(cse.load(str(tmp_path / "out")).encode(sentences), expected, atol=1e-6)


def test_an_index_becomes_a_table_with_its_map(tmp_path: Path) -> None:
    build(tmp_path / "index", "Flat", 30)
    done = run(tmp_path / "index", "--to", "parquet", "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    table = pd.read_parquet(tmp_path / "out" / "index.parquet")
    assert table[["x", "y"]].to_numpy().min() >= 0
    assert table[["x", "y"]].to_numpy().max() <= 1
    assert table["x"].nunique() == 30


def test_a_large_index_has_no_map_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path / "index", "Flat", 30)
    monkeypatch.setattr(export, "MAX_MAPPED_SENTENCES", 29)
    done = run(tmp_path / "index", "--to", "parquet", "--output", tmp_path / "out")
    assert "no x and y: a map of more than 29 sentences takes too long" in done.output
    assert list(pd.read_parquet(tmp_path / "out" / "index.parquet")) == ["row", "text", "vector"]


def test_refusals_are_one_line_and_leave_nothing(checkpoint: Path, tmp_path: Path) -> None:
    build(tmp_path / "index", "Flat", 30)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    for arguments, code, reason in (
        ((checkpoint, "--to", "gguf"), 2, "unknown form 'gguf'; choose from sentence-transformers, peft, onnx"),
        ((checkpoint, "--to", "peft"), 3, "mine is not a prefix on a frozen backbone"),
        ((tmp_path / "index", "--to", "onnx"), 3, "is an index; give --to as one of datasets, parquet, projector"),
        ((tmp_path / "index", "--to", "parquet", "--pooling", "cls"), 3, "leave out --pooling"),
        ((checkpoint, "--to", "datasets"), 4, "not an index folder"),
        (("absent", "--to", "onnx"), 4, "no model 'absent'"),
    ):
        done = run(*arguments, "--output", tmp_path / "out")
        assert done.exit_code == code, done.output
        assert reason in " ".join(done.output.replace("│", " ").split())
        assert not (tmp_path / "out").exists()
    done = run(checkpoint, "--to", "sentence-transformers", "--output", tmp_path / "full", "--overwrite")
    assert done.exit_code == 3
    assert "holds notes.txt, which is no part of an export; move it away" in done.output
    assert (tmp_path / "full" / "notes.txt").read_text() == "mine"
