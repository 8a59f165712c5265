"""The lesson on sentence vectors: what they are, what they are good for, and what they miss."""

from __future__ import annotations

from functools import partial

from cse.app.lessons import numbers
from cse.app.lessons.cosines import closer, percentiles_within, same_best
from cse.app.lessons.inside import dimensions
from cse.app.lessons.lesson import ALL, MIXED, NO, NONE, SOME, YES, Choice, Lesson, Measure, Step

KETTLE = {"a": "The kettle is boiling in the kitchen.", "b": "Water is getting hot for tea."}
FOUR = """The doctor examined the patient.
A physician looked after somebody who was ill.
He put his savings in the bank.
He sat on the bank of the river."""
HELPED = """The lawyer helped the farmer.
The farmer helped the lawyer.
The farmer received help from the lawyer."""

VECTOR = Lesson(
    "vector",
    "What is a sentence vector?",
    "Numbers that stand for a meaning: what they are good for, and what they miss.",
    (
        Step(
            "A sentence becomes numbers",
            "A model turns each sentence into a list of numbers, its vector. Nobody reads the numbers one by one. We "
            "compare two vectors by their cosine: 1 is the same direction, and the lower it is, the less alike the "
            "model finds the sentences.",
            "similarity", "similarity", KETTLE, Measure(numbers.sizes, dimensions),
        ),
        Step(
            "High compared with what?",
            "“The kettle is boiling in the kitchen.” and “Water is getting hot for tea.” share hardly a word. Compare "
            "them with pairs of sentences drawn at random.",
            "similarity", "similarity", KETTLE,
            Measure(
                numbers.pair, partial(percentiles_within, bands={"ordinary": float("-inf"), "high": 90, "top": 99}),
            ),
            "Of 100 random pairs, how many are closer than this one?",
            {
                "ordinary": Choice(
                    "More than 10", "For these models the pair is nothing special: they have missed what it shares."
                ),
                "high": Choice("1 to 10", "The models see that the two sentences have something in common."),
                "top": Choice(
                    "Fewer than 1",
                    "The vectors bring together what means something alike, even where the words differ.",
                ),
                MIXED: Choice("That depends on the model", "The models do not agree on how much the pair shares."),
            },
        ),
        Step(
            "Words or meaning?",
            "Two sentences are about a doctor and have no content word in common. Two others share the word “bank”, "
            "once for money and once of a river.",
            "similarity", "all-pairs", {"list": FOUR, "value": "cosine"},
            Measure(numbers.cosines, partial(closer, first=(0, 1), second=(2, 3), names=("The doctors", "The banks"))),
            "How many of the models find the two doctors closer than the two banks?",
            {
                ALL: Choice("All of them", "Meaning counts for more than a shared word. That is why search by vectors "
                            "finds what a search for words does not."),
                SOME: Choice("Some of them", "Not every model looks past a shared word."),
                NONE: Choice("None of them", "In these models a shared word counts for more than a shared meaning."),
            },
        ),
        Step(
            "Who helped whom?",
            "“The lawyer helped the farmer.” has the same words as “The farmer helped the lawyer.”, and the same "
            "meaning as “The farmer received help from the lawyer.”",
            "similarity", "all-pairs", {"list": HELPED, "value": "cosine"},
            Measure(
                numbers.cosines, partial(closer, first=(0, 2), second=(0, 1), names=("Same meaning", "Same words")),
            ),
            "How many of the models find the sentence of the same meaning closer?",
            {
                ALL: Choice("All of them", "These models know who did what to whom."),
                SOME: Choice("Some of them", "Who did what to whom reaches some of the models only."),
                NONE: Choice("None of them", "A vector says what a sentence is about. Who did what to whom hardly "
                             "shows in it."),
            },
        ),
        Step(
            "Search by meaning",
            "A search turns the query into a vector and lists the nearest sentences of a corpus: “Where can I hear "
            "live music tonight?”",
            "search", "hits",
            {"q": "Where can I hear live music tonight?", "k": "5", "threshold": "0", "corpus": "demo"},
            Measure(numbers.hits, same_best),
            "Do all models find the same best sentence?",
            {
                YES: Choice("Yes", "Here they name the same winner. Look at the places below it: there the models "
                                   "differ."),
                NO: Choice("No", "Each model has its own idea of what is near, so try several on texts of your own."),
            },
        ),
    ),
)  # fmt: skip
