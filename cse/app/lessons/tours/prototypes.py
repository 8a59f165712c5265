"""The lesson on ConPVP: templates that affirm and deny a sentence, and what the model learns from them."""

from __future__ import annotations

from functools import partial

from cse.app.drawing.verdicts import UNHEARD, percent
from cse.app.lessons import numbers
from cse.app.lessons.cosines import more, rank_of, reaction_of
from cse.app.lessons.inside import gap_of_kinds, nearest_kind
from cse.app.lessons.lesson import ALL, NO, NONE, SOME, YES, Choice, Lesson, Measure, Step
from cse.app.lessons.numbers import CONPVP

MUSEUM = {"one": "The museum is open today.", "other": "The museum is not open today.", "off": ""}
OPEN = {"sentence": MUSEUM["one"], "variants": ""}
CLAUSE = {"sentence": MUSEUM["one"], "variants": "It is not true that the museum is open today."}

PROTOTYPES = Lesson(
    "prototypes",
    "Prototypes: learning from denial",
    "ConPVP compares a sentence with templates that affirm it and that deny it.",
    (
        Step(
            "Two kinds of templates",
            "ConPVP puts the sentence into templates that affirm it, such as “This sentence : "
            "[X] means [MASK].”, and into others that deny it. Their vectors are the sentence's prototypes.",
            "probe", "xray", MUSEUM, Measure(numbers.near_prototypes, partial(nearest_kind, CONPVP)),
            "“The museum is open today.” Which kind is the nearest prototype?",
            {
                "affirms": Choice("One that affirms", "That is what the training asks for: near to what affirms."),
                "denies": Choice("One that denies", "The training asks for the opposite: it has not reached this "
                                 "sentence."),
            },
        ),
        Step(
            "How far apart?",
            "Training pulls a sentence towards a template that affirms it, and pushes it away from one that denies it.",
            "probe", "xray", MUSEUM,
            Measure(
                numbers.near_prototypes,
                partial(gap_of_kinds, CONPVP, bands={"small": float("-inf"), "middle": 0.1, "large": 0.5}),
            ),
            "How far apart are the mean cosines with the two kinds?",
            {
                "small": Choice("Less than 0.1", "The model can hardly tell the two kinds of templates apart."),
                "middle": Choice("0.1 to 0.5", "The model tells the two kinds of templates apart."),
                "large": Choice("0.5 or more", "The model tells the two kinds of templates apart with ease."),
            },
        ),
        Step(
            "So it should hear “not”",
            "The templates that deny a sentence contain words such as “not”. Now the sentence itself gets one: “The "
            f"museum is not open today.” Call it a reaction from {percent(UNHEARD)} of the way to an unrelated "
            "sentence on.",
            "probe", "changes", OPEN, Measure(numbers.moved("negated"), partial(reaction_of, CONPVP)),
            "Does ConPVP react to it?",
            {
                YES: Choice("Yes", "What it learned from the templates helps with the sentence."),
                NO: Choice("No", "To tell templates apart is not to understand a denial within a sentence."),
            },
        ),
        Step(
            "At least more than others?",
            "The other methods see no denial while they train.",
            "probe", "changes", OPEN, Measure(numbers.moved("negated"), partial(rank_of, CONPVP)),
            "Among the models of the page, how far does “not” move ConPVP?",
            {
                "most": Choice("Farthest of all", "It reacts more than the models that see no denial."),
                "between": Choice("Neither most nor least", "For this sentence its training makes no clear "
                                                            "difference."),
                "least": Choice("Least of all", "It reacts less than the models that see no denial."),
            },
        ),
        Step(
            "A whole clause",
            "“It is not true that the museum is open today.” puts the denial around the sentence, as the templates do.",
            "probe", "changes", CLAUSE,
            Measure(numbers.moved("variant 1", "negated"), partial(more, names=("The clause", "“not”"), form=percent)),
            "In how many of the models does the clause move the vector more than “not” does?",
            {
                ALL: Choice("All of them", "More words of denial count for more."),
                SOME: Choice("Some of them", "See which models: the number of words alone does not decide. The "
                             "negative templates of ConPVP are always the same few, so it may have learned their "
                             "wording."),
                NONE: Choice("None of them", "More words of denial do not count for more."),
            },
        ),
    ),
)  # fmt: skip
