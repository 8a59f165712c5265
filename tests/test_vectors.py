"""Nearest rows by cosine, against all angles sorted; smoothed rows, against a loop."""

import numpy as np
import pytest

import cse.vectors
from cse.vectors import cosines, nearest_others, smoothed


@pytest.mark.parametrize("at_once", [1, 100, 1 << 24])  # a row, a few rows, all rows in one block
def test_the_nearest_others_are_those_of_all_angles_sorted(at_once, monkeypatch):
    monkeypatch.setattr(cse.vectors, "COSINES_AT_ONCE", at_once)
    rows = np.random.default_rng(0).normal(size=(40, 5))
    lengths = np.linalg.norm(rows, axis=1)
    angles = np.arccos(np.clip(rows @ rows.T / np.outer(lengths, lengths), -1, 1))
    expected = [[other for other in np.argsort(angles[row]) if other != row][:3] for row in range(40)]
    assert nearest_others(rows, 3).tolist() == expected


def test_a_cosine_with_a_nan_is_no_number_and_with_a_zero_row_0():
    found = cosines(np.array([[1.0, 2.0], [0.0, 0.0], [np.nan, 1.0]]), np.array([[2.0, 4.0], [1.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_allclose(found, [1.0, 0.0, np.nan])


def slowly_smoothed(rows: np.ndarray, count: int) -> np.ndarray:
    """Each row mixed with its nearest others, one at a time, from the definition."""
    unit = [row / np.linalg.norm(row) for row in rows]
    out = []
    for own, row in enumerate(unit):
        others = sorted((other for other in range(len(unit)) if other != own), key=lambda other: -unit[other] @ row)
        near = [unit[other] for other in others[:count] if unit[other] @ row > 0]
        weights = [(other @ row) ** 3 for other in near]
        mean = sum((w * other for w, other in zip(weights, near, strict=True)), np.zeros(len(row)))
        mix = 0.5 * row + 0.5 * mean / (sum(weights) or 1)
        out.append(mix / np.linalg.norm(mix))
    return np.array(out)


@pytest.mark.parametrize("at_once", [1, 7, 1024])
@pytest.mark.parametrize("count", [3, 10, 99])
def test_smoothed_rows_are_those_of_a_loop(count, at_once, monkeypatch):
    monkeypatch.setattr(cse.vectors, "MIXED_AT_ONCE", at_once)
    rows = np.random.default_rng(1).normal(size=(40, 5)) * np.arange(1, 41)[:, None]
    np.testing.assert_allclose(smoothed(rows, count), slowly_smoothed(rows, count), atol=1e-12)


def test_a_negative_count_is_refused():
    with pytest.raises(ValueError, match="`count` is -1"):
        smoothed(np.eye(3), -1)
