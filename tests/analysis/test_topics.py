"""Groups of texts: separable ones are found, their words are those of c-TF-IDF by hand, typical texts are central."""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

from cse.analysis.topics import SIGN_OFF, class_words, group_names, grouped, matched, typical, word_counts
from cse.evaluation.clustering import nmi


def test_separable_groups_are_found_the_largest_first():
    rng = np.random.default_rng(0)
    gold = np.repeat([0, 1, 2], [10, 40, 25])
    vectors = np.eye(3)[gold] * rng.uniform(1, 9, size=(75, 1)) + rng.normal(scale=0.05, size=(75, 3))
    groups = grouped(vectors, 3, seed=0)
    assert nmi(gold, groups) == 1
    assert np.bincount(groups).tolist() == [40, 25, 10]
    assert groups.tolist() == grouped(vectors, 3, seed=0).tolist()
    copied = np.concatenate([vectors, np.repeat(vectors[:1], 50, axis=0)])  # of the smallest group
    with_copies = grouped(copied, 3, 0, [*map(str, range(75)), *["0"] * 50])
    assert np.bincount(with_copies).tolist() == [60, 40, 25]
    assert (with_copies[:75] == np.array([1, 2, 0])[groups]).all()  # the groups are those without copies


def test_words_are_ranked_by_class_based_tf_idf():
    texts = ["Dog barks; dog runs!", "dog eats fish", "fish swims", "The fish swims, swims"]
    groups = np.array([1, 1, 0, 0])
    words = {0: "fish swims fish swims swims".split(), 1: "dog barks dog runs dog eats fish".split()}
    everywhere = Counter(words[0] + words[1])
    mean = (len(words[0]) + len(words[1])) / 2
    for group, ranked in enumerate(class_words(*word_counts(texts), groups, 9)):
        counts = Counter(words[group])
        expected = {w: n / len(words[group]) * math.log(1 + mean / everywhere[w]) for w, n in counts.items()}
        assert dict(ranked) == pytest.approx(expected)
        assert [score for _, score in ranked] == pytest.approx(sorted(expected.values(), reverse=True))
    assert [ranked[0][0] for ranked in class_words(*word_counts(texts), groups, 1)] == ["swims", "dog"]


def test_typical_texts_are_those_nearest_to_the_mean_of_their_group():
    rng = np.random.default_rng(1)
    vectors, groups = rng.normal(size=(30, 4)), np.arange(30) % 3
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for group, rows_of_group in enumerate(typical(vectors, groups, 4)):
        rows = np.flatnonzero(groups == group)
        mean = sum(unit[row] for row in rows)
        assert rows_of_group == sorted(rows, key=lambda row: -float(unit[row] @ mean))[:4]


@pytest.mark.parametrize(
    ("texts", "best"),
    [
        (["मौसम ठंडा है", "मौसम अच्छा है", "बैंक बंद है", "बैंक खुला है"], ["मौसम", "बैंक"]),
        (["كِتَابٌ جَدِيدٌ", "كِتَابٌ قَدِيمٌ", "بَيْتٌ كَبِيرٌ", "بَيْتٌ صَغِيرٌ"], ["كِتَابٌ", "بَيْتٌ"]),
        (
            ["E\u0301te\u0301 chaud", "l'e\u0301te\u0301 dernier", "ho\u0302tel cher", "Ho\u0302tel plein"],
            ["été", "hôtel"],
        ),
        (["送餐慢", "送餐快", "米饭硬", "米饭软"], ["送餐", "米饭"]),
    ],
    ids=["Hindi", "Arabic with points", "French in NFD", "Chinese"],
)
def test_the_words_of_any_language_are_words_of_the_texts(monkeypatch, texts, best):
    monkeypatch.setattr("cse.corpus.words.segmenter", lambda language: None)
    ranked = class_words(*word_counts(texts), np.array([0, 0, 1, 1]), 9)
    assert [group[0][0] for group in ranked] == best
    whole = unicodedata.normalize("NFC", " ".join(texts)).lower()
    assert all(word in whole for group in ranked for word, _ in group)


def test_names_have_no_boilerplate_numbers_or_names_of_sign_offs():
    money, post = ["refund", "invoice", "charge", "price"], ["parcel", "courier", "address", "delay"]
    people = ["Anna Miller", "Tom"]
    texts = [
        f"Dear {people[number % 2]},\n{word} {number} in this ticket.\nKind regards,\n{people[number % 2]}"
        for number, word in enumerate([*money, *post] * 2 + ["account"] * 30)
    ]
    names = group_names(texts, np.array([0, 0, 0, 0, 1, 1, 1, 1] * 2 + [2] * 30), 9)
    assert [set(words) for words in names.words[:2]] == [set(money), set(post)]
    assert names.left_out == ["ticket", "account"]
    mail = f"It is broken.\nThanks\n{'-' * 9000}\nFrom: Help <a@b.c> Best {'a' * 9000}1"
    assert SIGN_OFF.sub("", mail) == mail  # and not after hours
    assert SIGN_OFF.sub("", "It is broken. Thanks!\n- Anna O'Neil - B.") == "It is broken."


def test_a_word_of_many_texts_that_marks_a_group_is_no_boilerplate():
    texts, topics = [], ("printer", "invoice", "password", "delivery", "crash")
    for topic in topics:  # a fifth of the texts each; the tails stand in all groups
        texts += [f"The {topic} again, {'urgent please' if row % 2 else 'since yesterday'}" for row in range(12)]
    texts[::13] = [f"{text} advance" for text in texts[::13]]  # one text of each group
    names = group_names(texts, np.repeat(np.arange(5), 12), 4)
    assert [words[0] for words in names.words] == [*topics]
    assert {"urgent", "yesterday"} <= set(names.left_out)
    assert not {*topics, "advance"} & set(names.left_out)


def test_a_word_of_few_texts_names_no_group_whose_texts_have_another_in_common():
    texts = [
        f"Please {act} it{' on the tablet' if row < 3 else ''}" for act in ("cancel", "print") for row in range(10)
    ]
    groups = np.repeat([0, 1], 10)
    assert group_names(texts, groups, 3).words == [["cancel"], ["print"]]
    assert "tablet" in group_names([f"{row} {text}" for row, text in enumerate(texts[:3])] * 3, groups[:9], 3).words[0]


def test_names_are_words_that_mean_what_the_group_does_in_one_form_each():
    texts = ["took hotels", "took hotel", "took hotel", "asked doctor", "asked doctors", "asked nurse"]
    groups = np.array([0, 0, 0, 1, 1, 1])
    vectors = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3, np.float32)
    meaning = {"hotel": (1, 0), "hotels": (1, 0), "doctor": (0, 1), "doctors": (0, 1), "nurse": (0, 1)}

    def encode(words: Sequence[str]) -> np.ndarray:
        return np.array([meaning.get(word, (1, 1)) for word in words], np.float32)

    assert [words[0] for words in group_names(texts, groups, 2).words] == ["took", "asked"]
    named = group_names(texts, groups, 2, vectors, encode).words
    assert named == [["hotel", "took"], ["doctor", "nurse"]]


def test_groups_with_half_of_their_texts_in_common_have_one_number_and_others_the_next_ones():
    reference = np.array([0] * 6 + [1] * 6 + [2] * 6)
    moved = np.array([2] * 4 + [0] * 8 + [1] + [2] * 5)  # of group 2 of the reference 5 of 6, of group 1 all; a single
    known = np.arange(3)[:, None] == reference
    assert matched(moved, known).tolist() == [2] * 4 + [1] * 8 + [3] + [2] * 5
    assert matched(reference, np.zeros((0, 18), bool)).tolist() == reference.tolist()


def test_of_several_pairings_of_groups_the_one_with_the_largest_shares_is_taken():
    rng = np.random.default_rng(3)
    reference = np.repeat(np.arange(4), 20)
    groups = np.where(rng.random(80) < 0.3, rng.integers(4, size=80), (reference + 1) % 4)
    best = max((np.array(order)[groups] == reference).sum() for order in permutations(range(4)))
    assert (matched(groups, np.arange(4)[:, None] == reference) == reference).sum() == best
