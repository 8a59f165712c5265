"""Passes of many sentences, the last layer at one position: their rows, and the vectors of a plain pass a sentence."""

import numpy as np
import pytest
import torch
from conftest import SENTENCES, WORDS
from encoders import IN_FAMILIES, make, reading

from cse.encoder import encoder as encoder_module
from cse.encoder import rows
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


def test_a_long_list_that_is_encoded_in_parts_has_the_same_vectors(bert_folder, monkeypatch):
    encoder = reading(str(bert_folder), UNTRAINED["prompt"].replaced(denoise=When.ALWAYS))
    texts = (TEXTS * 5)[:200]
    expected = encoder.encode(texts)
    monkeypatch.setattr(encoder_module, "WINDOW", 32)
    monkeypatch.setattr(rows, "TOKENS", {"cpu": 120})
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
