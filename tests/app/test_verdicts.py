"""The sentences of a view follow from its numbers: made-up numbers lead to each of the sentences."""

import numpy as np

from cse.app.results.map import neighbourhoods
from cse.app.results.search import agreement


def test_agreement_of_results() -> None:
    lists = {"simcse": [1, 2, 3], "conpvp": [1, 4, 5], "mine": [1, 2, 4]}
    assert agreement(lists) == (
        "The models agree on the best text; 1 of 3 results are common to all. SimCSE and ConPVP have fewest in "
        "common, 1."
    )


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
