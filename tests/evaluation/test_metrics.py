"""Cosines and Spearman by their definitions."""

import re

import numpy as np
import pytest
from plain_vectors import encode

from cse.evaluation.metrics import correlation, correlation_or_none, pearson, spearman
from cse.vectors import cosines


def test_cosines_are_the_formula_and_zero_for_a_zero_vector() -> None:
    first, second = encode(["a", "a", "zero"]), encode(["b", "d", "a"])
    np.testing.assert_allclose(cosines(first, second), [0.8, -1 / np.sqrt(1.01), 0.0])


def test_spearman_is_the_correlation_of_ranks_and_each_text_is_encoded_once() -> None:
    pairs = [(5.0, "a", "b"), (2.0, "a", "c"), (3.0, "b", "c"), (0.0, "a", "d")]
    seen: list[str] = []

    def counting(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return encode(texts)

    # cosines 0.8, 0.0, 0.6, -0.995: ranks 4 2 3 1; grades rank 4 2 3 1
    assert spearman(counting, pairs) == pytest.approx(100.0)
    assert sorted(seen) == ["a", "b", "c", "d"]
    # swapped grades of the middle pairs: 1 - 6 * (1 + 1) / (4 * 15) = 0.8
    assert spearman(encode, [(5.0, "a", "b"), (3.0, "a", "c"), (2.0, "b", "c"), (0.0, "a", "d")]) == pytest.approx(80.0)


@pytest.mark.parametrize(
    ("cosines", "grades", "message"),
    [
        ([0.1, 0.2], [3.0, 3.0], "x.tsv: all 2 pairs have the same grade, so there is no correlation"),
        ([0.1, 0.1], [3.0, 1.0], "x.tsv: all 2 pairs have the same cosine, so there is no correlation"),
        ([1.0, 1.0 - 1e-7, 1.0], [3.0, 1.0, 2.0], "all 3 pairs have the same cosine"),  # rounding of float32 vectors
        ([0.1], [3.0], "a correlation needs at least two pairs, got 1"),
        ([0.1, np.nan], [3.0, 1.0], "some cosines are not finite"),
        ([0.1, np.inf], [3.0, 1.0], "some cosines are not finite"),
    ],
)
def test_an_undefined_correlation_is_refused_and_never_a_number(
    cosines: list[float], grades: list[float], message: str
) -> None:
    for measure in (correlation, pearson):
        with pytest.raises(ValueError, match=f"^(x.tsv: )?{re.escape(message.removeprefix('x.tsv: '))}"):
            measure(np.array(cosines), np.array(grades), name="x.tsv")
    assert correlation_or_none(np.array(cosines), np.array(grades)) is None


def test_cosines_that_differ_in_the_fifth_decimal_are_ranked() -> None:
    assert correlation(np.array([0.99999, 0.99998, 0.99997]), [3.0, 2.0, 1.0]) == pytest.approx(100.0)
    assert correlation_or_none(np.array([0.99999, 0.99998, 0.99997]), [3.0, 1.0, 2.0]) == 50.0
