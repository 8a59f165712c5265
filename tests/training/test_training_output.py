"""The output folder of a run: nothing is lost without `overwrite`, and a killed run continues."""

from pathlib import Path

import pytest
from encoders import make
from training_runs import run_of

from cse.encoder.torch_encoder import TorchEncoder
from cse.training.loop import train


@pytest.fixture
def encoder(bert_folder: Path) -> TorchEncoder:
    return make(str(bert_folder), "dcpcse")


def test_a_finished_checkpoint_is_replaced_only_with_overwrite(encoder: TorchEncoder, tmp_path: Path) -> None:
    output = tmp_path / "out"
    train(encoder, run_of(encoder), output)
    with pytest.raises(ValueError, match="already holds something; give another `output` or pass `overwrite`"):
        train(encoder, run_of(encoder), output)
    with pytest.raises(ValueError, match="already finished; there is nothing to resume"):
        train(encoder, run_of(encoder), output, resume=True)
    train(encoder, run_of(encoder), output, overwrite=True)
    (output / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds notes\.txt"):
        train(encoder, run_of(encoder), output, overwrite=True)
    assert (output / "notes.txt").read_text() == "mine"


def test_a_loss_that_is_no_number_names_the_parameter(encoder: TorchEncoder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lower `learning_rate`"):
        train(encoder, run_of(encoder, temperature=float("nan")), tmp_path / "out")
