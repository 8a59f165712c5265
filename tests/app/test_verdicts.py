"""The sentences of a view follow from its numbers: made-up numbers lead to each of the sentences."""

import numpy as np
import pytest

from cse.analysis.calibration import histogram
from cse.app.results.map import neighbourhoods
from cse.app.results.search import agreement
from cse.app.results.similarity import scales
from cse.app.results.tokens import doubts
from cse.app.results.words import reaction


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        (
            {"simcse": 0.013, "dcpcse": 0.032},
            "No model reacts to the negation: 1 to 3 % of the way to an unrelated sentence.",
        ),
        ({"mine": -0.01}, "No model reacts to the negation: 0 % of the way to an unrelated sentence."),
        (
            {"simcse": 0.3, "mine": 0.51},
            "Every model reacts to the negation: 30 to 51 % of the way to an unrelated sentence.",
        ),
        (
            {"simcse": 0.3, "conpvp": 0.02, "mine": 0.4},
            "SimCSE and mine react to the negation; ConPVP does not (below 10 %).",
        ),
    ],
)
def test_negation(moved, said) -> None:
    assert reaction(moved, "the negation") == said


def cosines(mean: float) -> list[float]:
    return histogram(np.random.default_rng(0).normal(mean, 0.05, 10_000))


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ({}, ""),
        (
            {"simcse": 0.1, "conpvp": 0.3},
            "Random pairs of the demo corpus have a mean cosine of 0.10 in SimCSE and 0.30 in ConPVP: compare "
            "percentiles.",
        ),
        (
            {"simcse": 0.1, "dcpcse": 0.65},
            "Even random pairs of the demo corpus have a high cosine in DCPCSE (mean 0.65): compare percentiles.",
        ),
    ],
)
def test_anisotropy(means, said) -> None:
    assert scales({name: cosines(mean) for name, mean in means.items()}, "the demo corpus") == said


@pytest.mark.parametrize(
    ("sentence", "after", "said"),
    [
        ("a dog", [("dog", 0.004), ("cat", 0.001)], "No word stands out after denoising: the likeliest has 0.4 %."),
        ("a dog", [("dog", 0.00994)], "No word stands out after denoising: the likeliest has 1.0 %."),
        ("I am not happy.", [("happy", 0.5)], "The likeliest word is still “happy”, which the sentence negates."),
        ("She isn't Happy.", [("happy", 0.5)], "The likeliest word is still “happy”, which the sentence negates."),
        ("I am happy.", [("happy", 0.5)], ""),
    ],
)
def test_faint_and_negated_words(sentence, after, said) -> None:
    assert doubts(sentence, after) == said


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ({"simcse": [1, 2]}, ""),
        ({"simcse": [1, 2], "conpvp": [1, 2]}, "The models agree on the best sentence and on all 2 results."),
        ({"simcse": [1], "conpvp": [1]}, "The models agree on the best sentence."),
        ({"simcse": [1], "conpvp": [2]}, "The models name 2 different best sentences."),
        (
            {"simcse": [1, 2, 3], "conpvp": [1, 4, 5], "mine": [1, 2, 4]},
            "The models agree on the best sentence; 1 of 3 results are common to all. SimCSE and ConPVP differ most, "
            "with 1 in common.",
        ),
        (
            {"simcse": [1, 2], "conpvp": [2, 1]},
            "The models name 2 different best sentences, but agree on all 2 results.",
        ),
    ],
)
def test_agreement_of_results(lists, said) -> None:
    assert agreement(lists) == said


def test_neighbourhoods_differ_or_do_not_within_noise() -> None:
    rng = np.random.default_rng(0)
    far, near = (rng.choice([low, low + 0.2, low + 0.4], 500) for low in (0.4, 0.0))
    pairs = [("simcse", "dcpcse"), ("simcse", "conpvp")]
    said = neighbourhoods(dict(zip(pairs, (far, near), strict=True)))
    assert said.startswith(
        f"SimCSE and DCPCSE differ most: in {100 * far.mean():.0f} % of a text's five nearest texts."
    )
    assert said.endswith(f"SimCSE and ConPVP differ least ({100 * near.mean():.0f} %).")
    alike = dict(zip(pairs, (far, rng.permutation(far)), strict=True))
    assert neighbourhoods(alike).startswith("Each two models differ alike, within noise: in ")
    assert neighbourhoods({pairs[0]: far}).startswith("SimCSE and DCPCSE differ in ")
    assert neighbourhoods({}) == neighbourhoods({pairs[0]: far[:19]}) == ""  # of few texts most are neighbours
    assert neighbourhoods({pairs[0]: far[:20]}) != ""
