"""Whitening against its definition and scikit-learn; the flow against its inverse, autograd and a likelihood."""

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from sklearn.decomposition import PCA

import cse
from cse.evaluation.postprocessing import Flow, fit_flow, fit_whitening, whitened
from cse.evaluation.representations import Representation


def correlated(count: int, width: int, seed: int = 0) -> np.ndarray:
    """(count, width) float32 draws from one Gaussian with mixed scales and a mean."""
    generator = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).normal(size=(width, width)) * np.geomspace(0.1, 3, width)
    return (generator.normal(size=(count, width)) @ mixing + 5).astype(np.float32)


def random_flow(width: int) -> Flow:
    torch.manual_seed(1)
    flow = Flow(width).double()
    for parameter in flow.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return flow.requires_grad_(False)


def test_whitening_is_scikit_learns_but_for_signs():
    vectors, others = correlated(200, 5), correlated(50, 5, seed=1)
    expected = PCA(whiten=True).fit(vectors.astype(np.float64)).transform(others)
    mean, matrix = fit_whitening(vectors)
    np.testing.assert_allclose(np.abs((others - mean) @ matrix), np.abs(expected), atol=1e-3)


@pytest.mark.parametrize("width", [2, 5])
def test_the_log_determinant_is_the_jacobians(width):
    flow = random_flow(width)
    for x in torch.randn(3, width, dtype=torch.float64):
        jacobian = torch.autograd.functional.jacobian(lambda row: flow(row[None])[0], x)
        torch.testing.assert_close(torch.linalg.slogdet(jacobian).logabsdet, flow.log_determinant())


def test_fitting_raises_the_likelihood_of_unseen_correlated_vectors():
    vectors, others = correlated(3000, 6), torch.from_numpy(correlated(500, 6, seed=1))
    independent = torch.distributions.Normal(torch.from_numpy(vectors.mean(0)), torch.from_numpy(vectors.std(0)))
    start = float(independent.log_prob(others).sum(1).mean())  # what activation norm alone reaches
    covariance = torch.from_numpy(np.cov(vectors, rowvar=False)).float()
    best = torch.distributions.MultivariateNormal(torch.from_numpy(vectors.mean(0)), covariance)
    limit = float(best.log_prob(others).mean())
    reached = float(fit_flow(vectors).log_likelihood(others).mean())
    assert start + 0.5 * (limit - start) < reached < limit + 0.1


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
