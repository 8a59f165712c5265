"""What the words at [MASK] say to the questions of lessons."""

from __future__ import annotations

from collections.abc import Mapping

from cse.app.drawing.verdicts import denoising, quoted, still_said
from cse.app.lessons.lesson import ALL, MIXED, NO, NONE, SOME, YES, Measured, of_model
from cse.app.models.naming import title
from cse.app.sections.tokens import Reading

# The words that a template says: function words, and words of reporting and of time that fit almost anywhere.
FUNCTION_WORDS = frozenset(
    "a an the this that these those it its i me my we us our you your he him his she her they them their one each all "
    "some any no not and or but so as if than then too also in on at to of for from by with about into out up over "
    "is are was were be been being am do does did has have had will would can could may might must shall should "
    "what who which when where why how here there now just very more most other such only own same".split()
)


def readers(found: Mapping[str, Reading]) -> Measured:
    """Say which models read their vector at [MASK], and in which template."""
    return Measured("", tuple(f"{title(name)} reads {each.template}" for name, each in found.items()))


def function_words(found: Mapping[str, Reading]) -> Measured:
    """Say whether the words of the template alone are function words and punctuation, mostly, in every model."""
    shares, numbers = [], []
    for name, reading in found.items():
        words = [word for word, _ in reading.alone]
        plain = [word for word in words if word in FUNCTION_WORDS or not any(map(str.isalnum, word))]
        shares.append(len(plain) / len(words))
        numbers.append(f"{title(name)}: {len(plain)} of {len(words)} words: {quoted(words)}.")
    return Measured(YES if min(shares) > 0.5 else NO if max(shares) <= 0.5 else MIXED, tuple(numbers))


def words_of(reading: Reading) -> tuple[list[str], list[str], list[str]]:
    """Return the words of a sentence, of its template alone, and after denoising."""
    before, alone, after = ([word for word, _ in words] for words in reading[:3])
    return before, alone, after


@of_model
def template_words(name: str, found: Mapping[str, Reading]) -> Measured:
    """Say how many of a sentence's words the template says alone, before denoising."""
    before, alone, _ = words_of(found[name])
    shared = [word for word in before if word in alone]
    answer = NONE if not shared else "few" if len(shared) < len(before) / 2 else "many"
    line = f"{title(name)}: {len(shared)} of {len(before)} words" + (f": {quoted(shared)}." if shared else ".")
    return Measured(answer, (line,))


@of_model
def words_left(name: str, found: Mapping[str, Reading]) -> Measured:
    """Say how many of the template's words denoising leaves among the sentence's likeliest."""
    before, alone, after = words_of(found[name])
    shared = [word for word in before if word in alone]
    left = [word for word in after if word in alone]
    answer = NONE if not left else ALL if set(shared) <= set(left) else SOME
    numbers = (denoising(before, alone, after), f"{title(name)} says now: {quoted(after)}.")
    return Measured(answer, tuple(filter(None, numbers)))


@of_model
def top_word(name: str, found: Mapping[str, Reading], sentence: str) -> Measured:
    """Say which word is the likeliest for the `sentence` after denoising."""
    _, _, after = words_of(found[name])
    numbers = (f"{title(name)} says: {quoted(after)}.", still_said(sentence, after))
    return Measured(after[0], tuple(filter(None, numbers)), f"“{after[0]}”")
