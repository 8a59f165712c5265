"""Vectors and words of OpenVINO against those of PyTorch: every method, pooling and head, in any batch."""

import json
import os
import subprocess
import sys
from threading import Thread

import numpy as np
import pytest
import torch
from bf16 import openvino_has_bf16
from conftest import ROOT, SENTENCES
from encoders import IN_FAMILIES, make
from transformers import AutoModel, AutoTokenizer

import cse
from cse.encoder.backbone import load_backbone
from cse.encoder.devices import in_precision
from cse.encoder.openvino_encoder import OpenVinoEncoder
from cse.encoder.torch_encoder import TorchEncoder
from cse.errors import ArtefactError
from cse.methods.catalogue import UNTRAINED

TEXTS = [*SENTENCES, "", " ", "[MASK]", "a", "the dog " * 60, "naïve Ünïcode 中文 \x00 \ud800", "the [CLS] cat"]


def both(encoder: TorchEncoder) -> tuple[TorchEncoder, OpenVinoEncoder]:
    """An encoder with changed weights, and the same on OpenVINO."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for tensor in encoder.learned().values():
            tensor.add_(0.05 * torch.randn(tensor.shape, generator=generator))
    other = OpenVinoEncoder.open(encoder.backbone, encoder.method, name=encoder.name, backbone=encoder.backbone)
    for name, array in encoder.learned_arrays().items():
        np.copyto(other.learned_arrays()[name], array)
    return encoder, other


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_vectors_words_and_fingerprints_of_every_method_are_pytorchs(open_backbone, family, name, supervised):
    ours, other = both(make(open_backbone(family), name, supervised))
    np.testing.assert_allclose(other.encode(TEXTS), ours.encode(TEXTS), atol=1e-5)
    assert other.fingerprint == ours.fingerprint
    for theirs, own in zip(other.mask_logits(SENTENCES[0]), ours.mask_logits(SENTENCES[0]), strict=True):
        np.testing.assert_allclose(theirs, own, atol=1e-5)
    assert (other.learned_count, other.parameter_count) == (ours.learned_count, ours.parameter_count)
    assert other.max_seq_length == ours.max_seq_length


@pytest.mark.parametrize("pooling", [name for name in UNTRAINED if name != "pooler"])
def test_vectors_of_every_pooling_are_pytorchs(bert_folder, pooling):
    ours, other = (cse.load(str(bert_folder), pooling, backend=backend) for backend in ("torch", "openvino"))
    assert (ours.backend, other.backend) == ("torch", "openvino")
    np.testing.assert_allclose(other.encode(TEXTS), ours.encode(TEXTS), atol=1e-5)
    assert other.fingerprint == ours.fingerprint
    words = [encoder.top_tokens(SENTENCES[0], 3) for encoder in (ours, other)]
    assert [word for word, _ in words[0]] == [word for word, _ in words[1]]


@pytest.mark.parametrize("size", [3, None])
def test_a_vector_is_the_same_in_a_batch_of_any_size_and_order(bert_folder, size):
    encoder = cse.load(str(bert_folder), backend="openvino")
    alone = np.array([encoder.encode(text) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=size), alone, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1], batch_size=size)[::-1], alone, atol=1e-5)


def test_threads_share_an_encoder(bert_folder):
    encoder = cse.load(str(bert_folder), "prompt-denoised", backend="openvino")
    expected = cse.load(str(bert_folder), "prompt-denoised", backend="torch").encode(TEXTS)
    results: list[np.ndarray] = []
    threads = [Thread(target=lambda: results.append(encoder.encode(TEXTS))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for vectors in results:
        np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize(("precision", "least"), [("bf16", 0.9995), ("int8", 0.995)])
def test_vectors_of_lower_precision_are_near_and_the_fingerprint_is_the_same(precision, least):
    exact = cse.load("simcse", backend="openvino")
    expected = exact.encode(SENTENCES)
    encoder = in_precision(cse.load("simcse", backend="openvino"), precision)
    vectors = encoder.encode(SENTENCES)
    cosines = (vectors * expected).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > least
    if precision != "bf16" or openvino_has_bf16():
        assert cosines.min() < 0.9999999
    assert vectors.dtype == np.float32
    assert encoder.fingerprint == exact.fingerprint


def test_int8_is_refused_on_pytorch(bert_folder):
    with pytest.raises(ValueError, match="`precision` int8 needs OpenVINO; open the model with `backend` openvino"):
        in_precision(cse.load(str(bert_folder), backend="torch"), "int8")


def test_a_model_without_a_head_has_vectors_but_no_words(bert_folder, tmp_path):
    model, tokenizer = load_backbone(bert_folder)
    model.base_model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    encoder = cse.load(str(tmp_path), "mean", backend="openvino")
    np.testing.assert_allclose(
        encoder.encode(SENTENCES), cse.load(str(tmp_path), "mean", backend="torch").encode(SENTENCES), atol=1e-5
    )
    with pytest.raises(ArtefactError, match="has no masked-language-model head"):
        encoder.top_tokens("the dog")


def test_a_stored_pooler_is_pytorchs(backbone, tmp_path):
    torch.manual_seed(5)
    model, tokenizer = AutoModel.from_pretrained(backbone).eval(), AutoTokenizer.from_pretrained(backbone)
    model.save_pretrained(tmp_path)  # with a new pooler
    tokenizer.save_pretrained(tmp_path)
    with torch.no_grad():
        expected = [model(**tokenizer(text, return_tensors="pt")).pooler_output[0].numpy() for text in SENTENCES]
    ours, other = (cse.load(str(tmp_path), "pooler", backend=backend) for backend in ("torch", "openvino"))
    np.testing.assert_allclose(ours.encode(SENTENCES), expected, atol=1e-5)
    np.testing.assert_allclose(other.encode(SENTENCES), expected, atol=1e-5)
    assert other.fingerprint == ours.fingerprint
    with pytest.raises(ArtefactError, match="its files hold no pooler"):
        cse.load(backbone, "pooler", backend="torch")


def test_what_openvino_cannot_run_is_opened_by_pytorch_or_refused_in_one_line(bert_folder, tmp_path):
    model, tokenizer = load_backbone(bert_folder)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "hidden_act": "gelu_new"}))
    assert cse.load(str(tmp_path), "mean").backend == "torch"
    with pytest.raises(ValueError, match=r"OpenVINO cannot run it \(its activation is gelu_new\)"):
        cse.load(str(tmp_path), "mean", backend="openvino")


def test_openvino_tells_nobody_that_it_is_used(bert_folder, tmp_path):
    """Its package of telemetry would write an id into the home folder, and send it with each import and conversion."""
    code = f"""
import sys
sys.addaudithook(lambda event, _: sys.exit(event) if event in ("socket.connect", "socket.getaddrinfo") else None)
import cse
cse.load("bundled").encode(["a"])
from transformers import AutoModel
from cse.encoder.converted_graph import converted_graph
converted_graph(AutoModel.from_pretrained({str(bert_folder)!r}))
"""
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "TF_BUILD", "JENKINS_URL")}
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env={**kept, **home}, capture_output=True, text=True)
    assert (done.returncode, "socket." in done.stderr) == (0, False), done.stderr
    assert not (tmp_path / "intel").exists()


def test_a_wrong_backend_or_device_is_refused(bert_folder):
    with pytest.raises(ValueError, match="`backend` is 'onnx'; choose from auto, torch, openvino"):
        cse.load(str(bert_folder), backend="onnx")
    with pytest.raises(ValueError, match="`device` is 'cuda', but OpenVINO runs on the CPU"):
        cse.load(str(bert_folder), backend="openvino").encode("a dog", device="cuda")
