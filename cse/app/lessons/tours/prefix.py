"""The lesson on DCPCSE: a frozen model, a short trained prefix in every layer, and what that buys."""

from __future__ import annotations

from functools import partial

from cse.app.lessons import numbers
from cse.app.lessons.inside import most_attention, moved_within, score_against, times_trained
from cse.app.lessons.lesson import Choice, Lesson, Measure, Step
from cse.app.lessons.numbers import DCPCSE, SIMCSE

LOWEST = float("-inf")
CAKE = {"one": "The baker sold a cake to the girl.", "other": "The girl bought a cake from the baker.", "off": ""}

PREFIX = Lesson(
    "prefix",
    "Thousands of numbers against millions",
    "DCPCSE keeps the language model frozen and trains a short prefix alone.",
    (
        Step(
            "Train less",
            "SimCSE changes every layer of the language model. DCPCSE leaves the model as it is. It trains only a few "
            "vectors, the prefix, that each layer reads beside the sentence.",
            "results", "results", {},
            Measure(
                numbers.sizes,
                partial(times_trained, DCPCSE, many=SIMCSE, bands={"few": LOWEST, "dozens": 10, "hundreds": 100}),
            ),
            "How many times as many numbers does SimCSE train?",
            {
                "few": Choice("Fewer than 10 times", "The prefix of this model is not small."),
                "dozens": Choice("10 to 100 times", "The prefix is a small part of the model."),
                "hundreds": Choice("100 times or more", "A checkpoint of DCPCSE needs the prefix alone. Many of them "
                                   "can share one frozen model."),
            },
        ),
        Step(
            "What does it cost?",
            "The score is the mean over seven tasks of textual similarity (STS): 100 means that a model orders all "
            "pairs as people do.",
            "results", "results", {}, Measure(numbers.scores, partial(score_against, DCPCSE, other=SIMCSE)),
            "How does DCPCSE compare with SimCSE?",
            {
                "ahead": Choice("Ahead by more than 2 points", "Here training less gave more."),
                "level": Choice("Within 2 points", "A small prefix does nearly what training the layers does. The last "
                                "step asks how much that is."),
                "behind": Choice("Behind by more than 2 points", "Training less costs something here."),
            },
        ),
        Step(
            "Who reads the prefix?",
            "In every layer each token spreads its attention over the sentence and the prefix. See how much of it the "
            "prefix gets in the layer where it gets most.",
            "probe", "xray", CAKE,
            Measure(
                numbers.attention_on_prefix,
                partial(most_attention, DCPCSE, bands={"little": LOWEST, "some": 0.1, "much": 0.3}),
            ),
            "How much of the attention goes to the prefix there?",
            {
                "little": Choice("Less than 10 %", "The tokens hardly look at the prefix."),
                "some": Choice("10 to 30 %", "The prefix is one voice among several."),
                "much": Choice("30 % or more", "The tokens look at the prefix. Whether that changes the vector is "
                               "another question: the next step."),
            },
        ),
        Step(
            "Take it away",
            "“The baker sold a cake to the girl.” Switch off the prefix in every layer. What is left is the frozen "
            "model. 100 % is as far away as an unrelated sentence.",
            "probe", "xray", CAKE,
            Measure(
                numbers.moved_without_prefix,
                partial(moved_within, DCPCSE, bands={"little": LOWEST, "some": 0.1, "much": 0.5}),
            ),
            "How far does the vector move?",
            {
                "little": Choice("Less than 10 %", "For this sentence the prefix corrects the frozen model a little. "
                                 "Attention is not influence."),
                "some": Choice("10 to 50 %", "The prefix changes what the frozen model says about this sentence."),
                "much": Choice("50 % or more", "Without its prefix the model says something else about this sentence."),
            },
        ),
        Step(
            "And without any training?",
            "A fair comparison needs the frozen model itself: the mean of its tokens, without a prefix and without any "
            "training here.",
            "results", "results", {},
            Measure(numbers.scores, partial(score_against, DCPCSE, other="mean", called="the untrained mean")),
            "How does DCPCSE compare with it?",
            {
                "ahead": Choice("Ahead by more than 2 points", "The prefix brings the frozen model forward."),
                "level": Choice("Within 2 points", "This frozen model began as one that learned from labelled pairs. "
                                "It left little to gain: always ask what the start was."),
                "behind": Choice("Behind by more than 2 points", "The prefix has made the frozen model worse."),
            },
        ),
    ),
)  # fmt: skip
