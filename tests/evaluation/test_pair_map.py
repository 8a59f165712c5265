"""The map of pairs: which are drawn, their cosines, and neighbours that stay neighbours."""

from pathlib import Path

import numpy as np
import pytest
from conftest import DATA

from cse.evaluation.isotropy import drawn_pairs, pair_map
from cse.text.sentences import scored_pairs


def test_ten_pairs_of_each_exact_grade_are_drawn_the_same_every_time() -> None:
    pairs = [(grade, f"{grade} {number}", "x") for number in range(30) for grade in (0.0, 2.9, 3.0, 5.0)]
    chosen = drawn_pairs(pairs)
    assert [pair[0] for pair in chosen] == [0.0] * 10 + [3.0] * 10 + [5.0] * 10
    assert len({pair[1] for pair in chosen}) == 30
    assert chosen == drawn_pairs(pairs)
    assert len(drawn_pairs(pairs[:8])) == 6


def test_cosines_are_those_of_the_grades_and_alike_sentences_lie_together(tmp_path: Path) -> None:
    rows = [f"{grade}\t{grade} first {number}\t{grade} second {number}" for grade in (0, 5) for number in range(10)]
    (tmp_path / "test.tsv").write_text("\n".join(rows))
    rng = np.random.default_rng(0)
    base = {text: rng.normal(size=16) for row in rows for text in row.split("\t")[1:]}

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([base[text.replace("second", "first") if text.startswith("5") else text] for text in texts])

    found = pair_map(encode, tmp_path / "test.tsv")
    expected = [
        np.dot(base[f"0 first {i}"], base[f"0 second {i}"])
        / np.linalg.norm(base[f"0 first {i}"])
        / np.linalg.norm(base[f"0 second {i}"])
        for i in range(10)
    ]
    assert found["cosine of 0"] == pytest.approx(np.mean(expected), abs=1e-4)
    assert found["cosine of 5"] == 1.0
    assert "cosine of 3" not in found
    places = np.array([found["points"]["x"], found["points"]["y"]]).T
    apart = np.linalg.norm(places[:20] - places[20:], axis=1)
    assert apart[10:].max() < apart[:10].mean() / 5


def test_too_few_pairs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("0\ta\tb\n1\tc\td\n5\te\tf\n")
    with pytest.raises(ValueError, match=r"test\.tsv: 2 pairs are graded exactly 0, 3 or 5"):
        pair_map(lambda texts: np.zeros((len(texts), 2)), tmp_path / "test.tsv")


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real STS sets beside the project (2026-11)")
def test_sts_b_has_ten_pairs_of_each_grade() -> None:
    assert len(drawn_pairs(scored_pairs(DATA / "sts" / "STSB" / "test.tsv"))) == 30
