"""The removal curve with a vocabulary of letters, and Spearman per set against scipy."""

import numpy as np
import pytest
from plain_vectors import cosine
from scipy.stats import spearmanr

from cse.evaluation.geometry import removal_curve, task_scores

SETS = {
    "one": [(5.0, "a b", "b a"), (1.0, "a c", "d d"), (3.0, "a b c", "c d a"), (2.0, "a b", "a d")],
    "two": [(0.0, "a a", "b d"), (4.0, "c", "a c"), (2.0, "b d", "d c c"), (3.0, "a d", "d d")],
}
COUNTED = ["a a a b b", "a b c c", "d"]  # a 4, b 3, c 2, d 1


def letters(texts: list[str]) -> list[list[int]]:
    return [["abcd".index(letter) for letter in text.split()] for text in texts]


def counts(contents: list[list[int]]) -> np.ndarray:
    return np.array([[1.0, *(content.count(letter) for letter in range(4))] for content in contents], np.float32)


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
    assert task_scores(dict.fromkeys(rows, np.ones(2)), {"one": SETS["one"]}) == {"one": None, "average": None}
    same = {"one": SETS["one"], "same": [(1.0, "a b", "a b"), (2.0, "c", "c")]}
    assert task_scores(rows, same) == {"one": expected["one"], "same": None, "average": None}
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
