"""Pairs about which models differ come first, whatever the scale of their cosines."""

import numpy as np
import pytest

from cse.analysis.perturbations import disagreements, normalised_ranks


def test_planted_negations_surface_among_the_first_ten() -> None:
    """200 pairs that two models rank alike but for noise; of ten one hears the negation and the other does not."""
    rng = np.random.default_rng(0)
    alike = rng.uniform(size=200)
    negated = rng.choice(200, 10, replace=False)
    deaf, hearing = alike + rng.normal(scale=0.02, size=200), alike + rng.normal(scale=0.02, size=200)
    deaf[negated], hearing[negated] = rng.uniform(0.9, 1.0, 10), rng.uniform(0.0, 0.1, 10)
    ranked = disagreements({"deaf": 0.9 + 0.1 * deaf, "hearing": hearing**3})
    assert {row.pair for row in ranked[:10]} == set(negated.tolist())
    assert ranked[0].places["deaf"] > 0.8 > 0.2 > ranked[0].places["hearing"]


def test_models_that_only_scale_their_cosines_do_not_disagree() -> None:
    cosines = np.random.default_rng(1).normal(size=50)
    ranked = disagreements({"a": cosines, "b": 0.01 * cosines + 0.95, "c": np.exp(cosines)})
    assert [row.pair for row in ranked] == list(range(50))
    assert {row.spread for row in ranked} == {0.0}


def test_places_are_mean_ranks_between_0_and_1() -> None:
    assert normalised_ranks(np.array([0.3, 0.1, 0.3, 0.9])).tolist() == pytest.approx([0.5, 0.0, 0.5, 1.0])
    assert normalised_ranks(np.array([0.3])).tolist() == [0.5]
    assert disagreements({}) == disagreements({"a": np.array([])}) == []
    with pytest.raises(ValueError, match="different numbers of pairs"):
        disagreements({"a": np.zeros(2), "b": np.zeros(3)})
