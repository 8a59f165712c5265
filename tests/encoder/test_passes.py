"""Passes of many sentences, the last layer at one position: the vectors of one plain pass a sentence."""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SENTENCES, WORDS
from test_encoder import DISTINCT, make, reading

from cse.encoder import encoder as encoder_module
from cse.encoder import torch_encoder
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
        rows = [encoder([ids], [template]) for ids in encoder.tokenise(texts, [template] * len(texts))]
        return torch.cat(rows).numpy()


@pytest.mark.parametrize(("name", "supervised"), DISTINCT)
def test_every_method_gives_the_vectors_of_the_plain_path_in_any_order_and_batch(
    backbone: str, name: str, supervised: bool
) -> None:
    encoder = make(backbone, name, supervised)
    expected = plain(encoder, TEXTS)
    encoder.forget_biases()
    for count in (0, 1, len(TEXTS)):
        np.testing.assert_allclose(encoder.encode(TEXTS[:count]), expected[:count], atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1], batch_size=3)[::-1], expected, atol=1e-5)
    assert np.isfinite(expected).all()
    assert np.abs(expected - expected[0]).max() > 1e-3


@pytest.mark.parametrize("name", sorted(UNTRAINED.keys() - {"pooler"}))
def test_every_pooling_gives_the_vectors_of_the_plain_path(bert_folder: Path, name: str) -> None:
    encoder = reading(str(bert_folder), UNTRAINED[name])
    np.testing.assert_allclose(encoder.encode(TEXTS), plain(encoder, TEXTS), atol=1e-5)


def counted_queries(encoder: TorchEncoder) -> list[int]:
    """The positions that the last layer's attention asks from, of every pass from now on."""
    seen: list[int] = []
    query = encoder.model.base_model.encoder.layer[-1].attention.self.query
    query.register_forward_hook(lambda module, inputs, output: seen.append(output.shape[:2].numel()))
    return seen


def test_the_last_layer_is_computed_where_it_is_read(backbone: str) -> None:
    for pooling, asked in (("cls", 1), ("prompt", 1), ("mean", 6)):
        encoder = reading(backbone, UNTRAINED[pooling])
        ids = [7, 8, 9, 10]
        seen = counted_queries(encoder)
        encoder.encode_ids([ids])
        assert seen == [asked], pooling


def test_a_long_list_is_tokenised_and_encoded_in_bounded_parts(bert_folder, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = reading(str(bert_folder), UNTRAINED["prompt"].replaced(denoise=When.ALWAYS))
    texts = (TEXTS * 5)[:200]
    expected = encoder.encode(texts)
    monkeypatch.setattr(encoder_module, "WINDOW", 32)
    monkeypatch.setattr(torch_encoder, "TOKENS", {"cpu": 120})
    read: list[tuple[int, ...]] = []  # rows and length of each pass
    encoder.model.base_model.embeddings.register_forward_hook(
        lambda *arguments: read.append(tuple(arguments[-1].shape[:2]))
    )
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    assert all(rows * length <= 120 or rows == 1 for rows, length in read)
    assert len(read) > 200 / 32


def test_batch_size_is_the_most_sentences_of_a_pass(bert_folder, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = reading(str(bert_folder), UNTRAINED["cls"])
    told: list[int] = []
    encoder.encode_ids([[5, 6]] * 10, 4, told.append)
    assert told == [4, 4, 2]
    told.clear()
    encoder.encode_ids([[5, 6]] * 10, None, told.append)
    assert told == [10]
