"""Attribution of a cosine to words by occlusion: leave each word out in turn and measure the cosine again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import regex

from cse.corpus.words import UNSPACED_LETTER, spans_within
from cse.vectors import cosines

if TYPE_CHECKING:
    from cse.evaluation import Encode

MAX_COMPARED_WORDS = 200  # words of a text, since the time grows with their square
COMPARED = regex.compile(rf" ?(?:{UNSPACED_LETTER}|(?:(?!{UNSPACED_LETTER})\S)+)", regex.V1)

Span = tuple[int, int]  # start and end of a word


def words(text: str) -> list[Span]:
    """Spans between spaces, without punctuation at the edges: "don't", "well-known" and an emoji are one word each.

    Of scripts without spaces they are the words of a segmenter, or pairs of characters (`cse.corpus.words`).
    """
    spans = []
    for part in re.finditer(r"\S+", text):
        inside = [
            position for position in range(*part.span()) if not unicodedata.category(text[position]).startswith("P")
        ]
        if inside:
            spans += spans_within(text, inside[0], inside[-1] + 1)
    return spans


def without(text: str, spans: Iterable[Span]) -> str:
    """The text without the non-overlapping `spans` and the gaps they leave; punctuation stays."""
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return re.sub(r"\s+([.,!?;:])", r"\1", " ".join(text.split()))


class Change(NamedTuple):
    """A run of words of two texts: in both (`kind` "both"), only in the "first" or only in the "second"."""

    kind: str
    words: str


def changes(first: str, second: str) -> list[Change]:
    """The words of two texts in order, as runs in both or in one of them; at most `MAX_COMPARED_WORDS` of each text.

    A run of words that replaces another comes after it.
    """
    one, other = (compared(text)[:MAX_COMPARED_WORDS] for text in (first, second))
    runs = []
    for kind, start, end, from_, to in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        sides = (
            (("both", one[start:end]),) if kind == "equal" else (("first", one[start:end]), ("second", other[from_:to]))
        )
        runs += [Change(side, "".join(run).strip()) for side, run in sides if run]
    return runs


def compared(text: str) -> list[str]:
    """What stands between spaces, after a space each; a character of a script without spaces stands alone."""
    return COMPARED.findall(" " + " ".join(text.split()))


MAX_WORDS = 64  # of a sentence; each is another text to encode


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
        [*(without(text, [word]) for word in of_text), without(text, of_text)]
        for text, of_text in zip(pair.values(), spans, strict=True)
    ]
    vectors = np.asarray(encode([first, second, *shorter[0], *shorter[1]]), np.float64)
    one, other, rest = vectors[:1], vectors[1:2], vectors[2:]
    whole = float(cosines(one, other)[0])
    sides = ((rest[: len(shorter[0])], other), (rest[len(shorter[0]) :], one))
    left = [cosines(rows, np.broadcast_to(fixed, rows.shape)) for rows, fixed in sides]
    return Attribution(whole, (whole - left[0][:-1], whole - left[1][:-1]), (float(left[0][-1]), float(left[1][-1])))


def words_within(text: str, what: str) -> Sequence[Span]:
    """The words of a text, 1 to `MAX_WORDS`. Raises ValueError, naming the text as `what`, for another number."""
    spans = words(text)
    if not spans:
        raise ValueError(f"{what} has no words, only punctuation; write a few.")
    if len(spans) > MAX_WORDS:
        raise ValueError(f"{what} has {len(spans):,} words; give at most {MAX_WORDS}, each is left out in turn.")
    return spans
