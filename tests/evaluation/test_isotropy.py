"""Anisotropy, alignment and uniformity against double loops and hand-worked cases; the map of pairs."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from plain_vectors import cosine

from cse.evaluation import metrics
from cse.evaluation.geometry import pair_map
from cse.evaluation.metrics import alignment, anisotropy, uniformity


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a / np.linalg.norm(a) - b / np.linalg.norm(b)))


@pytest.fixture
def vectors() -> np.ndarray:
    generator = np.random.default_rng(0)
    scale = generator.uniform(0.1, 9, size=(40, 1))
    return ((generator.normal(size=(40, 5)) + 0.7) * scale).astype(np.float32)


def test_anisotropy_is_the_double_loop_without_self_pairs(vectors: np.ndarray) -> None:
    count = len(vectors)
    loop = [cosine(vectors[i], vectors[j]) for i in range(count) for j in range(count) if i != j]
    assert anisotropy(vectors) == pytest.approx(np.mean(loop), abs=1e-6)


def test_alignment_is_the_mean_squared_distance_of_unit_rows(vectors: np.ndarray) -> None:
    first, second = vectors[:20], vectors[20:]
    loop = [distance(a, b) ** 2 for a, b in zip(first, second, strict=True)]
    assert alignment(first, second) == pytest.approx(np.mean(loop), abs=1e-6)
    assert alignment(first, 2 * first) == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(ValueError, match="different shapes"):
        alignment(first, second[:3])
    with pytest.raises(ValueError, match="0 vectors"):
        alignment(first[:0], second[:0])


@pytest.mark.parametrize("block", [3, 512])
def test_uniformity_is_the_log_mean_over_pairs_whatever_the_block(
    vectors: np.ndarray, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "BLOCK", block)
    loop = [np.exp(-2 * distance(a, b) ** 2) for a, b in combinations(vectors, 2)]
    assert uniformity(vectors) == pytest.approx(np.log(np.mean(loop)), abs=1e-6)


def test_cosines_are_those_of_the_grades_and_alike_sentences_lie_together(tmp_path: Path) -> None:
    rows = [f"{grade}\t{grade} first {number}\t{grade} second {number}" for grade in (0, 5) for number in range(10)]
    (tmp_path / "test.tsv").write_text("\n".join(rows))
    rng = np.random.default_rng(0)
    base = {text: rng.normal(size=16) for row in rows for text in row.split("\t")[1:]}

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([base[text.replace("second", "first") if text.startswith("5") else text] for text in texts])

    scores = pair_map(encode, tmp_path / "test.tsv")
    expected = [cosine(base[f"0 first {i}"], base[f"0 second {i}"]) for i in range(10)]
    assert scores["cosine of 0"] == pytest.approx(np.mean(expected), abs=1e-4)
    assert scores["cosine of 5"] == 1.0
    assert "cosine of 3" not in scores
    places = np.array([scores["points"]["x"], scores["points"]["y"]]).T
    apart = np.linalg.norm(places[:20] - places[20:], axis=1)
    assert apart[10:].max() < apart[:10].mean() / 5


def test_too_few_pairs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("0\ta\tb\n1\tc\td\n5\te\tf\n")
    with pytest.raises(ValueError, match=r"test\.tsv: 2 pairs are graded exactly 0, 3 or 5"):
        pair_map(lambda texts: np.zeros((len(texts), 2)), tmp_path / "test.tsv")
