"""Whitening against its definition and scikit-learn; the flow against its inverse, autograd and a likelihood."""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SENTENCES

import cse
from cse.evaluation.postprocessing import Flow, fit_flow, fit_whitening, flowed, whitened
from cse.evaluation.representations import Representation

WIDTHS = [2, 3, 5, 8, 13]


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


def by_length(count: int = 60) -> tuple[Representation, list[str]]:
    """An encoder with a random vector a text, and texts."""
    texts = [f"text {number}" for number in range(count)]
    table = dict(zip(texts, correlated(count, 4), strict=True))
    return Representation("table", "0" * 12, lambda batch, _: np.stack([table[text] for text in batch])), texts


def test_whitened_vectors_have_mean_zero_and_covariance_identity() -> None:
    vectors = correlated(200, 6)
    whitening = fit_whitening(vectors)
    whitened = whitening.transform(vectors)
    assert whitened.dtype == np.float32
    np.testing.assert_allclose(whitened.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(np.cov(whitened, rowvar=False), np.eye(6), atol=1e-4)
    others = correlated(50, 6, seed=1)
    np.testing.assert_allclose(whitening.transform(others), (others - vectors.mean(0)) @ whitening.matrix, atol=1e-3)


def test_whitening_is_scikit_learns_but_for_signs() -> None:
    from sklearn.decomposition import PCA

    vectors, others = correlated(200, 5), correlated(50, 5, seed=1)
    expected = PCA(whiten=True).fit(vectors.astype(np.float64)).transform(others)
    np.testing.assert_allclose(np.abs(fit_whitening(vectors).transform(others)), np.abs(expected), atol=1e-3)


def test_a_direction_without_variance_is_left_out_not_blown_up() -> None:
    vectors = correlated(200, 5)
    vectors -= vectors.mean(1, keepdims=True)  # as a layer norm leaves them
    whitened = fit_whitening(vectors).transform(vectors)
    assert whitened.shape == (200, 4)
    np.testing.assert_allclose(np.cov(whitened, rowvar=False), np.eye(4), atol=1e-4)


def test_too_few_vectors_and_equal_ones_are_refused() -> None:
    vectors = correlated(6, 6)
    with pytest.raises(ValueError, match="6 vectors have no covariance of 6 dimensions; fit on more texts"):
        fit_whitening(vectors)
    with pytest.raises(ValueError, match="vary in 0 directions"):
        fit_whitening(np.ones((20, 3), np.float32))
    with pytest.raises(ValueError, match="a flow needs at least 2 vectors, got 1; give more texts"):
        fit_flow(vectors[:1])


def undone(flow: Flow, z: torch.Tensor) -> torch.Tensor:
    """(B, width) -> (B, width), the inverse of the flow, each of its steps solved for its input."""
    sizes = [level[0].kept for level in flow.levels]
    *final, x = z.split([*sizes, z.shape[1] - sum(sizes)], 1)
    for level, half in zip(reversed(flow.levels), reversed(final), strict=True):
        x = torch.cat([half, x], 1)
        for step in reversed(level):
            kept, moved = x[:, : step.kept], x[:, step.kept :]
            columns = torch.cat([kept, moved - step.coupling(kept)], 1).T
            for factor in reversed(step.triangles()):
                columns = torch.linalg.solve(factor.double(), columns)
            x = columns.T[:, step.order.argsort()] * (-step.log_scale).exp() - step.shift
    return x


@pytest.mark.parametrize("width", WIDTHS)
def test_the_flow_is_undone_by_its_inverse(width: int) -> None:
    flow, x = random_flow(width), torch.randn(7, width, dtype=torch.float64)
    z = flow(x)
    assert (z - x).abs().max() > 0.1
    torch.testing.assert_close(undone(flow, z), x)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_log_determinant_is_the_jacobians(width: int) -> None:
    flow = random_flow(width)
    for x in torch.randn(3, width, dtype=torch.float64):
        jacobian = torch.autograd.functional.jacobian(lambda row: flow(row[None])[0], x)
        torch.testing.assert_close(torch.linalg.slogdet(jacobian).logabsdet, flow.log_determinant())


def test_the_log_likelihood_is_that_of_a_change_of_variables() -> None:
    flow, x = random_flow(5), torch.randn(4, 5, dtype=torch.float64)
    normal = torch.distributions.MultivariateNormal(torch.zeros(5).double(), torch.eye(5).double())
    torch.testing.assert_close(flow.log_likelihood(x), normal.log_prob(flow(x)) + flow.log_determinant())


def test_fitting_raises_the_likelihood_of_unseen_correlated_vectors() -> None:
    vectors, others = correlated(3000, 6), torch.from_numpy(correlated(500, 6, seed=1))
    independent = torch.distributions.Normal(torch.from_numpy(vectors.mean(0)), torch.from_numpy(vectors.std(0)))
    start = float(independent.log_prob(others).sum(1).mean())  # what activation norm alone reaches
    covariance = torch.from_numpy(np.cov(vectors, rowvar=False)).float()
    best = torch.distributions.MultivariateNormal(torch.from_numpy(vectors.mean(0)), covariance)
    limit = float(best.log_prob(others).mean())
    reached = float(fit_flow(vectors).log_likelihood(others).mean())
    assert start + 0.5 * (limit - start) < reached < limit + 0.1


def test_a_fit_depends_on_its_seed_alone() -> None:
    vectors = correlated(200, 6)
    torch.manual_seed(5)
    first = fit_flow(vectors, seed=1).transform(vectors)
    after = torch.rand(1)
    torch.manual_seed(6)
    np.testing.assert_array_equal(fit_flow(vectors, seed=1).transform(vectors), first)
    assert np.abs(fit_flow(vectors, seed=2).transform(vectors) - first).max() > 0.1
    torch.manual_seed(5)
    assert torch.equal(torch.rand(1), after)  # the caller's random numbers go on undisturbed


def test_wrapped_encoders_transform_what_the_encoder_gives() -> None:
    encoder, texts = by_length()
    vectors = encoder.encode(texts)
    np.testing.assert_array_equal(
        whitened(encoder, texts).encode(texts[:5]), fit_whitening(vectors).transform(vectors[:5])
    )
    np.testing.assert_array_equal(
        flowed(encoder, texts, seed=3).encode(texts[:5]), fit_flow(vectors, seed=3).transform(vectors[:5])
    )


def test_names_say_the_transform_and_fingerprints_its_numbers() -> None:
    encoder, texts = by_length()
    made = [
        whitened(encoder, texts), whitened(encoder, texts[:30]),
        flowed(encoder, texts), flowed(encoder, texts, seed=1), flowed(encoder, texts[:30]),
    ]  # fmt: skip
    assert [one.name for one in made] == [
        "table+whitening", "table+whitening", "table+flow", "table+flow", "table+flow",
    ]  # fmt: skip
    assert len({one.fingerprint for one in made}) == 5
    assert whitened(encoder, texts).fingerprint == made[0].fingerprint


def test_a_real_encoder_is_wrapped_and_its_own_numbers_count(bert_folder: Path) -> None:
    encoder = cse.load(str(bert_folder), "mean")
    texts = [f"{first} and {second}" for first in SENTENCES for second in SENTENCES]
    made = whitened(encoder, texts)
    vectors = encoder.encode(texts)
    np.testing.assert_allclose(made.encode(SENTENCES[:2], batch_size=1), made.encode(SENTENCES[:2]), atol=1e-3)
    np.testing.assert_allclose(np.cov(made.encode(texts), rowvar=False), np.eye(made.encode(texts).shape[1]), atol=1e-3)
    assert made.name == "bert-mean+whitening"
    other = Representation("other", "1" * 12, lambda _, __: vectors)
    assert whitened(other, texts).fingerprint != made.fingerprint
