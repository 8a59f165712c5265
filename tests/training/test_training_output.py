"""The output folder of a run: nothing is lost without `overwrite`, and a killed run continues."""

import shutil
from pathlib import Path

import pytest
from test_encoder import make
from test_training import Killed, kill_after, losses, run_of

from cse.encoder.torch_encoder import TorchEncoder
from cse.files.replace import beside
from cse.files.writing import partial_folder, write_folder
from cse.models.checkpoint import LOG
from cse.training.loop import train


@pytest.fixture
def encoder(bert_folder: Path) -> TorchEncoder:
    return make(str(bert_folder), "dcpcse")


def stop(*_: object) -> None:
    raise Killed


def killed_run(encoder: TorchEncoder, output: Path, step: int) -> Path:
    """The unfinished run of 7 steps, killed after `step`; it saves a state every third."""
    with pytest.raises(Killed):
        train(encoder, run_of(encoder), output, report=kill_after(step))
    return partial_folder(output)


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


@pytest.mark.parametrize("folder", ["out", "out.partial"])
def test_what_appears_while_a_run_works_is_left_and_the_run_can_still_be_published(
    encoder: TorchEncoder, tmp_path: Path, folder: str
) -> None:
    def disturb(entry: dict) -> None:
        if entry["step"] == 7:
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / "notes.txt").write_text("mine")

    with pytest.raises(ValueError, match="already holds something" if folder == "out" else "holds notes.txt"):
        train(encoder, run_of(encoder), tmp_path / "out", report=disturb)
    assert (tmp_path / folder / "notes.txt").read_text() == "mine"
    (tmp_path / folder / "notes.txt").unlink()
    train(encoder, run_of(encoder), tmp_path / "out", resume=True)
    assert len(losses(tmp_path / "out")) == 7


def test_what_a_hard_kill_leaves_of_a_half_written_state_is_no_obstacle(encoder: TorchEncoder, tmp_path: Path) -> None:
    work = killed_run(encoder, tmp_path / "out", 4)
    for name in (".state.new-123", ".best.old-123"):
        (work / name).mkdir()
        (work / name / "learned.safetensors").write_bytes(b"half")
    train(encoder, run_of(encoder), tmp_path / "out", resume=True)
    assert len(losses(tmp_path / "out")) == 7
    assert not work.exists()


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


@pytest.mark.parametrize("left", ["all", "half", "mark", "nothing"])
def test_what_a_kill_leaves_once_the_checkpoint_is_there_goes_when_it_is_resumed(
    encoder: TorchEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    output, work = tmp_path / "out", tmp_path / "out.partial"
    with monkeypatch.context() as patched:
        patched.setattr("cse.training.output.FolderKind.delete", stop)
        with pytest.raises(Killed):
            train(encoder, run_of(encoder), output)
    for name in {"all": (), "half": ("best",), "mark": ("best", "state", LOG), "nothing": ("",)}[left]:
        shutil.rmtree(work / name) if (work / name).is_dir() else (work / name).unlink()
    work.mkdir(exist_ok=True)
    beside(output, "lock").touch()  # it stays where a kill follows the change of names
    before = losses(output)
    if left == "all":
        (work / "thesis.txt").write_text("mine")
        with pytest.raises(ValueError, match=r"holds thesis\.txt"):
            train(encoder, run_of(encoder), output, resume=True)
        (work / "thesis.txt").unlink()
    with pytest.raises(ValueError, match="already finished; there is nothing to resume"):
        train(encoder, run_of(encoder), output, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert losses(output) == before


@pytest.mark.parametrize("old", [False, True])
def test_a_run_killed_just_before_its_checkpoint_is_there_is_resumed(
    encoder: TorchEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    output = tmp_path / "out"
    if old:
        train(encoder, run_of(encoder), output)
    with monkeypatch.context() as patched:
        patched.setattr(
            "cse.training.output.write_folder",
            lambda folder, *args: stop() if folder == output else write_folder(folder, *args),
        )
        with pytest.raises(Killed):
            train(encoder, run_of(encoder, temperature=0.07), output, overwrite=old)
    train(encoder, run_of(encoder, temperature=0.07), output, resume=True, overwrite=old)
    assert not (tmp_path / "out.partial").exists()
    assert len(losses(output)) == 7
    assert '"temperature": 0.07' in (output / "config.json").read_text()


def test_a_loss_that_is_no_number_names_the_parameter(encoder: TorchEncoder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lower `learning_rate`"):
        train(encoder, run_of(encoder, temperature=float("nan")), tmp_path / "out")


def test_a_run_can_write_to_the_folder_it_is_started_in_but_not_to_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert partial_folder(Path(".")) == tmp_path / "here.partial"
    with pytest.raises(ValueError, match="give a folder with a name as `output`"):
        partial_folder(Path("/"))
