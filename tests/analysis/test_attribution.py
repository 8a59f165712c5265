"""Words, what differs between two texts, and perturbed sentences."""

import pytest

from cse.analysis.attribution import PERTURBATIONS, changes, without, words


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


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("the red dog  barked", "the dog barked loudly",
         [("both", "the"), ("first", "red"), ("both", "dog barked"), ("second", "loudly")]),
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
        ("negated", "Won't you come?", "Will you come?"),
        ("negated", "She didn't laugh.", "She did laugh."), ("negated", "Dogs bark.", None),
        ("numbers changed", "It took 3 days and 15 minutes.", "It took 4 days and 16 minutes."),
        ("numbers changed", "It cost 1,000 or 3.19.", "It cost 1,001 or 3.10."),
        ("names exchanged", "Anna thanked Peter.", "Peter thanked Anna."),
        ("names exchanged", "The cat sleeps.", None),
        ("words reversed", "The dog chased the cat.", "cat the chased dog The."),
        ("longest word dropped", "The orchestra played.", "The played."),
        ("word doubled", "The orchestra played.", "The orchestra orchestra played."),
        ("typing error", "The orchestra played.", "The ocrhestra played."),
        ("typing error", "I am.", None), ("typing error", "बैंक विद्यालय", "बैंक विलद्याय"),
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
