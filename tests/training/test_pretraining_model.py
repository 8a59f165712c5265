"""The starting model: an encoder without masked-LM head gets one that starts at unigram probabilities."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pretraining_runs import CONFIG as NEW
from pretraining_runs import run_pretraining, write_corpus
from transformers import AutoModel, AutoTokenizer

from cse.encoder.backbone import load_backbone, mlm_head
from cse.training.pretraining import Training, evaluate, prepare
from cse.training.pretraining_data import PretrainRequest, TokenFile

CONFIG = replace(NEW, vocabulary=None)  # a model that is given keeps its pieces


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path)


def save_encoder(folder: str, target: Path) -> str:
    """The encoder of a model alone, as sentence-transformers saves it."""
    AutoModel.from_pretrained(folder, add_pooling_layer=False).save_pretrained(target)
    AutoTokenizer.from_pretrained(folder).save_pretrained(target)
    return str(target)


@pytest.fixture
def encoder(bert_folder: str, tmp_path: Path) -> str:
    return save_encoder(bert_folder, tmp_path / "encoder")


def prepared(corpus: Path, output: Path, init: str) -> Training:
    output.mkdir()
    return prepare(PretrainRequest([corpus], output, CONFIG, init=init))


def test_an_encoder_without_head_keeps_its_weights_and_gets_unigram_logits(corpus, tmp_path, encoder):
    setup = prepared(corpus, tmp_path / "out", encoder)
    original, model = load_backbone(encoder)[0].state_dict(), setup.model
    kept = model.base_model.state_dict()
    assert kept.keys() == original.keys()
    assert all(torch.equal(kept[name], tensor) for name, tensor in original.items())
    head, width = model.cls.predictions, model.config.hidden_size
    counts = np.array([np.sum(setup.sampler.corpus.ids == token) for token in range(model.config.vocab_size)]) + 0.5
    np.testing.assert_allclose(head.bias.detach().numpy(), np.log(counts / counts.sum()), rtol=1e-5)
    assert torch.equal(head.transform.dense.weight, torch.eye(width))
    assert head.decoder.weight is model.get_input_embeddings().weight
    hidden = torch.randn(3, width)
    mapped = torch.nn.functional.layer_norm(torch.nn.functional.gelu(hidden), (width,), eps=model.config.layer_norm_eps)
    expected = mapped @ original["embeddings.word_embeddings.weight"].T + head.bias
    torch.testing.assert_close(head(hidden), expected)


def test_frozen_layers_and_embeddings_stay_and_the_rest_learns(corpus, tmp_path, encoder):
    config = replace(CONFIG, frozen_layers=1, learning_rate=1e-2)
    run_pretraining(corpus, tmp_path / "out", config, init=encoder)
    before = load_backbone(encoder)[0].half().float().state_dict()  # as stored
    after = load_backbone(tmp_path / "out" / "model")[0].base_model.state_dict()
    changed = {name for name, tensor in after.items() if not torch.equal(tensor, before[name])}
    assert changed
    assert all(name.startswith("encoder.layer.1.") for name in changed)


def test_a_share_of_the_start_is_averaged_into_the_layers_and_the_result_is_scored(corpus, tmp_path, encoder):
    """Compared with the same run without it."""
    config = replace(CONFIG, learning_rate=1e-2)
    run_pretraining(corpus, tmp_path / "whole", config, init=encoder)
    trained, _ = load_backbone(tmp_path / "whole" / "model")
    start = load_backbone(encoder)[0].state_dict()
    config = replace(config, start_share=0.25)
    record = run_pretraining(corpus, tmp_path / "out", config, init=encoder, eval_every=6)
    averaged, tokenizer = load_backbone(tmp_path / "out" / "model")
    for name, tensor in averaged.base_model.state_dict().items():
        expected = 0.25 * start[name] + 0.75 * trained.base_model.state_dict()[name]
        torch.testing.assert_close(tensor, expected, atol=2e-3, rtol=2e-3)  # both stored in half precision
    head, trained_head = mlm_head(averaged).state_dict(), mlm_head(trained).state_dict()
    assert all(torch.equal(head[name], trained_head[name]) for name in head if "transform" in name)
    valid = TokenFile.open(tmp_path / "out" / "corpus", "valid")
    scores = evaluate(averaged, tokenizer, valid)
    assert record["averaged"]["held_out_loss"] == pytest.approx(scores["held_out_loss"], abs=2e-3)
    assert record["averaged"]["held_out_loss"] != record["curve"][-1]["held_out_loss"]


def test_a_blend_with_all_layers_frozen_teaches_the_head_alone(corpus, tmp_path, encoder):
    torch.manual_seed(1)
    other = AutoModel.from_pretrained(encoder, add_pooling_layer=False)
    for tensor in other.parameters():
        torch.nn.init.normal_(tensor, std=0.02)
    other.save_pretrained(tmp_path / "other")
    AutoTokenizer.from_pretrained(encoder).save_pretrained(tmp_path / "other")
    config = replace(CONFIG, frozen_layers=2, blend_share=0.3, learning_rate=1e-2)
    run_pretraining(corpus, tmp_path / "out", config, init=encoder, blend=str(tmp_path / "other"))
    first, second = (load_backbone(folder)[0].state_dict() for folder in (encoder, tmp_path / "other"))
    blended, _ = load_backbone(tmp_path / "out" / "model")
    for name, tensor in blended.base_model.state_dict().items():
        torch.testing.assert_close(tensor, (0.7 * first[name] + 0.3 * second[name]).half().float(), atol=2e-3, rtol=0)

    by_layer = replace(config, blend_share=(0.0, 0.25, 1.0), tokens=CONFIG.batch_tokens)  # embeddings, two layers
    run_pretraining(corpus, tmp_path / "layers", by_layer, init=encoder, blend=str(tmp_path / "other"))
    blended, _ = load_backbone(tmp_path / "layers" / "model")
    for name, tensor in blended.base_model.state_dict().items():
        share = 0.25 if ".layer.0." in name else 1.0 if ".layer.1." in name else 0.0
        average = ((1 - share) * first[name] + share * second[name]).half().float()
        torch.testing.assert_close(tensor, average, atol=2e-3, rtol=0)


def test_an_untied_decoder_learns_apart_from_the_embeddings_it_started_as(corpus, tmp_path):
    untied = run_pretraining(corpus, tmp_path / "untied", replace(NEW, untied=True, learning_rate=1e-2))
    tied = run_pretraining(corpus, tmp_path / "tied", NEW)
    model, same = (load_backbone(tmp_path / name / "model")[0] for name in ("untied", "tied"))
    words, decoder = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    assert same.get_output_embeddings().weight is same.get_input_embeddings().weight
    assert float((words - decoder).detach().abs().max()) > 1e-2
    assert untied["model"]["parameters"] == tied["model"]["parameters"] + words.numel() + len(words)  # matrix and bias
    head = model.cls.predictions
    hidden = torch.randn(3, 16)
    torch.testing.assert_close(mlm_head(model)(hidden), head.transform(hidden) @ decoder.T + head.decoder.bias)
