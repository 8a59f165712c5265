"""Folders that others wrote: without a vocabulary, with code of their own, other heads, or prompts of no rows."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES
from released import noise
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import (
    AutoTokenizer,
    EuroBertConfig,
    EuroBertForMaskedLM,
    SqueezeBertConfig,
    SqueezeBertForMaskedLM,
)

import cse
from cse.errors import ArtefactError


def copied(folder: Path, target: Path, *left_out: str) -> Path:
    return Path(shutil.copytree(folder, target, ignore=shutil.ignore_patterns(*left_out)))


@pytest.mark.parametrize("left_out", [("tokenizer*", "vocab*", "merges*"), ("tokenizer.json", "vocab*", "merges*")])
def test_a_model_without_a_vocabulary_is_refused(backbone, tmp_path, left_out):
    """transformers makes a tokenizer of special tokens alone, to which every word is unknown."""
    with pytest.raises(ArtefactError, match="no vocabulary in it"):
        cse.load(str(copied(Path(backbone), tmp_path / "model", *left_out)))


def test_code_in_a_folder_never_runs(bert_folder, tmp_path, monkeypatch):
    folder, proof = copied(bert_folder, tmp_path / "model"), tmp_path / "ran"
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "strange", "auto_map": {"AutoConfig": "code.Config"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text(
        f"open({str(proof)!r}, 'w').close()\nfrom transformers import BertConfig\nclass Config(BertConfig):\n    pass\n"
    )
    monkeypatch.setattr("builtins.input", lambda *prompt: "y")  # to whoever asks
    with pytest.raises(ArtefactError, match="cannot open backbone"):
        cse.load(str(folder))
    assert not proof.exists()


def test_a_special_token_that_the_model_does_not_have_is_named(bert_folder, tmp_path):
    folder = copied(bert_folder, tmp_path / "model")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "mask_token": "[NEW]"}))
    with pytest.raises(ArtefactError, match=r"its tokenizer gives '\[NEW\]' the number 142, its model has 142 embed"):
        cse.load(str(folder))


def test_a_backbone_beside_a_head_of_another_task_is_the_plain_one(bert_folder, tmp_path):
    folder = copied(bert_folder, tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    head = {"classifier.weight": noise(1, 3, 32), "qa_outputs.bias": noise(2, 2)}
    save_file({**tensors, **head}, folder / "model.safetensors", {"format": "pt"})
    vectors = [cse.load(str(path)).encode(SENTENCES) for path in (bert_folder, folder)]
    np.testing.assert_array_equal(*vectors)


def test_a_prefix_learned_on_robertas_relative_opens_in_both_engines(roberta_folder, tmp_path):
    folder = Path(shutil.copytree(roberta_folder, tmp_path / "backbone"))
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "xlm-roberta", "architectures": ["XLMRobertaForMaskedLM"]}
    (folder / "config.json").write_text(json.dumps(config))
    output = tmp_path / "run"
    cse.train("dcpcse", SENTENCES, output=output, backbone=folder, max_steps=1, batch_size=4, progress=False)
    by_openvino, by_torch = (cse.load(str(output), backend=backend) for backend in ("openvino", "torch"))
    assert by_openvino.fingerprint == by_torch.fingerprint
    np.testing.assert_allclose(by_openvino.encode(SENTENCES), by_torch.encode(SENTENCES), atol=1e-5)


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def test_a_run_on_a_model_that_builds_a_pooler_opens_again(bert_folder, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    config = SqueezeBertConfig(vocab_size=len(tokenizer), embedding_size=32, **SIZES)
    SqueezeBertForMaskedLM(config).save_pretrained(tmp_path / "backbone")
    tokenizer.save_pretrained(tmp_path / "backbone")
    output = tmp_path / "run"
    cse.train(
        "simcse", SENTENCES, output=output, backbone=tmp_path / "backbone", max_steps=1, batch_size=4, progress=False
    )
    vectors = cse.load(str(output)).encode(SENTENCES)
    np.testing.assert_allclose(SentenceTransformer(str(output), device="cpu").encode(SENTENCES), vectors, atol=1e-5)


def test_words_that_no_folder_could_store_are_refused_before_they_are_learned(bert_folder, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    config = EuroBertConfig(
        vocab_size=len(tokenizer), num_key_value_heads=2, head_dim=16, mask_token_id=tokenizer.mask_token_id,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=None, eos_token_id=None, **SIZES,
    )  # fmt: skip
    EuroBertForMaskedLM(config).save_pretrained(tmp_path / "backbone")
    tokenizer.save_pretrained(tmp_path / "backbone")
    with pytest.raises(
        ValueError, match=r"conpvp learns words, .* is model\.embed_tokens\.weight; train promptbert or"
    ):
        cse.train("conpvp", SENTENCES, output=tmp_path / "run", backbone=tmp_path / "backbone", max_steps=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 3}, "asks for 3 layers, its weights have 2"),
        ({"vocab_size": 10**9}, "its vocab_size is 1,000,000,000"),
        ({"hidden_size": 142, "num_attention_heads": 1}, r"asks for [\d,]+ numbers, its weights have [\d,]+"),
        ({"hidden_size": "32"}, "its hidden_size is '32', not a number"),
    ],
    ids=str,
)
def test_sizes_beyond_the_weights_are_refused_before_a_module_is_built(
    bert_folder, tmp_path, monkeypatch, changes, message
):
    def built(*arguments: object, **options: object) -> None:
        raise AssertionError("a model of these sizes was made in memory")

    folder = copied(bert_folder, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    for name in ("BertModel", "BertForMaskedLM"):
        monkeypatch.setattr(f"transformers.{name}.from_pretrained", built)
    with pytest.raises(ArtefactError, match=message):
        cse.load(str(folder))
