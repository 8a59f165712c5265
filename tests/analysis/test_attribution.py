"""A word's part in a cosine is what a slow loop finds that leaves out one word after the other."""

import numpy as np
import pytest
from app_models import write_model

import cse
from cse.analysis.attribution import PERTURBATIONS, attribute, changes, without, words

PAIR = ("The dog, in the park, was happy.", "a big cat!")
SHORTER = (
    ["dog, in the park, was happy.", "The, in the park, was happy.", "The dog, the park, was happy.",
     "The dog, in park, was happy.", "The dog, in the, was happy.", "The dog, in the park, happy.",
     "The dog, in the park, was."],
    ["big cat!", "a cat!", "a big!"],
)  # fmt: skip
WORDLESS = (",,.", "!")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory, bert_folder):
    return cse.load(str(write_model(tmp_path_factory.mktemp("model") / "promptbert", bert_folder, "promptbert")))


def cosine(encoder, first: str, second: str) -> float:
    a, b = (encoder.encode(text).astype(np.float64) for text in (first, second))
    return float(a @ b / np.sqrt(a @ a) / np.sqrt(b @ b))


def test_a_words_value_is_the_cosine_with_it_minus_the_cosine_without_it(encoder):
    shares, (first, second) = attribute(encoder.encode, *PAIR), PAIR
    whole = cosine(encoder, first, second)
    assert shares.cosine == pytest.approx(whole, abs=1e-6)
    np.testing.assert_allclose(shares.values[0], [whole - cosine(encoder, t, second) for t in SHORTER[0]], atol=1e-6)
    np.testing.assert_allclose(shares.values[1], [whole - cosine(encoder, first, t) for t in SHORTER[1]], atol=1e-6)
    wordless = (cosine(encoder, WORDLESS[0], second), cosine(encoder, first, WORDLESS[1]))
    assert shares.wordless == pytest.approx(wordless, abs=1e-6)
    sums = [sum(whole - cosine(encoder, t, second) for t in SHORTER[0]) - (whole - wordless[0])]
    sums.append(sum(whole - cosine(encoder, first, t) for t in SHORTER[1]) - (whole - wordless[1]))
    assert shares.errors == pytest.approx(sums, abs=1e-5)
    assert np.ptp(shares.values[0]) > 0.01  # the model tells its words apart


def test_words_are_what_spaces_separate_without_the_punctuation_at_their_edges():
    text = '"Don\'t!" - a well-known 5% of\N{NO-BREAK SPACE}C++ (\N{GRINNING FACE})'
    spans = words(text)
    assert [text[start:end] for start, end in spans] == [
        "Don't",
        "a",
        "well-known",
        "5",
        "of",
        "C++",
        "\N{GRINNING FACE}",
    ]
    assert without(text, [spans[0], spans[5]]) == '"!" - a well-known 5% of (\N{GRINNING FACE})'
    assert without("One  two , three .", []) == "One two, three."


def test_words_without_spaces_are_pairs_of_characters_unless_a_segmenter_is_installed(monkeypatch):
    monkeypatch.setattr("cse.corpus.words.segmenter", lambda language: None)
    text = "“送餐太慢了，以后不点！” don't, मौसम ठंडा"
    assert [text[slice(*span)] for span in words(text)] == [
        "送餐", "太慢", "了", "以后", "不点", "don't", "मौसम", "ठंडा",
    ]  # fmt: skip
    assert without(text, words(text)[:2]).startswith("“了，以后")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("the red dog  barked", "the dog barked loudly",
         [("both", "the"), ("first", "red"), ("both", "dog barked"), ("second", "loudly")]),
        ("error 12 in a", "error 13 in a", [("both", "error"), ("first", "12"), ("second", "13"), ("both", "in a")]),
        ("same", "same", [("both", "same")]), ("", "new", [("second", "new")]),
        ("送餐太慢了 ok", "送餐很慢了 ok", [("both", "送餐"), ("first", "太"), ("second", "很"), ("both", "慢了 ok")]),
    ],
)  # fmt: skip
def test_words_that_differ_are_runs_in_order(first, second, expected):
    assert changes(first, second) == expected


APPLY = {perturbation.name: perturbation.apply for perturbation in PERTURBATIONS}


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        ("negated", "The shop is open on Sundays.", "The shop is not open on Sundays."),
        ("negated", "The shop is not open.", "The shop is open."),
        ("negated", "He can't swim.", "He can swim."), ("negated", "Won't you come?", "Will you come?"),
        ("negated", "She didn't laugh.", "She did laugh."), ("negated", "Dogs bark.", None),
        ("numbers changed", "It took 3 days and 15 minutes.", "It took 4 days and 16 minutes."),
        ("numbers changed", "It cost 1,000 or 3.19.", "It cost 1,001 or 3.10."),
        ("numbers changed", "9" * 5000, "9" * 4999 + "0"), ("numbers changed", "It took days.", None),
        ("negated", "In May the shops were open.", "In May the shops were not open."),
        ("negated", "It is not, and it left.", "It is and it left."),
        ("negated", "I ain't going.", "I am going."),
        ("negated", "I don\N{RIGHT SINGLE QUOTATION MARK}t know.", "I do know."),
        ("names exchanged", "The dog likes Anna.", None),
        ("typing error", "Call 5551234 now.", "Clal 5551234 now."),
        ("names exchanged", "Anna met Peter in Rome.", "Anna met Rome in Peter."),
        ("names exchanged", "Anna thanked Peter.", "Peter thanked Anna."),
        ("names exchanged", "The cat sleeps.", None),
        ("words reversed", "The dog chased the cat.", "cat the chased dog The."),
        ("words reversed", "Hello.", None),
        ("longest word dropped", "The orchestra played.", "The played."),
        ("longest word dropped", "Hello.", None),
        ("word doubled", "The orchestra played.", "The orchestra orchestra played."),
        ("typing error", "The orchestra played.", "The ocrhestra played."),
        ("typing error", "I am.", None), ("typing error", "बैंक विद्यालय", "बैंक विलद्याय"),
        ("typing error", "e\u0301le\u0300ve la\u0300", "e\u0301e\u0300lve la\u0300"),
        ("longest word dropped", "मौसम अच्छा है", "मौसम है"),
        ("word doubled", "l'e\u0301te\u0301 est la\u0300", "l'e\u0301te\u0301 l'e\u0301te\u0301 est la\u0300"),
        ("capitals", "Stop it", "STOP IT"), ("capitals", "STOP 12", None),
        ("final punctuation", "Stop it!", "Stop it"), ("final punctuation", "Stop it", "Stop it."),
    ],
)  # fmt: skip
def test_a_perturbation_gives_the_sentence_that_it_should(name, text, changed):
    assert APPLY[name](text) == changed


@pytest.mark.parametrize("text", ["", " ", "?!", "\N{GRINNING FACE}", "a", "1", "I"])
def test_no_perturbation_fails_on_odd_text_or_returns_it_unchanged(text):
    for name, apply in APPLY.items():
        assert apply(text) != text, name
