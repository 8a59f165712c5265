"""The lesson on negation: how little the word "not" moves a vector, and what moves it more."""

from __future__ import annotations

from functools import partial

from cse.app.drawing.verdicts import UNHEARD, percent
from cse.app.lessons import numbers
from cse.app.lessons.cosines import more, percentiles_within, reacting
from cse.app.lessons.lesson import ALL, MIXED, NONE, SOME, Choice, Lesson, Measure, Step

MUSEUM = {"a": "The museum is open today.", "b": "The museum is not open today."}
MEDICINE = {"sentence": "The medicine is safe for children."}
WORDS = "The medicine is dangerous for children.\nThe medicine is harmless for children."
SHORT = {"sentence": "I am happy."}

NEGATION = Lesson(
    "negation",
    "Does a model hear “not”?",
    "One small word turns a meaning round. See how far it moves a vector.",
    (
        Step(
            "A claim and its denial",
            "“The museum is open today.” and “The museum is not open today.” cannot both be true.",
            "similarity", "similarity", MUSEUM,
            Measure(numbers.pair, partial(percentiles_within, bands={"low": float("-inf"), "high": 50, "top": 99})),
            "Where does this pair lie among random pairs?",
            {
                "low": Choice("In the lower half", "These models keep a claim and its denial apart."),
                "high": Choice("In the upper half, below 99 %", "The models see that the two sentences are related, "
                               "and that they are not the same."),
                "top": Choice("Closer than 99 %", "A search for the claim would put its denial near the top."),
                MIXED: Choice("That depends on the model", "The models do not agree on this pair."),
            },
        ),
        Step(
            "How far does it move?",
            "“The medicine is safe for children.” Here 0 % means that the vector stays, and 100 % that it goes as far "
            f"away as an unrelated sentence. Call it a reaction from {percent(UNHEARD)} on.",
            "probe", "changes", {**MEDICINE, "variants": ""},
            Measure(numbers.moved("negated"), partial(reacting, what="“not”")),
            "How many of the models react to “not”?",
            {
                NONE: Choice("None of them", "To these vectors, a safe and an unsafe medicine are much the same."),
                SOME: Choice("Some of them", "Some models notice the word. None of the others would warn you."),
                ALL: Choice("All of them", "These models notice the word in this sentence."),
            },
        ),
        Step(
            "Typing error or “not”?",
            "A typing error leaves the meaning as it is: “The mdeicine is safe for children.” The word “not” turns it "
            "round.",
            "probe", "changes", {**MEDICINE, "variants": ""},
            Measure(
                numbers.moved("typing error", "negated"), partial(more, names=("Typing error", "“not”"), form=percent)
            ),
            "In how many of the models does the typing error move the vector more than “not”?",
            {
                NONE: Choice("None of them", "In these models “not” counts for more than two exchanged letters."),
                SOME: Choice("Some of them", "For some models two exchanged letters count for more than “not”."),
                ALL: Choice("All of them", "Two exchanged letters make another word for the model. “not” is a word "
                            "that stands in sentences about everything."),
            },
        ),
        Step(
            "Opposite or synonym?",
            "Put another word in the place of “safe”: “harmless”, which means much the same, or “dangerous”, which "
            "means the opposite.",
            "probe", "changes", {**MEDICINE, "variants": WORDS},
            Measure(
                numbers.moved("variant 1", "variant 2"),
                partial(more, names=("“dangerous”", "“harmless”"), form=percent),
            ),
            "In how many of the models does “dangerous” move the vector more than “harmless”?",
            {
                ALL: Choice("All of them", "The opposite is farther away than the synonym, as it should be."),
                SOME: Choice("Some of them", "Only some models put the opposite farther away than the synonym."),
                NONE: Choice("None of them", "Opposites stand in the same contexts. A model that learned words from "
                             "their contexts finds them alike."),
            },
        ),
        Step(
            "Is that always so?",
            "“I am happy.” has only three words, so that one more is a large part of the sentence.",
            "probe", "changes", {**SHORT, "variants": ""},
            Measure(numbers.moved("negated"), partial(reacting, what="“not”")),
            f"How many of the models react to “not” here, with {percent(UNHEARD)} or more?",
            {
                NONE: Choice("None of them", "Not even in so short a sentence do these models notice the word."),
                SOME: Choice("Some of them", "How much “not” counts depends on the sentence and on the model. A rule "
                             "from one example is no rule."),
                ALL: Choice("All of them", "In a short sentence every model notices the word. A rule from one example "
                            "is no rule."),
            },
        ),
        Step(
            "What follows",
            "SimCSE, PromptBERT and DCPCSE never met a sentence beside its denial in training. ConPVP did, in its "
            "templates: that is the last lesson. Where a denial matters, check results with a model that was trained "
            "on contradictions. Now try a sentence of your own.",
            "probe", "changes", {**MEDICINE, "variants": WORDS},
        ),
    ),
)  # fmt: skip
