"""Nearest rows by cosine, against all angles sorted."""

import numpy as np
import pytest

import cse.vectors
from cse.vectors import nearest_others


@pytest.mark.parametrize("at_once", [1, 100, 1 << 24])  # a row, a few rows, all rows in one block
def test_the_nearest_others_are_those_of_all_angles_sorted(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cse.vectors, "COSINES_AT_ONCE", at_once)
    rows = np.random.default_rng(0).normal(size=(40, 5))
    lengths = np.linalg.norm(rows, axis=1)
    angles = np.arccos(np.clip(rows @ rows.T / np.outer(lengths, lengths), -1, 1))
    expected = [[other for other in np.argsort(angles[row]) if other != row][:3] for row in range(40)]
    assert nearest_others(rows, 3).tolist() == expected


def test_there_are_at_most_n_minus_1_others() -> None:
    assert nearest_others(np.eye(3), 5).shape == (3, 2)
    assert nearest_others(np.eye(1), 5).shape == (1, 0)
    assert nearest_others(np.empty((0, 4)), 5).shape == (0, 0)
