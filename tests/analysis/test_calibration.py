"""Percentiles mean the same in every model: random pairs come out uniform, whatever their cosines are."""

import numpy as np
import pytest
from scipy.stats import kstest, percentileofscore

import cse
from cse.analysis.calibration import cosine_at, displacement, input_notes, percentile, percentiles, random_cosines
from cse.app.state import open_state
from cse.encoder.torch_encoder import TorchEncoder


def test_random_cosines_are_those_of_a_slow_loop():
    vectors = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    expected = sorted(
        float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for i, a in enumerate(vectors) for b in vectors[:i]
    )
    np.testing.assert_allclose(random_cosines(vectors), expected, rtol=1e-5)


def test_a_percentile_is_scipys_mean_percentile():
    reference = np.sort(np.random.default_rng(1).integers(0, 9, 40) / 8).astype(np.float64)
    for cosine in (-1.0, 0.0, 0.3, 0.5, 1.0, 2.0):
        assert percentile(cosine, reference) == pytest.approx(percentileofscore(reference, cosine, "mean"))
    cosines = np.array([[0.3, 0.5], [1.0, -1.0]])
    assert percentiles(cosines, reference).tolist() == [
        [percentile(cosine, reference) for cosine in row] for row in cosines
    ]


def test_a_threshold_is_the_cosine_that_has_its_percentile():
    reference = random_cosines(np.random.default_rng(2).normal(size=(80, 6)))
    for percent in (1, 50, 99, 99.5):
        assert percentile(cosine_at(percent, reference), reference) == pytest.approx(percent, abs=0.05)
    assert cosine_at(100, reference) == pytest.approx(reference[-1])


def test_a_displacement_is_0_for_the_same_vector_and_1_for_a_median_stranger():
    reference = np.array([0.2, 0.4, 0.9])
    assert [displacement(cosine, reference) for cosine in (1.0, 0.7, 0.4)] == pytest.approx([0, 0.5, 1])
    assert displacement(0.5, np.ones(3)) == 0


def test_percentiles_of_other_random_pairs_are_uniform():
    """4,000 pairs of sentences that the reference does not have: no share of them is off by more than 5 points."""
    state, encoder = open_state(["promptbert"], ()), cse.load("promptbert")
    reference = state.demo.random_cosines(None, encoder)
    assert len(reference) == 200 * 199 / 2
    others = np.array([row for row in range(len(state.demo.texts)) if row % 6])
    chosen = np.random.default_rng(0).choice(others, (2, 4000))
    chosen = chosen[:, chosen[0] != chosen[1]]
    vectors = state.demo.vectors(None, encoder)
    places = []
    for first, second in vectors[chosen].swapaxes(0, 1):
        cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
        places.append(percentile(float(cosine), reference))
    assert kstest(places, "uniform", args=(0, 100)).statistic < 0.05


@pytest.fixture(scope="module")
def encoder() -> TorchEncoder:
    return cse.load("simcse")


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("A man is playing a guitar.", []),
        ("\N{GRINNING FACE} \N{THUMBS UP SIGN}", ["no piece of it is in the vocabulary, so the vector says nothing"]),
        ("good \N{GRINNING FACE}", ["1 of its 2 word pieces is not in the vocabulary"]),
        ("cat " * 600, ["only the first 502 of its 600 word pieces are read"]),
    ],
)
def test_notes_say_what_was_not_read(encoder, text, notes):
    assert input_notes(encoder, text) == notes
