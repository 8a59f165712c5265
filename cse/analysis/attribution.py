"""Which words make two sentences alike to a model: each word is left out in turn, and the cosine measured again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cse.analysis.words import Span, without, words
from cse.vectors import cosines

if TYPE_CHECKING:
    from cse.evaluation import Encode

MOST_WORDS = 64  # of a sentence: each is a further text to encode


class Attribution(NamedTuple):
    """The `cosine` of a pair of sentences, and what their words add to it; pairs are (first sentence, second).

    `values` are (W,) float64 each: a word's is the cosine with it minus the cosine without it, the other sentence
    whole. `wordless` are the cosines once all words of that sentence are left out, and only its punctuation remains.
    """

    cosine: float
    values: tuple[np.ndarray, np.ndarray]
    wordless: tuple[float, float]

    @property
    def errors(self) -> tuple[float, float]:
        """How far each sentence's values miss completeness: their sum minus what all its words together add.

        All words together add the cosine minus `wordless`. A sentence of one word misses nothing. Words that say the
        same are each missed little, which makes the error negative; words that need each other make it positive.
        """
        first, second = (
            float(values.sum()) - (self.cosine - left) for values, left in zip(self.values, self.wordless, strict=True)
        )
        return first, second


def attribute(encode: Encode, first: str, second: str) -> Attribution:
    """What each word adds to the cosine of two sentences, by occlusion; all texts are encoded in one call.

    A word is taken out of the text, and nothing is put in its place. Raises ValueError as `words_within` does.
    """
    pair = {"`first`": first, "`second`": second}
    spans = [words_within(text, name) for name, text in pair.items()]
    shorter = [
        [*(without(text, [word]) for word in found), without(text, found)]
        for text, found in zip(pair.values(), spans, strict=True)
    ]
    vectors = np.asarray(encode([first, second, *shorter[0], *shorter[1]]), np.float64)
    one, other, rest = vectors[:1], vectors[1:2], vectors[2:]
    whole = float(cosines(one, other)[0])
    sides = ((rest[: len(shorter[0])], other), (rest[len(shorter[0]) :], one))
    left = [cosines(rows, np.broadcast_to(fixed, rows.shape)) for rows, fixed in sides]
    return Attribution(whole, (whole - left[0][:-1], whole - left[1][:-1]), (float(left[0][-1]), float(left[1][-1])))


def words_within(text: str, what: str) -> Sequence[Span]:
    """The words of a text that may be attributed to: 1 to `MOST_WORDS`. Raises ValueError for others, naming `what`."""
    found = words(text)
    if not found:
        raise ValueError(f"{what} has no words, only punctuation; write a few.")
    if len(found) > MOST_WORDS:
        raise ValueError(f"{what} has {len(found):,} words; give at most {MOST_WORDS}, each is left out in turn.")
    return found
