"""Geometry of STS-B against hand-worked cases and scipy."""

import json
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA
from plain_vectors import cosine

from cse.evaluation import geometry
from cse.evaluation.geometry import grade_distribution
from cse.evaluation.metrics import alignment, anisotropy, uniformity
from cse.evaluation.tasks import TaskData


def hashed(texts: list[str]) -> np.ndarray:
    """A vector per text that is a mean of word vectors, so that similar texts have similar vectors."""
    return np.array([np.mean([word_vector(word) for word in text.split()], 0) for text in texts], np.float32)


@cache
def word_vector(word: str) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=24)


# -- cosines against grades ---------------------------------------------------------------------------------------


def test_grades_fall_into_five_buckets_closed_at_the_top() -> None:
    grades = [0.0, 0.9, 1.0, 2.5, 2.9, 4.0, 4.9, 5.0]
    cosines = np.array([0.1, 0.3, 0.5, 0.2, 0.6, 0.7, 0.8, 0.9])
    result = grade_distribution(cosines, grades)
    assert [(row["grades"], row["count"], row["mean"]) for row in result["buckets"]] == [
        ("0-1", 2, 0.2), ("1-2", 1, 0.5), ("2-3", 2, 0.4), ("4-5", 3, 0.8),
    ]  # fmt: skip
    assert result["buckets"][2]["quartiles"] == [0.3, 0.4, 0.5]
    assert result["separation"] == pytest.approx(0.6)
    assert result["points"] == {"grades": grades, "cosines": cosines.tolist()}


# -- units --------------------------------------------------------------------------------------------------------


def folder_of(folder: Path) -> Path:
    (folder / "STSB").mkdir()
    lines = ["4.0\ta cat\ta cat .", "0.0\ta cat\tthe rain", "5.0\tthe rain\tit rains", "2.2\ta dog\ta cat"]
    (folder / "STSB" / "test.tsv").write_text("\n".join(lines) + "\n")
    return folder


def test_units_measure_distinct_sentences_of_sts_b(tmp_path: Path) -> None:
    seen: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return hashed(texts)

    units = geometry.units(TaskData(folder_of(tmp_path)))
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
    cosines = [cosine(vectors[i], vectors[j]) for i, j in ((0, 1), (0, 2), (2, 3), (4, 0))]
    assert result["points"]["cosines"] == pytest.approx(cosines, abs=1e-4)
    assert result["separation"] == pytest.approx((cosines[0] + cosines[2]) / 2 - cosines[1], abs=2e-4)
    json.dumps(result)


def test_a_file_of_sentences_is_lower_cased_and_cut_to_32_words_as_released(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(f"A Cat\n{' the  rain' * 20}\n")
    seen: list[list[str]] = []
    unit = geometry.units(TaskData(folder_of(tmp_path), sentences=tmp_path / "text.txt"))["anisotropy"]
    unit(lambda texts: seen.append(texts) or hashed(texts))
    assert seen == [["a cat", " ".join(["the", "rain"] * 16)]]


def test_tokenised_text_takes_the_place_of_sts_b_test(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    folder = folder_of(tmp_path / "plain")
    tokenised = tmp_path / "tokenised"
    (tokenised / "STSB").mkdir(parents=True)
    (tokenised / "STSB" / "test.tsv").write_text("4.0\ta cow\ta cow .\n0.0\ta cow\tthe rain\n")
    cut, other = (geometry.units(TaskData(folder, tokenised=folder_of_cut)) for folder_of_cut in (tokenised, None))
    seen: list[list[str]] = []
    for units in (cut, other):
        units["anisotropy"](lambda texts: seen.append(texts) or hashed(texts))
    assert seen[0] == ["a cow", "a cow .", "the rain"]
    assert "a cat" in seen[1]


def test_missing_files_and_missing_positives_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"STSB/test\.tsv: no such file; give the folder that holds STSB"):
        geometry.units(TaskData(tmp_path))
    folder = folder_of(tmp_path)
    with pytest.raises(ValueError, match=r"none\.txt: no such file"):
        geometry.units(TaskData(folder, sentences=tmp_path / "none.txt"))
    (folder / "STSB" / "test.tsv").write_text("1\ta cat\ta dog\n3.9\ta cat\tthe rain\n")
    with pytest.raises(ValueError, match=r"test\.tsv: no pair has a grade of 4 or more"):
        geometry.units(TaskData(folder))["alignment-uniformity"](hashed)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real STS-B beside the project (2026-11)")
def test_sts_b_has_its_sentences_positives_and_buckets() -> None:
    units = geometry.units(TaskData(DATA / "sts"))
    assert units["anisotropy"](hashed)["sentences"] == 2551
    assert units["alignment-uniformity"](hashed)["positives"] == 338
    result = units["distribution"](hashed)
    assert [row["count"] for row in result["buckets"]] == [243, 198, 265, 335, 338]
    assert result["separation"] > 0.2  # shared words alone separate unrelated pairs from equal ones
