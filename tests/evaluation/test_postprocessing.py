"""Whitening against its definition and scikit-learn."""

import numpy as np
from conftest import SENTENCES
from sklearn.decomposition import PCA

import cse
from cse.evaluation.postprocessing import fit_whitening, whitened
from cse.evaluation.representations import Representation


def correlated(count: int, width: int, seed: int = 0) -> np.ndarray:
    """(count, width) float32 draws from one Gaussian with mixed scales and a mean."""
    generator = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).normal(size=(width, width)) * np.geomspace(0.1, 3, width)
    return (generator.normal(size=(count, width)) @ mixing + 5).astype(np.float32)


def test_whitening_is_scikit_learns_but_for_signs():
    vectors, others = correlated(200, 5), correlated(50, 5, seed=1)
    expected = PCA(whiten=True).fit(vectors.astype(np.float64)).transform(others)
    mean, matrix = fit_whitening(vectors)
    np.testing.assert_allclose(np.abs((others - mean) @ matrix), np.abs(expected), atol=1e-3)


def test_a_real_encoder_is_wrapped_and_its_own_numbers_count(bert_folder):
    encoder = cse.load(str(bert_folder), "mean")
    texts = [f"{first} and {second}" for first in SENTENCES for second in SENTENCES]
    made = whitened(encoder, texts)
    vectors = encoder.encode(texts)
    np.testing.assert_allclose(made.encode(SENTENCES[:2], batch_size=1), made.encode(SENTENCES[:2]), atol=1e-3)
    np.testing.assert_allclose(np.cov(made.encode(texts), rowvar=False), np.eye(made.encode(texts).shape[1]), atol=1e-3)
    assert made.name == "bert-mean+whitening"
    other = Representation("other", "1" * 12, lambda _, __: vectors)
    assert whitened(other, texts).fingerprint != made.fingerprint
