"""The folder of a trained model in other tools: the same vectors, without its backbone, and after further training."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ROOT, SENTENCES
from datasets import Dataset
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

import cse
from cse.encoder.backbone import load_backbone
from cse.errors import ArtefactError
from cse.models.checkpoint import read_checkpoint_config
from cse.models.config import CardFacts
from cse.models.names import resolve
from cse.models.push import copy_model, stage_checkpoint

CLOSE = 1e-5
TEXTS = [*SENTENCES[:3], "", " ", "the [MASK] <mask> [SEP] </s> [P0] cat", "a\x00b  dog ", "the cat is eating " * 40]
TRIPLETS = [(text, text, SENTENCES[0]) for text in SENTENCES]
READ_AT_MASK = ("promptbert", "conpvp")


def train(method: str, output: Path, backbone: object, **options: object) -> Path:
    """Train two steps; `simcse+` is the supervised form."""
    data = TRIPLETS if method.endswith("+") else SENTENCES * 2
    settings = {"max_steps": 2, "batch_size": 4, "learning_rate": 1e-3, "seed": 3, "progress": False}
    cse.train(method.rstrip("+"), data, output=output, backbone=str(backbone), **{**settings, **options})
    return output


def sentence_transformer(folder: Path) -> object:
    return SentenceTransformer(str(folder), device="cpu")


@pytest.mark.parametrize(
    ("family", "method"),
    [("bert", "simcse+"), ("bert", "promptbert"), ("roberta", "conpvp")],
)
def test_a_run_opens_in_every_tool_after_it_was_moved_and_its_backbone_deleted(open_backbone, family, method, tmp_path):
    base = Path(shutil.copytree(open_backbone(family), tmp_path / "base"))
    encoder = cse.load(str(train(method, tmp_path / "run", base)), backend="torch")
    expected, logits = encoder.encode(TEXTS), encoder.mask_logits(SENTENCES[0])[0]
    folder = (tmp_path / "run").rename(tmp_path / "moved")
    shutil.rmtree(base)
    for backend in ("openvino", "torch"):
        opened = cse.load(str(folder), backend=backend)
        assert (opened.backend, opened.fingerprint) == (backend, encoder.fingerprint)
        np.testing.assert_allclose(opened.encode(TEXTS), expected, atol=CLOSE)
        np.testing.assert_allclose(opened.mask_logits(SENTENCES[0])[0], logits, atol=1e-4)
    np.testing.assert_allclose(sentence_transformer(folder).encode(TEXTS), expected, atol=CLOSE)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    space = " " if json.loads((folder / "config.json").read_text())["cse"]["spaced"] else ""
    inputs = tokenizer([space + text for text in TEXTS], padding=True, truncation=True, return_tensors="pt")
    at = (inputs["input_ids"] == tokenizer.mask_token_id).int().argmax(1)
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder).eval()(**inputs).last_hidden_state[torch.arange(len(TEXTS)), at]
        words = AutoModelForMaskedLM.from_pretrained(folder).eval()(**inputs).logits[0, at[0]]
    if method != "simcse+":  # whose head is a module of sentence-transformers
        np.testing.assert_allclose(states.numpy(), expected, atol=CLOSE)
    if method in READ_AT_MASK:
        np.testing.assert_allclose(words[: len(logits)].numpy(), logits, atol=1e-4)
        assert float(words.argmax()) < len(logits)  # a learned slot is never predicted


@pytest.mark.parametrize(("family", "method"), [("roberta", "promptbert"), ("bert", "simcse+")])
def test_a_run_that_is_trained_further_in_sentence_transformers_opens_again(family, method, tmp_path, request):
    folder = train(method, tmp_path / "run", request.getfixturevalue(f"{family}_folder"))
    before, model = cse.load(str(folder)).encode(TEXTS), sentence_transformer(folder)
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path / "log"), max_steps=3, learning_rate=1e-2, per_device_train_batch_size=4, save_strategy="no",
        report_to=[], disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    pairs = Dataset.from_dict({"first": SENTENCES, "second": SENTENCES[1:] + SENTENCES[:1]})
    SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=pairs, loss=MultipleNegativesRankingLoss(model)
    ).train()
    expected = model.encode(TEXTS)
    assert np.abs(expected - before).max() > 0.01
    for target in (tmp_path / "new", folder):  # the second one replaces the run's own files
        model.save(str(target))
        for backend in ("openvino", "torch"):
            opened = cse.load(str(target), backend=backend)
            np.testing.assert_allclose(opened.encode(TEXTS), expected, atol=CLOSE)
            np.testing.assert_allclose(opened.encode_query(TEXTS), model.encode_query(TEXTS), atol=CLOSE)
        assert opened.max_seq_length == model.max_seq_length
    assert cse.load(str(folder), "mean").method.name == "mean"  # the backbone alone
    copy_model(resolve(str(folder)), tmp_path / "copy")
    np.testing.assert_allclose(cse.load(str(tmp_path / "copy")).encode(TEXTS), expected, atol=CLOSE)
    with pytest.raises(ArtefactError, match="another tool has saved it again"):
        stage_checkpoint(folder, tmp_path / "staged", CardFacts())


def test_what_sentence_transformers_cannot_compute_it_refuses_and_the_card_says_why(bert_folder, tmp_path):
    base = Path(shutil.copytree(bert_folder, tmp_path / "base"))
    folder = train("promptbert+", tmp_path / "run", base)
    assert "subtracts its template's bias" in (folder / "README.md").read_text()
    expected = cse.load(str(folder), backend="torch").encode(TEXTS)
    shutil.rmtree(base)
    np.testing.assert_allclose(cse.load(str(folder), backend="openvino").encode(TEXTS), expected, atol=CLOSE)
    assert AutoModelForMaskedLM.from_pretrained(folder).config.vocab_size == len(AutoTokenizer.from_pretrained(folder))
    with pytest.raises(ValueError, match=r"OnlyHere|cannot compute this model's vectors"):
        sentence_transformer(folder)


@pytest.mark.parametrize("method", ["dcpcse", "optiprompt"])
def test_a_small_checkpoint_moves_together_with_its_backbone(bert_folder, tmp_path, method):
    (tmp_path / "here").mkdir()
    shutil.copytree(bert_folder, tmp_path / "here" / "base")
    folder = train(method, tmp_path / "here" / "runs" / "one", tmp_path / "here" / "base")
    expected = cse.load(str(folder)).encode(SENTENCES)
    (tmp_path / "here").rename(tmp_path / "there")
    moved = tmp_path / "there" / "runs" / "one"
    np.testing.assert_array_equal(cse.load(str(moved)).encode(SENTENCES), expected)
    shutil.rmtree(tmp_path / "there" / "base")
    with pytest.raises(ArtefactError, match=r"its backbone .*here/base is missing; restore that folder"):
        cse.load(str(moved))


def test_differences_in_floats_are_nearly_exact_in_half_the_space(bert_folder, tmp_path):
    train("promptbert", tmp_path / "whole", bert_folder)
    train("promptbert", tmp_path / "delta", bert_folder, storage="delta")
    vectors = [cse.load(str(tmp_path / name)).encode(SENTENCES) for name in ("whole", "delta")]
    np.testing.assert_allclose(*vectors, atol=1e-4)
    stored = load_file(tmp_path / "delta" / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    assert not (tmp_path / "delta" / "cse_checkpoint.json").exists()


def test_a_run_is_the_backbone_of_the_next_one(backbone, tmp_path):
    """Its slots are no words of it, so that the second run may have slots of its own."""
    first = train("conpvp", tmp_path / "first", backbone)
    opened, source = load_backbone(first), load_backbone(backbone)
    assert opened[0].config.vocab_size == source[0].config.vocab_size
    assert opened[1].get_vocab() == source[1].get_vocab()
    learned = cse.load(str(first), backend="torch").learned_arrays()
    for name, tensor in opened[0].base_model.named_parameters():
        np.testing.assert_array_equal(tensor.detach().numpy(), learned[f"backbone.{name}"])
    second = train("conpvp", tmp_path / "second", first)
    assert read_checkpoint_config(second).backbone.name == str(first)
    small = train("dcpcse", tmp_path / "small", first)
    copy_model(resolve(str(small)), tmp_path / "copy")
    expected, prefixed = cse.load(str(second)).encode(TEXTS), cse.load(str(small)).encode(TEXTS)
    shutil.rmtree(first)
    np.testing.assert_allclose(cse.load(str(tmp_path / "copy")).encode(TEXTS), prefixed, atol=CLOSE)
    np.testing.assert_allclose(sentence_transformer(second).encode(TEXTS), expected, atol=CLOSE)


def test_a_checkpoint_of_an_earlier_version_opens_as_before():
    """It was written before runs became whole folders: learned tensors in float32 and its backbone in a subfolder."""
    support = ROOT / "tests" / "support"
    stored = json.loads((support / "stored_vectors.json").read_text())
    for backend in ("openvino", "torch"):
        opened = cse.load(str(support / "stored_checkpoint"), backend=backend)
        assert opened.fingerprint == stored["fingerprint"]
        np.testing.assert_allclose(opened.encode(stored["texts"]), stored["vectors"], atol=CLOSE)


def test_a_pipeline_that_was_changed_is_refused(bert_folder, tmp_path):
    folder = train("promptbert", tmp_path / "run", bert_folder)
    model = sentence_transformer(folder)
    model.save(str(tmp_path / "weighted"))
    file = tmp_path / "weighted" / "1_WordWeights" / "model.safetensors"
    weights = load_file(file)["emb_layer.weight"]
    save_file({"emb_layer.weight": weights + 1e-3 * weights.max()}, file)
    with pytest.raises(ArtefactError, match="its weights are not of the mask alone"):
        cse.load(str(tmp_path / "weighted"))
    del model[1]
    model.save(str(tmp_path / "shorter"))
    with pytest.raises(ArtefactError, match=r"its modules .* are not those of .* promptbert"):
        cse.load(str(tmp_path / "shorter"))
