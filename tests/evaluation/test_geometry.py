"""Geometry of STS-B against hand-worked cases and scipy."""

import zlib
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from plain_vectors import cosine
from scipy.stats import spearmanr

from cse.evaluation import geometry
from cse.evaluation.geometry import (
    StaticEmbeddings,
    cumulative_removal,
    grade_distribution,
    group_cosines,
    removal_curve,
    task_scores,
    token_groups,
)  # fmt: skip
from cse.evaluation.metrics import alignment, anisotropy, uniformity
from cse.evaluation.tasks import TaskData


def hashed(texts: list[str]) -> np.ndarray:
    """A vector per text that is a mean of word vectors, so that similar texts have similar vectors."""
    return np.array([np.mean([word_vector(word) for word in text.split()], 0) for text in texts], np.float32)


@cache
def word_vector(word: str) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=24)


def test_grades_fall_into_five_buckets_closed_at_the_top(tmp_path):
    grades = [0.0, 0.9, 1.0, 2.5, 2.9, 4.0, 4.9, 5.0]
    cosines = np.array([0.1, 0.3, 0.5, 0.2, 0.6, 0.7, 0.8, 0.9])
    (tmp_path / "test.tsv").write_text("".join(f"{grades[n]}\tone\t{cosines[n]}\n" for n in range(8)))
    angles = {"one": 1.0, **{str(value): float(value) for value in cosines}}
    encode = lambda texts: np.array([(angles[text], np.sqrt(1 - angles[text] ** 2)) for text in texts])  # noqa: E731
    result = grade_distribution(encode, tmp_path / "test.tsv")
    assert [(row["grades"], row["count"], row["mean"]) for row in result["buckets"]] == [
        ("0-1", 2, 0.2), ("1-2", 1, 0.5), ("2-3", 2, 0.4), ("4-5", 3, 0.8),
    ]  # fmt: skip
    assert result["buckets"][2]["quartiles"] == [0.3, 0.4, 0.5]
    assert result["separation"] == pytest.approx(0.6)
    assert result["points"] == {"grades": grades, "cosines": cosines.tolist()}


def folder_of(folder: Path) -> Path:
    (folder / "STSB").mkdir()
    lines = ["4.0\ta cat\ta cat .", "0.0\ta cat\tthe rain", "5.0\tthe rain\tit rains", "2.2\ta dog\ta cat"]
    (folder / "STSB" / "test.tsv").write_text("\n".join(lines) + "\n")
    return folder


def test_units_measure_distinct_sentences_of_sts_b(tmp_path):
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


WORDPIECES = ["[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "Dog", "dog", ".", "sun", "Sun", "##ny", "a1"]
CUTS = {"cats": "cat ##s", "Sunny": "Sun ##ny", "sunny": "sun ##ny", "dogs": "dog ##s"}


def wordpieces(texts: list[str]) -> list[list[int]]:
    assert texts, "real tokenizers refuse an empty list"
    pieces = [" ".join(CUTS.get(word, word) for word in text.split()).split() for text in texts]
    return [[WORDPIECES.index(piece) for piece in line] for line in pieces]


STATIC = StaticEmbeddings(np.random.default_rng(3).normal(size=(13, 6)) + 0.3, WORDPIECES, wordpieces, (0, 1))


def expected(static: StaticEmbeddings, cut: dict[str, str], pairs: list[tuple[float, str, str]]) -> float:
    """Spearman x 100 of the averages of the pieces listed for each sentence."""

    def average(text: str) -> np.ndarray:
        ids = [list(static.tokens).index(piece) for piece in cut[text].split()]
        return sum(static.embeddings[i] for i in ids) / len(ids)

    cosines = []
    for _, first, second in pairs:
        a, b = average(first), average(second)
        cosines.append(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    return round(100 * float(spearmanr(cosines, [grade for grade, _, _ in pairs]).statistic), 2)


GRADES = (3.0, 0.0, 4.5, 1.0, 5.0, 2.0, 0.5, 4.0, 1.5, 2.5)


def all_pairs(texts: tuple[str, ...]) -> list[tuple[float, str, str]]:
    return [(grade, *pair) for grade, pair in zip(GRADES, combinations(texts, 2), strict=True)]


def test_cumulative_removal_on_word_pieces_is_the_average_of_hand_cut_sentences():
    texts = ("the cats .", "Dog Sunny", "a1 dogs", "the sun .", "Sun the a1 cat")
    rows = {
        "static": [f"[CLS] {cut} [SEP]" for cut in (
            "the cat ##s .", "Dog Sun ##ny", "a1 dog ##s", "the sun .", "Sun the a1 cat")],
        "-Freq": ("cat ##s .", "Dog Sun ##ny", "a1 dog ##s", "sun .", "Sun a1 cat"),
        "-Freq&Sub": ("cat .", "Dog Sun", "a1 dog", "sun .", "Sun a1 cat"),
        "-Freq&Sub&Case": ("cat .", "dog sun", "a1 dog", "sun .", "sun a1 cat"),
        "-Freq&Sub&Case&Pun": ("cat", "dog sun", "a1 dog", "sun", "sun a1 cat"),
    }  # fmt: skip
    removal = cumulative_removal(STATIC, {"set": all_pairs(texts)}, ("the",))
    assert list(removal) == list(rows)
    for name, cuts in rows.items():
        score = expected(STATIC, dict(zip(texts, cuts, strict=True)), all_pairs(texts))
        assert removal[name] == {"set": score, "average": score}, name
    assert len({row["average"] for row in removal.values()}) == len(rows)


BYTES = ["<s>", "</s>", "<mask>", "Ġthe", "Ġcat", "s", "ĠDog", "Ġdog", ".", "Ġsun", "Ġ.", "Ġ", "cat"]


def byte_pieces(texts: list[str]) -> list[list[int]]:
    """A word after a space begins with Ġ; the longest known piece first."""
    ids_of_words = []
    for text in texts:
        rest, ids = text.replace(" ", "Ġ"), []
        while rest:
            piece = max((piece for piece in BYTES if rest.startswith(piece)), key=len)
            ids.append(BYTES.index(piece))
            rest = rest[len(piece) :]
        ids_of_words.append(ids)
    return ids_of_words


def test_cumulative_removal_on_byte_level_pieces_keeps_what_begins_a_word():
    texts = ("Dog cats.", "the sun", "dog .", "sun Dog .", "cat sun")
    rows = {
        "-Freq": ("ĠDog Ġcat s .", "Ġsun", "Ġdog Ġ.", "Ġsun ĠDog Ġ.", "Ġcat Ġsun"),
        "-Freq&Sub": ("ĠDog Ġcat", "Ġsun", "Ġdog Ġ.", "Ġsun ĠDog Ġ.", "Ġcat Ġsun"),
        "-Freq&Sub&Case": ("Ġdog Ġcat", "Ġsun", "Ġdog Ġ.", "Ġsun Ġdog Ġ.", "Ġcat Ġsun"),
        "-Freq&Sub&Case&Pun": ("Ġdog Ġcat Ġ", "Ġsun Ġ", "Ġdog Ġ", "Ġsun Ġdog Ġ", "Ġcat Ġsun Ġ"),
    }  # the last row ends in a blank
    static = StaticEmbeddings(STATIC.embeddings, BYTES, first_without_space, (0, 1))
    removal = cumulative_removal(static, {"set": all_pairs(texts)}, ("Ġthe",))
    for name, cuts in rows.items():
        score = expected(static, dict(zip(texts, cuts, strict=True)), all_pairs(texts))
        assert removal[name]["set"] == score, name
    assert len({row["set"] for row in list(removal.values())[1:]}) == 4


def first_without_space(texts: list[str]) -> list[list[int]]:
    """As `byte_pieces`; a first word without a space before it, which only `static` may ask for, becomes <mask>."""
    return [byte_pieces([text])[0] if text.startswith(" ") else [2] for text in texts]


COUNTED = ["the cats", "the dogs", "the sun . a1", "Dog the cats", "[MASK]"]  # the 4, ##s 3, cat 2, Dog dog . sun a1 1


def test_tokens_are_grouped_by_thirds_of_the_counted_by_piece_and_by_case():
    groups = token_groups(STATIC, COUNTED)
    named = {kind: dict(zip(WORDPIECES, names, strict=True)) for kind, names in groups.items()}
    rest = dict.fromkeys(("[CLS]", "[SEP]", "[MASK]"), "")
    assert named["frequency"] == {
        **rest, "the": "frequent", "##s": "frequent", "cat": "frequent", "Dog": "middle", "dog": "middle",
        ".": "middle", "sun": "rare", "a1": "rare", "Sun": "", "##ny": "",
    }  # fmt: skip
    assert {token for token, name in named["piece"].items() if name == "subword"} == {"##s", "##ny"}
    assert {token for token, name in named["piece"].items() if not name} == {*rest}
    assert {token for token, name in named["case"].items() if name == "upper"} == {"Dog", "Sun"}
    assert {token for token, name in named["case"].items() if not name} == {*rest, "."}


def test_group_cosines_are_the_double_loop_inside_each_group():
    groups = token_groups(STATIC, COUNTED)
    rows = group_cosines(STATIC, groups)
    assert list(rows) == ["all", "frequent", "middle", "rare", "subword", "whole word", "lower", "upper"]
    for kind, names in groups.items():
        for group in {*names} - {""}:
            inside = [STATIC.embeddings[i] for i, name in enumerate(names) if name == group]
            assert rows[group]["tokens"] == len(inside), kind
            assert rows[group]["cosine"] == pytest.approx(loop(inside), abs=1e-4)
            assert rows[group]["excess"] == pytest.approx(loop(inside) - loop([*STATIC.embeddings]), abs=2e-4)
    assert rows["all"] == {"tokens": 13, "cosine": pytest.approx(loop([*STATIC.embeddings]), abs=1e-4), "excess": 0.0}


def loop(rows: list[np.ndarray]) -> float:
    pairs = [(a, b) for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j]
    return abs(float(np.mean([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs])))


SETS = {
    "one": [(5.0, "a b", "b a"), (1.0, "a c", "d d"), (3.0, "a b c", "c d a"), (2.0, "a b", "a d")],
    "two": [(0.0, "a a", "b d"), (4.0, "c", "a c"), (2.0, "b d", "d c c"), (3.0, "a d", "d d")],
}
LETTER_TEXTS = ["a a a b b", "a b c c", "d"]  # a 4, b 3, c 2, d 1


def letters(texts: list[str]) -> list[list[int]]:
    return [["abcd".index(letter) for letter in text.split()] for text in texts]


def counts(contents: list[list[int]]) -> np.ndarray:
    return np.array([[1.0, *(content.count(letter) for letter in range(4))] for content in contents], np.float32)


def test_task_scores_are_spearman_per_set_and_the_mean_of_the_rounded():
    sets = {**SETS, "back": [(-grade, *texts) for grade, *texts in SETS["one"][:3]]}
    rows = {text: counts(letters([text]))[0] for pairs in sets.values() for pair in pairs for text in pair[1:]}
    expected = {
        name: round(100 * spearmanr([cosine(rows[a], rows[b]) for _, a, b in pairs], [g for g, _, _ in pairs])[0], 2)
        for name, pairs in sets.items()
    }
    average = round(sum(expected.values()) / 3, 2)
    assert average == 33.33  # of 100, 100 and -100: both decimals count
    assert task_scores(rows, sets) == {**expected, "average": average}
    same = {"one": SETS["one"], "same": [(1.0, "a b", "a b"), (2.0, "c", "c")]}
    assert task_scores(rows, same) == {"one": expected["one"], "same": None, "average": None}


def test_the_curve_scores_the_sentences_without_the_k_most_frequent_tokens_and_encodes_once():
    calls: list[list[list[int]]] = []

    def encode_ids(contents: list[list[int]]) -> np.ndarray:
        calls.append(contents)
        return counts(contents)

    result = removal_curve(letters, encode_ids, SETS, counted=LETTER_TEXTS, steps=(0, 1, 3))
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
