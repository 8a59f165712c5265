"""The output folder of a run: nothing is lost without `overwrite`, and a killed run continues."""

from pathlib import Path

import pytest
from encoders import make
from training_runs import killed_run, losses, run_of

from cse.encoder.torch_encoder import TorchEncoder
from cse.training.loop import train


@pytest.fixture
def encoder(bert_folder: Path) -> TorchEncoder:
    return make(str(bert_folder), "dcpcse")


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_foreign_folder_is_refused_before_any_work(encoder: TorchEncoder, tmp_path: Path, overwrite: bool) -> None:
    steps: list[dict] = []
    for folder in ("out", "other.partial"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "thesis.txt").write_text("mine")
    for output in (tmp_path / "out", tmp_path / "other"):
        with pytest.raises(ValueError, match="holds thesis.txt" if overwrite or output.name == "other" else "already"):
            train(encoder, run_of(encoder), output, overwrite=overwrite, report=steps.append)
    assert not steps
    assert (tmp_path / "out" / "thesis.txt").exists()
    assert (tmp_path / "other.partial" / "thesis.txt").exists()


def test_an_unfinished_run_is_kept_until_told_to_go_on_or_to_drop_it(encoder: TorchEncoder, tmp_path: Path) -> None:
    work = killed_run(encoder, tmp_path / "out", 4)
    with pytest.raises(
        ValueError, match=r"out\.partial holds an unfinished run; pass `resume` to go on or `overwrite`"
    ):
        train(encoder, run_of(encoder), tmp_path / "out")
    assert (work / "state" / "meta.json").exists()
    steps: list[int] = []
    train(encoder, run_of(encoder), tmp_path / "out", overwrite=True, report=lambda entry: steps.append(entry["step"]))
    assert steps == [1, 2, 3, 4, 5, 6, 7]
    assert not work.exists()


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


def test_a_run_killed_before_its_first_state_begins_again_and_says_so(
    encoder: TorchEncoder, bert_folder: Path, tmp_path: Path
) -> None:
    killed_run(encoder, tmp_path / "out", 1)
    entries: list[dict] = []
    fresh = make(str(bert_folder), "dcpcse")
    train(fresh, run_of(fresh), tmp_path / "out", resume=True, report=entries.append)
    assert entries[0]["step"] == 0
    assert "no saved state; the run starts again" in entries[0]["note"]
    assert [entry["step"] for entry in entries[1:]] == [1, 2, 3, 4, 5, 6, 7]
    whole = make(str(bert_folder), "dcpcse")
    train(whole, run_of(whole), tmp_path / "whole")
    assert losses(tmp_path / "out") == pytest.approx(losses(tmp_path / "whole"), abs=1e-6)


def test_a_loss_that_is_no_number_names_the_parameter(encoder: TorchEncoder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lower `learning_rate`"):
        train(encoder, run_of(encoder, temperature=float("nan")), tmp_path / "out")
