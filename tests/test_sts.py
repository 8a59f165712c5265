"""Spearman by its definition, subsets concatenated, missing sets named; real data where it is present."""

from pathlib import Path

import numpy as np
import pytest
from conftest import DATA

from cse.data import scored_pairs
from cse.evaluation.sts import cosines, evaluate, spearman

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


def test_missing_tasks_are_named_and_nothing_is_averaged(tmp_path: Path) -> None:
    (tmp_path / "STSB").mkdir()
    (tmp_path / "STSB" / "test.tsv").write_text("1\ta\tb\n")
    with pytest.raises(ValueError, match="no files for STS12, STS13, STS14, STS15, STS16, SICK-R"):
        evaluate(encode, tmp_path)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real STS sets beside the project (2026-11)")
def test_the_real_sets_have_the_published_pair_counts() -> None:
    counts = {
        name: sum(len(scored_pairs(p)) for p in (DATA / "sts" / name).glob("*.tsv"))
        for name in ("STS12", "STS13", "STS14")
    }
    assert counts == {"STS12": 3108, "STS13": 1500, "STS14": 3750}
    assert len(scored_pairs(DATA / "sts" / "STSB" / "test.tsv")) == 1379
