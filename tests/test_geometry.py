"""Geometry against double loops, hand-worked cases and scipy; the removal curve with a vocabulary of letters."""

import json
import zlib
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA
from scipy.stats import spearmanr

from cse.evaluation import geometry, token_removal
from cse.evaluation.geometry import alignment, anisotropy, grade_distribution, uniformity
from cse.evaluation.token_removal import most_frequent, removal_curve, task_scores


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a / np.linalg.norm(a) - b / np.linalg.norm(b)))


@pytest.fixture
def vectors() -> np.ndarray:
    generator = np.random.default_rng(0)
    scale = generator.uniform(0.1, 9, size=(40, 1))
    return ((generator.normal(size=(40, 5)) + 0.7) * scale).astype(np.float32)


def hashed(texts: list[str]) -> np.ndarray:
    """A vector per text that is a mean of word vectors, so that similar texts have similar vectors."""
    return np.array([np.mean([word_vector(word) for word in text.split()], 0) for text in texts], np.float32)


@cache
def word_vector(word: str) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=24)


# -- vectors ----------------------------------------------------------------------------------------------------


def test_anisotropy_is_the_double_loop_without_self_pairs(vectors: np.ndarray) -> None:
    count = len(vectors)
    loop = [cosine(vectors[i], vectors[j]) for i in range(count) for j in range(count) if i != j]
    assert anisotropy(vectors) == pytest.approx(np.mean(loop), abs=1e-6)


def test_anisotropy_of_opposite_equal_and_zero_rows() -> None:
    assert anisotropy(np.array([[1.0, 0.0], [-3.0, 0.0]])) == pytest.approx(1.0)  # Eq. 1 takes the absolute value
    assert anisotropy(np.array([[1.0, 2.0], [2.0, 4.0]])) == pytest.approx(1.0)
    assert anisotropy(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="1 vectors; give at least 2"):
        anisotropy(np.ones((1, 3)))


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
    monkeypatch.setattr(geometry, "BLOCK", block)
    loop = [np.exp(-2 * distance(a, b) ** 2) for a, b in combinations(vectors, 2)]
    assert uniformity(vectors) == pytest.approx(np.log(np.mean(loop)), abs=1e-6)


def test_uniformity_ranges_from_one_point_to_opposite_points() -> None:
    assert uniformity(np.ones((4, 3))) == pytest.approx(0.0, abs=1e-9)
    assert uniformity(np.array([[2.0, 0.0], [-1.0, 0.0]])) == pytest.approx(-8.0)
    assert uniformity(np.array([[2.0, 0.0], [0.0, 0.0]])) == pytest.approx(-4.0)  # as if orthogonal: distance^2 is 2


# -- cosines against grades ---------------------------------------------------------------------------------------


def test_grades_fall_into_five_buckets_closed_at_the_top() -> None:
    grades = [0.0, 0.9, 1.0, 2.5, 2.9, 4.0, 4.9, 5.0]
    found = np.array([0.1, 0.3, 0.5, 0.2, 0.6, 0.7, 0.8, 0.9])
    result = grade_distribution(found, grades)
    assert [(row["grades"], row["count"], row["mean"]) for row in result["buckets"]] == [
        ("0-1", 2, 0.2), ("1-2", 1, 0.5), ("2-3", 2, 0.4), ("4-5", 3, 0.8),
    ]  # fmt: skip
    assert result["buckets"][2]["quartiles"] == [0.3, 0.4, 0.5]
    assert result["separation"] == pytest.approx(0.6)
    assert result["points"] == {"grades": grades, "cosines": found.tolist()}


def test_grades_off_the_scale_and_a_single_bucket_are_refused() -> None:
    with pytest.raises(ValueError, match=r"grade 5\.5 is outside 0 to 5"):
        grade_distribution(np.zeros(2), [1.0, 5.5])
    with pytest.raises(ValueError, match="1 bucket of grades has pairs"):
        grade_distribution(np.zeros(2), [4.0, 5.0])


# -- removal of tokens --------------------------------------------------------------------------------------------

SETS = {
    "one": [(5.0, "a b", "b a"), (1.0, "a c", "d d"), (3.0, "a b c", "c d a"), (2.0, "a b", "a d")],
    "two": [(0.0, "a a", "b d"), (4.0, "c", "a c"), (2.0, "b d", "d c c"), (3.0, "a d", "d d")],
}
COUNTED = ["a a a b b", "a b c c", "d"]  # a 4, b 3, c 2, d 1


def letters(texts: list[str]) -> list[list[int]]:
    return [["abcd".index(letter) for letter in text.split()] for text in texts]


def counts(contents: list[list[int]]) -> np.ndarray:
    return np.array([[1.0, *(content.count(letter) for letter in range(4))] for content in contents], np.float32)


def test_the_most_frequent_tokens_are_ranked_and_ties_go_to_the_lower_id() -> None:
    assert most_frequent([[7, 3, 3], [9, 1, 9], [9]], 3) == [9, 3, 1]
    assert most_frequent([], 3) == []


def test_task_scores_are_spearman_per_set_and_the_mean_of_the_rounded() -> None:
    sets = {**SETS, "back": [(-grade, *texts) for grade, *texts in SETS["one"][:3]]}
    rows = {text: counts(letters([text]))[0] for pairs in sets.values() for pair in pairs for text in pair[1:]}
    expected = {
        name: round(100 * spearmanr([cosine(rows[a], rows[b]) for _, a, b in pairs], [g for g, _, _ in pairs])[0], 2)
        for name, pairs in sets.items()
    }
    average = round(sum(expected.values()) / 3, 2)
    assert average == 33.33  # of 100, 100 and -100: both decimals count
    assert task_scores(rows, sets) == {**expected, "average": average}
    assert task_scores(dict.fromkeys(rows, np.ones(2)), {"one": SETS["one"]}) == {"one": 0.0, "average": 0.0}
    with pytest.raises(ValueError, match="flat: all 2 pairs have the same grade"):
        task_scores(rows, {"flat": [(1.0, "a b", "c"), (1.0, "c", "a b")]})


def test_the_curve_scores_the_sentences_without_the_k_most_frequent_tokens_and_encodes_once() -> None:
    calls: list[list[list[int]]] = []

    def encode_ids(contents: list[list[int]]) -> np.ndarray:
        calls.append(contents)
        return counts(contents)

    result = removal_curve(letters, encode_ids, SETS, counted=COUNTED, steps=(0, 1, 3))
    for step, dropped in ((0, ""), (1, "a"), (3, "abc")):
        kept = {
            text: " ".join(letter for letter in text.split() if letter not in dropped)
            for pairs in SETS.values() for pair in pairs for text in pair[1:]
        }  # fmt: skip
        rows = {text: counts(letters([left]))[0] for text, left in kept.items()}
        assert result[f"K={step}"] == task_scores(rows, SETS)["average"]
    assert len({result["K=0"], result["K=1"], result["K=3"]}) == 3
    assert result["curve"]["average"] == [result["K=0"], result["K=1"], result["K=3"]]
    assert result["curve"]["removed"] == [0, 1, 3]
    assert result["curve"]["kept"] == [100.0, round(100 * 16 / 24, 2), round(100 * 6 / 24, 2)]
    (encoded,) = calls
    assert [] in encoded
    assert len(encoded) == len({tuple(content) for content in encoded})


def test_a_curve_of_nothing_is_refused() -> None:
    for sets, steps in (({}, (0,)), (SETS, ())):
        with pytest.raises(ValueError, match="at least one set of pairs and one step"):
            removal_curve(letters, counts, sets, counted=COUNTED, steps=steps)
    assert token_removal.STEPS == (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


# -- units --------------------------------------------------------------------------------------------------------


def folder_of(place: Path) -> Path:
    (place / "STSB").mkdir()
    lines = ["4.0\ta cat\ta cat .", "0.0\ta cat\tthe rain", "5.0\tthe rain\tit rains", "2.2\ta dog\ta cat"]
    (place / "STSB" / "test.tsv").write_text("\n".join(lines) + "\n")
    return place


def test_units_measure_distinct_sentences_of_sts_b(tmp_path: Path) -> None:
    seen: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return hashed(texts)

    units = geometry.units(folder_of(tmp_path))
    texts = ["a cat", "a cat .", "the rain", "it rains", "a dog"]
    vectors = hashed(texts)
    assert units["anisotropy"](encode) == {"anisotropy": round(anisotropy(vectors), 4), "sentences": 5}
    assert seen == texts
    assert units["alignment-uniformity"](encode) == {
        "alignment": round(alignment(vectors[[0, 2]], vectors[[1, 3]]), 4),
        "uniformity": round(uniformity(vectors), 4),
        "positives": 2,
        "sentences": 5,
    }
    result = units["distribution"](encode)
    found = [cosine(vectors[i], vectors[j]) for i, j in ((0, 1), (0, 2), (2, 3), (4, 0))]
    assert result["points"]["cosines"] == pytest.approx(found, abs=1e-4)
    assert result["separation"] == pytest.approx((found[0] + found[2]) / 2 - found[1], abs=2e-4)
    json.dumps(result)


def test_other_sentences_take_the_place_of_sts_b_for_the_anisotropy(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a cat\n\nthe rain\na cat\na dog\n")
    unit = geometry.units(folder_of(tmp_path), sentences=tmp_path / "text.txt")["anisotropy"]
    expected = round(anisotropy(hashed(["a cat", "the rain", "a dog"])), 4)
    assert unit(hashed) == {"anisotropy": expected, "sentences": 3}


def test_missing_files_and_missing_positives_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"STSB/test\.tsv: no such file; give the folder that holds STSB"):
        geometry.units(tmp_path)
    folder = folder_of(tmp_path)
    with pytest.raises(ValueError, match=r"none\.txt: no such file"):
        geometry.units(folder, sentences=tmp_path / "none.txt")
    (folder / "STSB" / "test.tsv").write_text("1\ta cat\ta dog\n3.9\ta cat\tthe rain\n")
    with pytest.raises(ValueError, match=r"test\.tsv: no pair has a grade of 4 or more"):
        geometry.units(folder)["alignment-uniformity"](hashed)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real STS-B beside the project (2026-11)")
def test_sts_b_has_its_sentences_positives_and_buckets() -> None:
    units = geometry.units(DATA / "sts")
    assert units["anisotropy"](hashed)["sentences"] == 2551
    assert units["alignment-uniformity"](hashed)["positives"] == 338
    result = units["distribution"](hashed)
    assert [row["count"] for row in result["buckets"]] == [243, 198, 265, 335, 338]
    assert result["separation"] > 0.2  # shared words alone separate unrelated pairs from equal ones
