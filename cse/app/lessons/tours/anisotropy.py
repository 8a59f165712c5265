"""The lesson on anisotropy: every model has its own scale of cosines, and percentiles make models comparable."""

from __future__ import annotations

from functools import partial

from cse.app.lessons import numbers
from cse.app.lessons.cosines import apart, cosines_apart, highest_mean, lowest_percentile, same_order
from cse.app.lessons.lesson import NO, YES, Choice, Lesson, Measure, Step
from cse.app.models.naming import title
from cse.models.names import BUNDLED_NAMES

UNRELATED = {"a": "The kettle is boiling in the kitchen.", "b": "The court delayed its verdict."}
BANKS = {"a": "He deposited money at the bank.", "b": "He sat on the bank of the river."}
CONE = "’s vectors lie closest together, so its cosines look higher than those of other models."
MORE = "Such a cosine is least rare among the random pairs of"
LIMIT = 0.1  # of two cosines that are called about the same

ANISOTROPY = Lesson(
    "anisotropy",
    "Anisotropy: is 0.5 a high cosine?",
    "Each model has its own scale of cosines. Percentiles make models comparable.",
    (
        Step(
            "Nothing in common",
            "A boiling kettle and a delayed verdict have nothing to do with each other. Each model gives this pair a "
            "cosine.",
            "similarity", "similarity", UNRELATED, Measure(numbers.pair, partial(cosines_apart, limit=LIMIT)),
            "Do the cosines of the models differ by more than 0.1?",
            {
                YES: Choice("Yes", "The models agree that the pair is unrelated, and say so with different numbers."),
                NO: Choice("No, they are about the same", "On this pair the models have nearly the same scale."),
            },
        ),
        Step(
            "A narrow cone",
            "The grey shapes are the cosines of random pairs. Where they lie high, all vectors point into much the "
            "same direction, as in a narrow cone. That is called anisotropy.",
            "similarity", "similarity", UNRELATED, Measure(numbers.pair, highest_mean),
            "In which model do random pairs lie highest?",
            {model: Choice(title(model), f"{title(model)}{CONE}") for model in BUNDLED_NAMES},
        ),
        Step(
            "Rank instead of value",
            "The percentile says how many random pairs of the same model are less alike than this one. It does not "
            "depend on the scale.",
            "similarity", "similarity", UNRELATED, Measure(numbers.pair, same_order),
            "Does the model with the highest cosine of this pair also give it the highest percentile?",
            {
                YES: Choice("Yes", "For this pair, cosines and percentiles name the same model."),
                NO: Choice("No", "Whoever compares cosines between models compares scales. Compare percentiles."),
            },
        ),
        Step(
            "Is one half a lot?",
            "“He deposited money at the bank.” and “He sat on the bank of the river.” share a word, and little else.",
            "similarity", "similarity", BANKS, Measure(numbers.pair, lowest_percentile),
            "In which model is the cosine of this pair the least remarkable, by its percentile?",
            {model: Choice(title(model), f"{MORE} {title(model)}.") for model in BUNDLED_NAMES},
        ),
        Step(
            "One threshold for all",
            "The search now shows only sentences that are closer to the query than 99.9 % of random pairs are. Each "
            "model turns that percentile into a cosine of its own.",
            "search", "hits",
            {"q": "Our flight was cancelled.", "k": "5", "threshold": "99.9", "corpus": "demo"},
            Measure(numbers.thresholds, partial(apart, limit=LIMIT)),
            "Do these cosines differ by more than 0.1?",
            {
                YES: Choice("Yes", "One cosine as a threshold would be strict for one model and lax for another. One "
                            "percentile is fair to all."),
                NO: Choice("No, they are about the same", "With these models one cosine could serve as a threshold for "
                           "all."),
            },
        ),
    ),
)  # fmt: skip
