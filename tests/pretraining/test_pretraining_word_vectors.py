"""Counted word vectors: window counts and PPMI against loops; words in the same contexts get similar vectors."""

import math

import numpy as np
import pytest
import torch

from cse.pretraining.word_vectors import count_pairs, positive_pmi, word_vectors


def test_window_counts_are_a_double_loop() -> None:
    tokens = np.random.default_rng(0).integers(0, 6, 60).astype(np.uint16)
    expected = np.zeros((6, 6))
    for i in range(60):
        for j in range(60):
            if i != j and abs(i - j) <= 5:
                expected[tokens[i], tokens[j]] += 1
    np.testing.assert_array_equal(count_pairs(tokens, 6).numpy(), expected)


def test_positive_pmi_is_its_formula() -> None:
    counts = torch.tensor([[4.0, 1.0, 0.0], [1.0, 2.0, 3.0], [0.0, 3.0, 0.0]])
    total, smooth = counts.sum(), counts.sum(1) ** 0.75
    found = positive_pmi(counts.clone())
    for i in range(3):
        for j in range(3):
            joint, word, context = counts[i, j] / total, counts[i].sum() / total, smooth[j] / smooth.sum()
            expected = max(0.0, math.log(joint / (word * context))) if joint > 0 else 0.0
            assert float(found[i, j]) == pytest.approx(expected, abs=1e-5)


def test_words_of_like_company_get_like_vectors_and_equal_length() -> None:
    rng = np.random.default_rng(1)
    text = [[a, 2 + int(rng.integers(3)), a] for a in rng.integers(0, 2, 400)]
    text += [[5 + int(rng.integers(2)), 7 + int(rng.integers(2))] * 2 for _ in range(400)]
    vectors = word_vectors(np.array(sum(text, []), np.uint16), 40, 4)  # noqa: RUF017
    assert vectors.pow(2).mean(1).sqrt().numpy() == pytest.approx(np.full(40, 0.05), rel=1e-4)
    unit = torch.nn.functional.normalize(vectors, dim=1)
    assert float(unit[5] @ unit[6]) > float(unit[5] @ unit[2])
    with pytest.raises(ValueError, match="counted vectors need"):
        word_vectors(np.arange(9, dtype=np.uint16), 9, 64)
