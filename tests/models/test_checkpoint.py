"""A checkpoint holds what was learned, loads as it was saved, and its own start opens again from its record."""

import json
import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SENTENCES, tiny_bert
from encoders import IN_FAMILIES, make
from huggingface_hub import constants
from released import into_cache
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

import cse
import cse.models.checkpoint
import cse.models.pipeline
import cse.models.push
from cse.encoder.backbone import describe, load_backbone
from cse.encoder.torch_encoder import TorchEncoder
from cse.errors import ArtefactError
from cse.evaluation.metrics import spearman
from cse.files.writing import LFS_SIGN
from cse.methods.presets import preset
from cse.models.checkpoint import read_checkpoint_config, save
from cse.models.config import Storage
from cse.models.loading import load, open_model
from cse.models.names import Kind, resolve


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_a_saved_checkpoint_gives_the_same_vectors_bit_for_bit(open_backbone, family, name, supervised, tmp_path):
    encoder = make(open_backbone(family), name, supervised)
    with torch.no_grad():
        for tensor in encoder.learned(training=True).values():
            tensor += 0.05 * torch.randn_like(tensor)
    save(encoder, tmp_path / "model", {})
    loaded = cse.load(str(tmp_path / "model"), backend="torch")
    np.testing.assert_array_equal(loaded.encode(SENTENCES), encoder.encode(SENTENCES))
    assert loaded.fingerprint == encoder.fingerprint
    assert (
        np.abs(loaded.encode(SENTENCES) - make(open_backbone(family), name, supervised).encode(SENTENCES)).max() > 1e-3
    )


def test_dcpcse_on_bert_base_stores_exactly_the_papers_294912_numbers(tmp_path):
    """Table 4's prompt length 16: 16 x 12 layers x 2 x 768. The vocabulary is small to keep the test light."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *["this", "sentence", ":", '"', "means", "."]]
    tokenizer = BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})
    model = BertForMaskedLM(BertConfig(vocab_size=len(pieces)))  # BERT-base's layers and width are the defaults
    assert (describe(model)["layers"], describe(model)["hidden"]) == (12, 768)
    method, _ = preset("dcpcse", "bert-base")
    save(TorchEncoder(model, tokenizer, method, name="dcpcse", backbone="none"), tmp_path / "model", {})
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    assert {name: tensor.numel() for name, tensor in tensors.items()} == {"prefix": 294_912}
    assert (tmp_path / "model" / "model.safetensors").stat().st_size < 1.2 * 2**20


def test_differences_are_never_taken_from_another_backbone(bert_folder, tmp_path):
    folder = Path(shutil.copytree(bert_folder, tmp_path / "backbone"))
    encoder = make(str(folder), "simcse")
    model, _ = load_backbone(folder)
    with torch.no_grad():
        model.get_input_embeddings().weight[7] += 1
    model.save_pretrained(folder)
    with pytest.raises(ArtefactError, match=r"changed since training began .* store float16"):
        save(encoder, tmp_path / "model", {}, storage=Storage.INT8)
    assert not (tmp_path / "model").exists()


@pytest.fixture
def checkpoint(bert_folder: Path, tmp_path: Path) -> Path:
    backbone = Path(shutil.copytree(bert_folder, tmp_path / "backbone"))
    save(make(str(backbone), "dcpcse"), tmp_path / "model", {})
    return tmp_path / "model"


def edit_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    config.pop("digest", None)  # as an earlier version wrote it
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def test_broken_checkpoints_are_refused_with_the_cure(checkpoint):
    def broken(change: object, message: str) -> None:
        copy = checkpoint.with_name("copy")
        shutil.copytree(checkpoint, copy)
        change(copy)
        with pytest.raises(ArtefactError, match=message):
            load(str(copy), backend="torch")
        shutil.rmtree(copy)

    weights = "model.safetensors"
    broken(lambda f: (f / weights).write_bytes((f / weights).read_bytes()[:200]), "damaged")
    broken(lambda f: (f / weights).write_bytes(LFS_SIGN), "run git lfs pull")
    broken(lambda f: (f / weights).unlink(), "no model.safetensors")
    broken(lambda f: save_file({"prefix": torch.zeros(1)}, f / weights), "its sha256 is not")
    broken(lambda f: edit_config(f, format=99), "checkpoint format 99")
    edit_config(checkpoint, sha256={})  # as an earlier version wrote it
    broken(lambda f: save_file({"prefix": torch.full((1,), torch.inf)}, f / weights), "prefix holds a number that is n")
    broken(lambda f: save_file({"prefix": torch.zeros(16, 3)}, f / weights), r"prefix is \(16, 3\)")


def test_a_changed_backbone_is_noticed(checkpoint, tmp_path):
    model, _ = load_backbone(tmp_path / "backbone")
    with torch.no_grad():
        model.get_input_embeddings().weight[7] += 1
    model.save_pretrained(tmp_path / "backbone")
    with pytest.raises(ArtefactError, match="but that is now"):
        load(str(checkpoint), backend="torch")


def test_a_checkpoint_on_a_hub_backbone_records_the_commit_and_opens_at_it(tmp_path, bert_folder):
    cache, first, second = Path(constants.HF_HUB_CACHE) / "models--me--base", "1" * 40, "2" * 40
    into_cache(bert_folder, cache.parent, "me/base", first)
    try:
        encoder = make("me/base", "promptbert")
        save(encoder, tmp_path / "run", {})
        assert read_checkpoint_config(tmp_path / "run").backbone.revision == first
        shutil.copytree(tiny_bert(tmp_path / "other", hidden=16), cache / "snapshots" / second)
        (cache / "refs" / "main").write_text(second)
        assert make("me/base", "promptbert").dim == 16
        assert cse.load(str(tmp_path / "run"), backend="torch").fingerprint == encoder.fingerprint
        assert load_backbone(bert_folder)[0].config._commit_hash is None
    finally:
        shutil.rmtree(cache)


DEV = [(float(number % 6), *pair) for number, pair in enumerate(combinations(SENTENCES, 2))]


@pytest.mark.parametrize(("method", "supervised"), [("dcpcse", False), ("promptbert", True)])
def test_a_start_scores_on_both_engines_what_training_measured_before_its_first_step(
    bert_folder, tmp_path, method, supervised
):
    texts = [(text, text, SENTENCES[0]) for text in SENTENCES[1:]] if supervised else SENTENCES
    summary = cse.train(
        method, texts, output=tmp_path / "run", backbone=bert_folder, dev=DEV, supervised=supervised,
        learning_rate=0.05, seed=7, batch_size=3, progress=False,
    )  # fmt: skip
    for backend in ("torch", "openvino"):
        opened = open_model(replace(resolve(str(tmp_path / "run")), kind=Kind.START), backend=backend)
        assert opened.name == "run-start"
        assert round(spearman(opened.encode, DEV), 3) == summary.start
    trained = load(str(tmp_path / "run"))
    assert np.abs(trained.encode(SENTENCES) - opened.encode(SENTENCES)).max() > 1e-4


def test_int8_checkpoints_hold_rounded_differences_from_the_backbone(bert_folder, tmp_path):
    """Each number lies within half a level of its row, and what the backbone does not have stays float16."""
    encoder = make(str(bert_folder), "promptbert", supervised=True)
    encoder.select_learned(freeze_embeddings=True)
    start = {name: tensor.detach().clone() for name, tensor in encoder.learned().items()}
    torch.manual_seed(0)
    with torch.no_grad():
        for tensor in encoder.learned().values():
            tensor += 0.01 * torch.randn_like(tensor)
    save(encoder, tmp_path / "model", {}, storage=Storage.INT8)
    for name, rounded in load(str(tmp_path / "model"), backend="torch").learned().items():
        original, bound = encoder.learned()[name].detach(), 1e-3
        if original.dim() == 2 and name.startswith("backbone."):
            bound = 0.5 * (original - start[name]).abs().amax(1, keepdim=True) / 127 + 1e-7
        assert bool(((rounded.detach() - original).abs() <= bound).all()), name
    stored = load_file(tmp_path / "model" / "model.safetensors")
    assert {tensor.dtype for key, tensor in stored.items() if key.endswith(".difference")} == {torch.int8}
