"""Perturbations do what their names say, and leave alone what they cannot change."""

import pytest

from cse.analysis.perturbations import PERTURBATIONS

APPLY = {perturbation.name: perturbation.apply for perturbation in PERTURBATIONS}


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        ("negated", "The shop is open on Sundays.", "The shop is not open on Sundays."),
        ("negated", "The shop is not open.", "The shop is open."),
        ("negated", "He can't swim.", "He can swim."),
        ("negated", "Won't you come?", "Will you come?"),
        ("negated", "She didn't laugh.", "She did laugh."),
        ("negated", "Dogs bark.", None),
        ("numbers changed", "It took 3 days and 15 minutes.", "It took 4 days and 16 minutes."),
        ("numbers changed", "It cost 1,000 or 3.19.", "It cost 1,001 or 3.10."),
        ("numbers changed", "9" * 5000, "9" * 4999 + "0"),
        ("numbers changed", "It took days.", None),
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
        ("typing error", "I am.", None),
        ("capitals", "Stop it", "STOP IT"),
        ("capitals", "STOP 12", None),
        ("final punctuation", "Stop it!", "Stop it"),
        ("final punctuation", "Stop it", "Stop it."),
    ],
)
def test_a_perturbation_gives_the_sentence_that_it_should(name: str, text: str, changed: str | None) -> None:
    assert APPLY[name](text) == changed


@pytest.mark.parametrize("text", ["", " ", "?!", "\N{GRINNING FACE}", "a", "1", "I"])
def test_no_perturbation_fails_on_odd_text_or_returns_it_unchanged(text: str) -> None:
    for name, apply in APPLY.items():
        assert apply(text) != text, name
