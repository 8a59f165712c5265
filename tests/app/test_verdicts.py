"""The sentences of a view follow from its numbers: made-up numbers lead to each of the sentences."""

import numpy as np
import pytest

from cse.app.results.map import neighbourhoods
from cse.app.results.search import agreement
from cse.app.results.similarity import scales
from cse.app.results.words import reaction


def test_a_change_that_hardly_moves_a_model_is_said() -> None:
    moved = "The negation moves the vector 2 to 40 % of the way to an unrelated sentence"
    assert reaction({"simcse": 0.3, "conpvp": 0.02, "mine": 0.4}, "the negation") == (
        f"{moved}, in ConPVP less than 10 %."
    )


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ({"simcse": 0.1, "conpvp": 0.15}, ""),
        (
            {"simcse": 0.1, "dcpcse": 0.65},
            "Random pairs of pets.txt have a mean cosine of 0.10 in SimCSE, 0.65 in DCPCSE: compare percentiles.",
        ),
    ],
)
def test_anisotropy(means, said) -> None:
    assert scales(means, "pets.txt") == said


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        (
            {"simcse": [1, 2], "conpvp": [2, 1]},
            "The models name 2 different best sentences; all models have the same 2 results.",
        ),
        (
            {"simcse": [1, 2, 3], "conpvp": [1, 4, 5], "mine": [1, 2, 4]},
            "The models agree on the best sentence; 1 of 3 results are common to all. SimCSE and ConPVP have fewest in "
            "common, 1.",
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
    assert neighbourhoods(alike).endswith("within noise.")
    assert neighbourhoods({}) == neighbourhoods({pairs[0]: far[:19]}) == ""  # of few texts most are neighbours
