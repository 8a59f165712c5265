"""Model folders that travel: which files are read and copied, and that the copy opens as the original did."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from encoders import encoder_of, make
from model_files import POOLING, TRANSFORMER, with_pipeline, written_in_shards

import cse
from cse.models.checkpoint import save
from cse.models.config import Storage
from cse.models.export import export_model
from cse.models.names import resolve
from cse.models.push import copy_checkpoint, copy_model


def test_weights_that_lie_beside_those_recorded_are_neither_read_nor_copied(bert_folder: Path, tmp_path: Path) -> None:
    encoder = make(str(bert_folder), "simcse")
    with written_in_shards():
        save(encoder, tmp_path / "old", {}, storage=Storage.INT8)
    with torch.no_grad():
        for tensor in encoder.learned().values():
            tensor += 0.05 * torch.randn_like(tensor)
    save(encoder, tmp_path / "new", {})
    expected = encoder.encode(SENTENCES)
    shutil.copytree(tmp_path / "old", tmp_path / "both")
    shutil.copytree(tmp_path / "new", tmp_path / "both", dirs_exist_ok=True)
    np.testing.assert_array_equal(cse.load(str(tmp_path / "both"), backend="torch").encode(SENTENCES), expected)
    copy_checkpoint(tmp_path / "both", tmp_path / "copy")
    names = {path.name for path in (tmp_path / "copy").iterdir()}
    assert {"cse_checkpoint.json", "config.json", "model.safetensors"} < names
    assert not names & {"model.safetensors.index.json", "backbone"}
    np.testing.assert_array_equal(cse.load(str(tmp_path / "copy"), backend="torch").encode(SENTENCES), expected)


def test_a_checkpoint_trained_on_a_sentence_transformers_folder_travels(bert_folder: Path, tmp_path: Path) -> None:
    base = shutil.copytree(bert_folder, tmp_path / "base")
    with_pipeline(base, [TRANSFORMER, POOLING], {"pooling_mode_cls_token": True})
    encoder = make(str(base), "dcpcse")
    save(encoder, tmp_path / "mine", {})
    copy_checkpoint(tmp_path / "mine", tmp_path / "copy")
    shutil.rmtree(base)
    copy_checkpoint(tmp_path / "copy", tmp_path / "again")
    for name in ("copy", "again"):
        np.testing.assert_array_equal(
            cse.load(str(tmp_path / name), backend="torch").encode(SENTENCES), encoder.encode(SENTENCES)
        )


@pytest.mark.parametrize(
    ("method", "to"),
    [(name, "sentence-transformers") for name in ("conpvp", "dcpcse", "supervised")] + [("dcpcse", "peft")],
)
def test_an_export_travels_whole_and_names_no_place(bert_folder: Path, tmp_path: Path, method: str, to: str) -> None:
    export_model(encoder_of(bert_folder, method), to, tmp_path / "out")
    expected = cse.load(str(tmp_path / "out"), backend="torch")
    copy_model(resolve(str(tmp_path / "out")), tmp_path / "copy")
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    opened = cse.load(str(tmp_path / "copy"), backend="torch")
    np.testing.assert_array_equal(opened.encode(SENTENCES), expected.encode(SENTENCES))
    assert opened.fingerprint == expected.fingerprint
    texts = [path.read_bytes() for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert not any(str(bert_folder.parent).encode() in text for text in texts)
