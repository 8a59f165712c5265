"""Attribution of a cosine to words by occlusion: leave each word out in turn and measure the cosine again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cse.analysis.words import Span, without, words
from cse.vectors import cosines

if TYPE_CHECKING:
    from cse.evaluation import Encode

MOST_WORDS = 64  # of a sentence; each is another text to encode


class Attribution(NamedTuple):
    """The `cosine` of two sentences and the contributions of their words; tuples are (first sentence, second).

    `values` are (W,) float64 each: the cosine minus the cosine without that word, the other sentence unchanged.
    `wordless` are the cosines without any word of that sentence, only its punctuation.
    """

    cosine: float
    values: tuple[np.ndarray, np.ndarray]
    wordless: tuple[float, float]

    @property
    def errors(self) -> tuple[float, float]:
        """Each sentence's completeness error: the sum of its values minus the effect of all its words together.

        That effect is the cosine minus `wordless`. The error is 0 for one word, negative for redundant words (leaving
        one out changes little), and positive for words that depend on each other.
        """
        first, second = (
            float(values.sum()) - (self.cosine - left) for values, left in zip(self.values, self.wordless, strict=True)
        )
        return first, second


def attribute(encode: Encode, first: str, second: str) -> Attribution:
    """Attribute the cosine of two sentences to their words by occlusion; all texts are encoded in one call.

    Words are removed, not replaced. Raises ValueError as `words_within` does.
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
    """The words of a text, 1 to `MOST_WORDS`. Raises ValueError, naming the text as `what`, for another number."""
    found = words(text)
    if not found:
        raise ValueError(f"{what} has no words, only punctuation; write a few.")
    if len(found) > MOST_WORDS:
        raise ValueError(f"{what} has {len(found):,} words; give at most {MOST_WORDS}, each is left out in turn.")
    return found
