"""Passes of many sentences, the last layer at one position: their rows, and the vectors of a plain pass a sentence."""

import pickle

import numpy as np
import pytest
import torch
from conftest import SENTENCES, WORDS
from encoders import IN_FAMILIES, make, reading
from torch._dynamo.testing import CompileCounterWithBackend

from cse.encoder import backbone as backbone_module
from cse.encoder import encoder as encoder_module
from cse.encoder import rows, torch_encoder
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.catalogue import UNTRAINED
from cse.methods.method import When

TEXTS = [
    *SENTENCES, "", "a", "dog " * 200,
    *(" ".join(np.random.default_rng(n).choice(WORDS, n % 23)) for n in range(30)),
]  # fmt: skip


def plain(encoder: TorchEncoder, texts: list[str]) -> np.ndarray:
    """(N, d) vectors of a pass for each text, in which every layer is computed everywhere."""
    template = encoder.views[0][0]
    with pytest.MonkeyPatch.context() as patch, encoder.inference():
        patch.setattr(encoder, "reads_at", False)
        encoder.forget_biases()
        rows = [encoder(encoder.rows_of([text], [template])) for text in texts]
        return torch.cat(rows).numpy()


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_every_method_gives_the_vectors_of_the_plain_path_in_any_order_and_batch(
    open_backbone, family, name, supervised
):
    encoder = make(open_backbone(family), name, supervised)
    expected = plain(encoder, TEXTS)
    encoder.forget_biases()
    for count in (0, 1, len(TEXTS)):
        np.testing.assert_allclose(encoder.encode(TEXTS[:count]), expected[:count], atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1], batch_size=3)[::-1], expected, atol=1e-5)
    assert np.isfinite(expected).all()
    assert np.abs(expected - expected[0]).max() > 1e-3


@pytest.mark.parametrize("name", sorted(UNTRAINED.keys() - {"pooler"}))
def test_every_pooling_gives_the_vectors_of_the_plain_path(bert_folder, name):
    encoder = reading(str(bert_folder), UNTRAINED[name])
    np.testing.assert_allclose(encoder.encode(TEXTS), plain(encoder, TEXTS), atol=1e-5)


def test_a_long_list_is_tokenised_and_encoded_in_bounded_parts(bert_folder, monkeypatch):
    encoder = reading(str(bert_folder), UNTRAINED["prompt"].replaced(denoise=When.ALWAYS))
    texts = (TEXTS * 5)[:200]
    expected = encoder.encode(texts)
    monkeypatch.setattr(encoder_module, "WINDOW", 32)
    monkeypatch.setattr(rows, "TOKENS", {"cpu": 120})
    read: list[tuple[int, ...]] = []  # rows and length of each pass
    encoder.model.base_model.embeddings.register_forward_hook(
        lambda *arguments: read.append(tuple(arguments[-1].shape[:2]))
    )
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    assert all(count * length <= 120 or count == 1 for count, length in read)
    assert len(read) > 200 / 32


@pytest.mark.parametrize("name", ["dcpcse", "conpvp"])
def test_a_long_list_is_compiled_once_for_all_sizes_after_its_first_part(bert_folder, name, monkeypatch):
    counter, encoder = CompileCounterWithBackend("eager"), make(str(bert_folder), name)
    texts = [text for text in TEXTS * 5 if text][:128]
    monkeypatch.setattr(encoder_module, "WINDOW", 32)
    expected = encoder.encode(texts)
    monkeypatch.setattr(backbone_module, "BACKEND", counter)
    for limit, value in {"COMPILED_AFTER": 70, "LONG_LIST": 32, "COMPILED_ON": ("cpu",)}.items():
        monkeypatch.setattr(torch_encoder, limit, value)
    np.testing.assert_array_equal(encoder.encode(texts[:64]), expected[:64])
    for text in texts[:10]:
        encoder.encode(text)
    assert counter.frame_count == 0
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    compiled = counter.frame_count
    assert 1 <= compiled <= 4  # without padding and with it, and so for biases, whatever the sizes
    np.testing.assert_allclose(encoder.encode(texts[7]), expected[7], atol=1e-5)  # one sentence waits for no compiler
    np.testing.assert_allclose(encoder.encode(texts[::-1])[::-1], expected, atol=1e-5)
    assert counter.frame_count == compiled
    torch.compiler.reset()


def test_a_list_is_encoded_where_nothing_can_be_compiled(bert_folder, monkeypatch, caplog):
    encoder = make(str(bert_folder), "simcse")
    expected = encoder.encode(TEXTS)
    monkeypatch.setattr(backbone_module, "BACKEND", lambda graph, inputs: 1 / 0)
    encoder.compiled[False] = backbone_module.compiled_run(dynamic=True, required=False)
    np.testing.assert_array_equal(encoder.encode(TEXTS), expected)
    assert caplog.text.count("passes are not compiled") == 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).encode(TEXTS), expected)
    torch.compiler.reset()
