"""Nothing that was damaged is used in silence: checkpoints, saved states, tokenised text and the training log."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from encoders import make
from pretraining_runs import CONFIG, run_pretraining, write_corpus
from safetensors.torch import load_file, save_file
from training_runs import Killed, kill_after, killed_run, losses, run_of

import cse.models.names
from cse.encoder.backbone import load_backbone
from cse.encoder.torch_encoder import TorchEncoder
from cse.errors import ArtefactError
from cse.files import checksums
from cse.files.weights import check_finite
from cse.files.writing import partial_folder
from cse.models.checkpoint import save
from cse.models.config import Storage
from cse.models.loading import load
from cse.training.loop import train
from cse.training.output import publish

DEV = [(float(grade), SENTENCES[grade], SENTENCES[(3 * grade + 1) % 7]) for grade in range(6)]


@pytest.fixture
def encoder(bert_folder: Path) -> TorchEncoder:
    return make(str(bert_folder), "dcpcse")


def flip(path: Path, at: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_a_checkpoint_records_the_sha256_of_its_weights_and_opens_without_the_record(bert_folder, tmp_path):
    encoder = make(str(bert_folder), "promptbert")
    save(encoder, tmp_path / "model", {}, storage=Storage.FLOAT16)
    recorded = json.loads((tmp_path / "model" / "cse_checkpoint.json").read_text())["sha256"]
    paths = {path.relative_to(tmp_path / "model").as_posix(): path for path in (tmp_path / "model").rglob("*.*")}
    files = {name: path for name, path in paths.items() if name not in ("README.md", "cse_checkpoint.json")}
    assert {"model.safetensors", "tokenizer.json", "1_WordWeights/model.safetensors"} < files.keys()
    assert recorded == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    vectors = load(str(tmp_path / "model")).encode(SENTENCES)
    record = tmp_path / "model" / "cse_checkpoint.json"  # of an earlier version, which recorded no checksums
    config = json.loads(record.read_text())
    del config["sha256"], config["digest"]
    record.write_text(json.dumps(config))
    np.testing.assert_array_equal(load(str(tmp_path / "model")).encode(SENTENCES), vectors)


def test_one_changed_bit_of_any_file_of_weights_is_refused(bert_folder, tmp_path):
    save(make(str(bert_folder), "promptbert"), tmp_path / "model", {})
    for name in json.loads((tmp_path / "model" / "cse_checkpoint.json").read_text())["sha256"]:
        shutil.copytree(tmp_path / "model", tmp_path / "copy")
        flip(tmp_path / "copy" / name)
        with pytest.raises(ArtefactError, match=name) as caught:
            load(str(tmp_path / "copy"))
        assert "\n" not in str(caught.value)
        shutil.rmtree(tmp_path / "copy")
    assert load(str(tmp_path / "model"))


def test_a_damaged_state_is_not_gone_on_from(encoder, tmp_path):
    """In the form of an earlier version, without checksums, its tensors are searched for NaN."""
    state = killed_run(encoder, tmp_path / "out", 4) / "state"
    for name in ("learned.safetensors", "optimizer.safetensors", "meta.json", "checksums.json"):
        flip(state / name, at=-3)
        with pytest.raises(ArtefactError, match=r"out\.partial/state/.*damaged") as caught:
            train(encoder, run_of(encoder), tmp_path / "out", resume=True)
        assert "\n" not in str(caught.value)
        flip(state / name, at=-3)
    (state / "checksums.json").unlink()
    for file in (state / "optimizer.safetensors", state / "learned.safetensors"):
        whole, tensors = file.read_bytes(), load_file(file)
        key = min(tensors)
        tensors[key].view(-1)[0] = torch.nan
        save_file(tensors, file)
        with pytest.raises(ArtefactError, match=rf"{key} holds a number that is not finite; delete it and start again"):
            train(encoder, run_of(encoder), tmp_path / "out", resume=True)
        file.write_bytes(whole)


def test_a_log_that_does_not_reach_the_saved_state_is_noticed(encoder, tmp_path):
    log = killed_run(encoder, tmp_path / "out", 4) / "train_log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([lines[0], *lines[2:]]))
    with pytest.raises(ArtefactError, match=r"train_log\.jsonl: lacks steps before 3.*delete it to continue without"):
        train(encoder, run_of(encoder), tmp_path / "out", resume=True)
    log.unlink()
    train(encoder, run_of(encoder), tmp_path / "out", resume=True)
    assert len(losses(tmp_path / "out")) == 4


def test_damage_of_a_pretraining_is_not_trained_on_and_its_model_opens_as_written_or_not_at_all(tmp_path):
    corpus, out = write_corpus(tmp_path), tmp_path / "out"
    run_pretraining(corpus, out, CONFIG)
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        assert load_backbone(out / "model")
        flip(out / "model" / name, at=-3)
        with pytest.raises(ArtefactError, match=rf"{name}: damaged .*; copy it again"):
            load_backbone(out / "model")
        flip(out / "model" / name, at=-3)
    flip(out / "model" / "model.safetensors", at=-3)
    (out / "model" / "checksums.json").unlink()  # a folder of others has none
    assert load_backbone(out / "model")
    for name in ("train.ids", "train.starts", "valid.ids", "valid.starts", "tokenizer.json"):
        (file,) = out.glob(f"[ct]o*/{name}")  # of the corpus or the tokenizer
        flip(file, at=-3)
        with pytest.raises(ArtefactError, match=rf"{file.name}: damaged .*; delete its folder to have it made again"):
            run_pretraining(corpus, out, CONFIG, overwrite=True)
        flip(file, at=-3)
    flip(file, at=-3)
    shutil.rmtree(file.parent)
    run_pretraining(corpus, out, CONFIG, overwrite=True)


def test_large_finite_numbers_are_no_damage():
    """Their sum is infinite in the tensor's own type."""
    check_finite({"large": np.full(9, 6e4, np.float16)}, "x", "y")
    for value in (torch.nan, torch.inf, -torch.inf):
        with pytest.raises(ArtefactError, match="x: odd holds a number that is not finite; y"):
            check_finite({"whole": np.arange(3), "odd": np.array([0.0, value, -value])}, "x", "y")


def test_a_changed_setting_in_a_checkpoints_config_is_noticed_and_a_moved_backbone_is_not(
    encoder, bert_folder, tmp_path
):
    save(encoder, tmp_path / "model", {})
    vectors = load(str(tmp_path / "model")).encode(SENTENCES)
    file = tmp_path / "model" / "config.json"
    written = file.read_text()
    file.write_text(written.replace('"prefix": 4', '"prefix": 3').replace('"seed"', '"sead"'))
    assert file.read_text() != written
    with pytest.raises(ArtefactError, match=r"model: config.json: damaged .*; train it again"):
        load(str(tmp_path / "model"))
    shutil.copytree(bert_folder, tmp_path / "moved")
    file.write_text(written.replace(str(bert_folder), str(tmp_path / "moved")))
    np.testing.assert_array_equal(load(str(tmp_path / "model")).encode(SENTENCES), vectors)


def test_a_run_does_not_publish_a_damaged_best_checkpoint(bert_folder, tmp_path):
    encoder = make(str(bert_folder), "dcpcse")
    run = run_of(encoder, dev=DEV)
    with pytest.raises(Killed):
        train(encoder, run, tmp_path / "out", report=kill_after(4))
    best = partial_folder(tmp_path / "out") / "best"
    flip(best / "model.safetensors")
    with pytest.raises(ArtefactError, match=r"best.*start the run again with `overwrite`"):
        publish(best.parent, tmp_path / "out", False, {"best_step": 6}, (), "")
    with pytest.raises(ArtefactError, match=r"best.*start the run again with `overwrite`"):
        train(encoder, run, tmp_path / "out", resume=True)
    assert not (tmp_path / "out").exists()


def test_the_bundled_backbone_carries_the_checksums_of_its_files():
    folder = Path(cse.models.names.location("bundled"))
    recorded = json.loads((folder / "checksums.json").read_text())
    assert recorded == checksums.checksums(folder)
    assert recorded.keys() == {path.name for path in folder.iterdir()} - {"checksums.json", "README.md"}
