"""Cosines and Spearman by their definitions."""

import numpy as np
import pytest

from cse.evaluation.metrics import spearman
from cse.vectors import cosines

WORDS = {"a": [1.0, 0.0], "b": [0.8, 0.6], "c": [0.0, 1.0], "d": [-1.0, 0.1], "zero": [0.0, 0.0]}


def encode(texts: list[str]) -> np.ndarray:
    return np.array([WORDS[text] for text in texts])


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


def test_equal_grades_are_refused_and_equal_cosines_count_nothing() -> None:
    with pytest.raises(ValueError, match="all 2 pairs have the same grade"):
        spearman(encode, [(3.0, "a", "b"), (3.0, "a", "c")])
    assert spearman(encode, [(3.0, "a", "b"), (1.0, "a", "b")]) == 0.0
