"""Models that travel: copied to another folder, or pushed to a hub on loopback and opened by name and by commit."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from app_models import write_model
from command_line import ran, run
from conftest import SENTENCES
from encoders import encoder_of
from hub_stand_in import hub_at_hand
from huggingface_hub import ModelCard
from model_files import run_card
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer

import cse
from cse.errors import ArtefactError
from cse.files import hub
from cse.models.checkpoint import save
from cse.models.config import Storage
from cse.models.export import export_model
from cse.models.names import BUNDLED, resolve
from cse.models.push import copy_model
from index import BuildSettings, VectorIndex


def push(*words: object, code: int = 0) -> str:
    done = run("push", *words)
    assert done.exit_code == code, done.output
    return done.stderr if code else done.stdout


@pytest.fixture
def at_hand(tmp_path, monkeypatch):
    with hub_at_hand(monkeypatch, tmp_path / "cache") as standing:
        yield standing


def test_what_is_pushed_is_what_opening_it_needs_and_names_no_place(at_hand, tmp_path, bert_folder):
    mine = write_model(tmp_path / "mine", bert_folder, "dcpcse")
    (mine / "notes.txt").write_text("private")
    push(mine, "me/prefix")
    _, files = at_hand.find("models/me/prefix", "main")
    backbone = {f"backbone/{path.name}" for path in bert_folder.iterdir()}
    assert files.keys() == {"README.md", "config.json", "model.safetensors"} | backbone
    assert not any(str(bert_folder.parent).encode() in content for content in files.values())
    assert b'"./backbone"' in files["config.json"]


def test_a_checkpoint_of_the_bundled_backbone_leaves_it_to_the_reader(at_hand, tmp_path):
    push(BUNDLED / "dcpcse", "me/dcpcse", "--dataset", "me/text", "--dataset", "me/more")
    _, files = at_hand.find("models/me/dcpcse", "main")
    assert files.keys() == {"README.md", "config.json", "model.safetensors", "train_log.jsonl"}
    opened = cse.load("me/dcpcse")
    np.testing.assert_array_equal(opened.encode(SENTENCES), cse.load("dcpcse").encode(SENTENCES))

    text = files["README.md"].decode()
    card = ModelCard(text).data
    assert (card.base_model, card.license) == ("sentence-transformers/all-MiniLM-L6-v2", "apache-2.0")
    assert card.datasets == ["me/text", "me/more"]
    recorded = json.loads((BUNDLED / "dcpcse" / "config.json").read_text())
    (result,) = card.eval_results
    assert (result.metric_type, result.metric_value) == ("spearman_cosine", recorded["dev"]["best"])
    (tmp_path / "README.md").write_text(text)
    pair = ["A man is playing a guitar.", "Someone plays an instrument."]
    one, other = opened.encode(pair, normalize_embeddings=True)
    assert float(run_card(tmp_path)) == pytest.approx(float(one @ other), abs=1e-6)


def test_a_dry_run_lists_the_files_of_the_upload_and_asks_no_hub(tmp_path, bert_folder):
    mine = write_model(tmp_path / "mine", bert_folder, "dcpcse")
    encoder = cse.load(str(mine))
    settings = BuildSettings(model=str(mine), fingerprint=encoder.fingerprint, corpus="text.txt")
    VectorIndex.build([(SENTENCES, encoder.encode(SENTENCES))], tmp_path / "index", settings=settings)
    for folder, name, options in ((mine, "me/mine", ()), (tmp_path / "index", "me/texts", ("--model", "me/mine"))):
        listing = json.loads(push(folder, name, *options, "--dry-run", "--json"))
        with pytest.MonkeyPatch.context() as patch, hub_at_hand(patch, tmp_path / name) as standing:
            push(folder, name, *options)
        kind = "models" if folder == mine else "datasets"
        _, files = standing.find(f"{kind}/{name}", "main")
        assert listing["files"] == {path: len(content) for path, content in files.items()}
        assert "nothing was uploaded" in push(folder, name, *options, "--dry-run")


def test_a_pushed_checkpoint_opens_by_name_and_by_commit_also_when_its_branch_goes_on(at_hand, tmp_path, bert_folder):
    first = write_model(tmp_path / "first", bert_folder, "dcpcse", seed=1)
    second = write_model(tmp_path / "second", bert_folder, "dcpcse", seed=2)
    commit = re.search(r"me/prefix@(\w+)", push(first, "me/prefix", "--private"))[1]
    assert at_hand.created[0]["visibility"] == "private"
    push(second, "me/prefix")
    for name, folder in (("me/prefix", second), (f"me/prefix@{commit}", first)):
        np.testing.assert_array_equal(cse.load(name).encode(SENTENCES), cse.load(str(folder)).encode(SENTENCES))
    push(first, "me/prefix", "--revision", "older")
    assert cse.load("me/prefix@older").fingerprint == cse.load(str(first)).fingerprint
    with pytest.raises(ArtefactError, match="me/prefix has no revision 'nosuch'; give one of its commits"):
        cse.load("me/prefix@nosuch")
    with hub.cache_alone():  # what was opened once needs no network
        assert cse.load(f"me/prefix@{commit}").fingerprint == cse.load(str(first)).fingerprint


def test_a_push_replaces_the_files_of_the_push_before_and_leaves_those_of_others(at_hand, tmp_path, bert_folder):
    encoder = cse.load(str(write_model(tmp_path / "first", bert_folder, "simcse")), backend="torch")
    save(encoder, tmp_path / "mine", {}, storage=Storage.INT8)
    push(tmp_path / "mine", "me/changed")
    at_hand.commit("models/me/changed", "main", {"figure.png": b"drawn", "models/model.safetensors": b"of others"})
    _, earlier = at_hand.find("models/me/changed", "main")
    with torch.no_grad():
        for tensor in encoder.learned().values():
            tensor.add_(torch.randn_like(tensor) * 0.05)
    save(encoder, tmp_path / "mine", {})
    push(tmp_path / "mine", "me/changed")
    opened = cse.load("me/changed", backend="torch")
    np.testing.assert_array_equal(opened.encode(SENTENCES), encoder.encode(SENTENCES))
    _, files = at_hand.find("models/me/changed", "main")
    assert earlier.keys() - files.keys() == {name for name in earlier if name.startswith("backbone/")} != set()
    assert files.keys() - earlier.keys() > {"cse_checkpoint.json", "1_Pooling/config.json"}


def test_a_pushed_index_is_searched_by_name_with_the_model_pushed_before(at_hand, tmp_path, bert_folder):
    mine = write_model(tmp_path / "mine", bert_folder, "dcpcse")
    encoder = cse.load(str(mine))
    settings = BuildSettings(model=str(mine), fingerprint=encoder.fingerprint, corpus="text.txt")
    VectorIndex.build([(SENTENCES, encoder.encode(SENTENCES))], tmp_path / "index", settings=settings)
    push(mine, "me/prefix")
    assert "; push that and give its id as --model" in push(tmp_path / "index", "me/texts", code=3)
    commit = re.search(r"me/texts@(\w+)", push(tmp_path / "index", "me/texts", "--model", "me/prefix"))[1]
    _, files = at_hand.find("datasets/me/texts", "main")
    assert files.keys() == {"README.md", "index.faiss", "manifest.json", "texts.arrow"}
    assert "7 sentences" in files["README.md"].decode()
    for name in ("me/texts", f"me/texts@{commit}"):
        hits = json.loads(ran("search", name, SENTENCES[0], "-k", 2, "--json").stdout)
        vectors = encoder.encode(SENTENCES, normalize_embeddings=True)
        best = np.argsort(-vectors @ vectors[0])[:2]
        assert [hit["text"] for hit in hits] == [SENTENCES[row] for row in best]
    ran("export", "me/texts", "--to", "parquet", "--output", tmp_path / "exported")
    assert pd.read_parquet(tmp_path / "exported" / "index.parquet")["text"].tolist() == SENTENCES


def test_a_training_is_pushed_when_it_is_done(at_hand, tmp_path, bert_folder):
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    options = ["--data", tmp_path / "text.txt", "--backbone", bert_folder, "--output", tmp_path / "out"]
    done = ran("train", "dcpcse", *options, "--max-steps", 1, "--push-to-hub", "me/trained")
    assert "me/trained@" in done.stdout
    assert cse.load("me/trained").fingerprint == cse.load(str(tmp_path / "out")).fingerprint


def test_what_no_reader_could_open_is_not_pushed(at_hand, tmp_path, bert_folder):
    base = Path(shutil.copytree(bert_folder, tmp_path / "base"))
    mine = write_model(tmp_path / "mine", base, "dcpcse")
    torch.save(load_file(base / "model.safetensors"), base / "pytorch_model.bin")
    (base / "model.safetensors").unlink()
    assert "its weights are a pickle, which is not copied" in push(mine, "me/prefix", code=4)
    modules = [Transformer(str(bert_folder)), Pooling(32, "mean"), Dense(32, 4)]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "dense"))
    (weights,) = (tmp_path / "dense").glob("2_Dense/model.safetensors")
    torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
    weights.unlink()
    with pytest.raises(ArtefactError, match="its weights are a pickle, which is not copied"):
        copy_model(resolve(str(tmp_path / "dense")), tmp_path / "copy")
    shutil.rmtree(base)
    assert f"its backbone {base} is missing" in push(mine, "me/prefix", code=4)
    assert not at_hand.created


def test_without_a_token_or_a_hub_nothing_begins(at_hand, tmp_path, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    assert "no token for the model hub" in push(tmp_path, "me/prefix", code=4)
    monkeypatch.setattr(hub, "reachable", lambda: False)
    assert "the model hub cannot be reached" in push(tmp_path, "me/prefix", code=4)


@pytest.mark.parametrize(("method", "to"), [("dcpcse", "sentence-transformers"), ("dcpcse", "peft")])
def test_an_export_travels_whole_and_names_no_place(bert_folder, tmp_path, method, to):
    export_model(encoder_of(bert_folder, method), to, tmp_path / "out")
    expected = cse.load(str(tmp_path / "out"), backend="torch")
    copy_model(resolve(str(tmp_path / "out")), tmp_path / "copy")
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    opened = cse.load(str(tmp_path / "copy"), backend="torch")
    np.testing.assert_array_equal(opened.encode(SENTENCES), expected.encode(SENTENCES))
    assert opened.fingerprint == expected.fingerprint
    texts = [path.read_bytes() for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert not any(str(bert_folder.parent).encode() in text for text in texts)
