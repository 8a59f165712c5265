"""The lesson on the [MASK] prompt: what a vector says in words, the template's own words, and denoising."""

from __future__ import annotations

from functools import partial

from cse.app.lessons import numbers
from cse.app.lessons.lesson import ALL, MIXED, NO, NONE, SOME, YES, Choice, Lesson, Measure, Step
from cse.app.lessons.numbers import PROMPTBERT, WORDS
from cse.app.lessons.words import function_words, readers, template_words, top_word, words_left

DOCTOR = {"sentence": "The doctor treated the patient in hospital.", "k": str(WORDS), "share": "1"}
DUCKS = {"sentence": "The children fed the ducks in the park.", "k": str(WORDS), "share": "1"}
RICH = {"sentence": "He is not rich.", "k": str(WORDS), "share": "1"}
LEFT = {
    NONE: Choice("None", "The template's words are gone. What comes up now is due to the sentence."),
    SOME: Choice("Some", "Denoising made the template weaker. It did not silence it."),
    ALL: Choice("All", "Here denoising did not help: the template still speaks."),
}
HALF = {
    NONE: Choice("None", "For this sentence one half is enough."),
    SOME: Choice("Some", "One half is not enough to silence the template."),
    ALL: Choice("All", "One half changes nothing for this sentence."),
}

MASK = Lesson(
    "mask",
    "The [MASK] prompt and its bias",
    "A template asks a language model for a word, and answers a little for itself.",
    (
        Step(
            "Ask for one word",
            "A masked language model guesses missing words. PromptBERT puts the sentence into a template that leaves "
            "out one word, [MASK], and takes the vector that the model makes there. So we can ask which words the "
            "vector stands for.",
            "tokens", "tokens", DOCTOR, Measure(numbers.readings, readers),
        ),
        Step(
            "A template without a sentence",
            "Leave the sentence out. The template still has a [MASK], and the model still predicts words for it. "
            "(In ConPVP's template each [P] is a trained vector.)",
            "tokens", "tokens", DOCTOR, Measure(numbers.readings, function_words),
            "Are most words that the template says alone function words and punctuation, such as “a” or a comma?",
            {
                YES: Choice("Yes", "The template pulls every sentence towards the same frequent words. That is its "
                            "bias."),
                NO: Choice("No, mostly nouns and verbs", "These templates have a bias towards words of some content."),
                MIXED: Choice("That depends on the model", "Each template has a bias of its own."),
            },
        ),
        Step(
            "How much of it is in the vector?",
            "“The children fed the ducks in the park.” Look at the words that PromptBERT says for the sentence, before "
            "anything is subtracted.",
            "tokens", "tokens", DUCKS, Measure(numbers.readings, partial(template_words, PROMPTBERT)),
            f"How many of these {WORDS} words does the template say alone?",
            {
                NONE: Choice("None", "For this sentence the bias does not show among the likeliest words."),
                "few": Choice("Fewer than half", "A part of what the vector says comes from the template."),
                "many": Choice("Half or more", "Much of what the vector says comes from the template, not from the "
                               "ducks."),
            },
        ),
        Step(
            "Denoising",
            "While it trains, PromptBERT subtracts what the template says alone. That is called denoising. The third "
            "list shows the words after it.",
            "tokens", "tokens", DUCKS, Measure(numbers.readings, partial(words_left, PROMPTBERT)),
            "How many of the template's words are still among PromptBERT's likeliest after that?",
            LEFT,
        ),
        Step(
            "Only half of it",
            "In the options you choose how much of the template is subtracted. Now it is one half.",
            "tokens", "tokens", {**DUCKS, "share": "0.5"}, Measure(numbers.readings, partial(words_left, PROMPTBERT)),
            "How many of the template's words are left with half the subtraction?",
            HALF,
        ),
        Step(
            "What it does not cure",
            "“He is not rich.” Denoising removes what the template adds. It cannot add what the model did not read.",
            "tokens", "tokens", RICH,
            Measure(numbers.readings, partial(top_word, PROMPTBERT, sentence=RICH["sentence"])),
            "Which word is PromptBERT's likeliest?",
            {
                "poor": Choice("poor", "The model turned “not rich” into its opposite."),
                "not": Choice("not", "The model says that something is denied, and not what."),
                "rich": Choice("rich", "The vector says what the sentence speaks of. The word “not” is lost: that is "
                               "the next lesson."),
            },
        ),
    ),
)  # fmt: skip
