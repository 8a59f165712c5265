"""Small changes of a sentence that probe a model: each word left out in turn (occlusion), or the meaning changed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import regex

from cse.corpus.words import UNSPACED_LETTER, WORD, spans_within
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
    """Attribute the cosine of two sentences to their words by removing one at a time; `encode` is called once."""
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


AUXILIARIES = frozenset(
    "am is are was were can could will would shall should may might must has have had do does did".split()
)
CONTRACTED = {"won't": "will", "can't": "can", "cannot": "can", "shan't": "shall", "ain't": "am"}
STARTERS = AUXILIARIES | frozenset(
    "a an the this that these those there here i he she it we you they my your his her its our their who what when "
    "where why how which if in on at by for from to of with as and but or so no not yes all some every each".split()
)
PERTURBED_WORD = regex.compile(rf"{WORD.pattern}(?:'{WORD.pattern})?", regex.V1)
LETTER = regex.compile(r"\X")
NUMBER = re.compile(r"\d[\d.,]*(?<=\d)")
EDGE_PUNCTUATION = '.,;:!?"()'


class Perturbation(NamedTuple):
    """A named change of a sentence; `keeps` is True if the meaning, and so a good model's vector, hardly changes."""

    name: str
    keeps: bool
    change: Callable[[str], str]

    def apply(self, text: str) -> str | None:
        """Return the changed sentence, or None if there is nothing to change."""
        changed = self.change(text)
        return changed if changed != text else None


def negate(text: str) -> str:
    """The sentence with "not" after its first auxiliary verb, or without the "not" that it contains."""
    words = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split()
    bare = [word.lower().strip(EDGE_PUNCTUATION) for word in words]
    for at, (word, lower) in enumerate(zip(words, bare, strict=True)):
        if lower == "not":
            return " ".join(words[:at] + words[at + 1 :])
        positive = CONTRACTED.get(lower) or (lower.removesuffix("n't") if lower.endswith("n't") else "")
        if positive:
            return " ".join([*words[:at], positive.capitalize() if word[:1].isupper() else positive, *words[at + 1 :]])
    for at, word in enumerate(words):
        name = at > 0 and word[0].isupper()  # the month of May
        if word.lower() in AUXILIARIES and not name:
            return " ".join([*words[: at + 1], "not", *words[at + 1 :]])
    return text


def swap_names(text: str) -> str:
    """The sentence with two capitalised words exchanged: the first two after its first word.

    With only one of these, the first word is used too, unless it is a common first word of sentences.
    """
    spans = [
        match.span() for match in PERTURBED_WORD.finditer(text) if match.group()[0].isupper() and match.group() != "I"
    ]
    inner = [span for span in spans if span[0] > 0]
    names = [span for span in spans if text[slice(*span)].lower() not in STARTERS]
    chosen = inner[:2] if len(inner) > 1 else names
    if len(chosen) < 2:
        return text
    (a, b), (c, d) = chosen
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def reverse_words(text: str) -> str:
    """The words in reverse order, with the final punctuation at the end."""
    body, end = _split_end(text)
    return " ".join(reversed(body.split())) + end


def drop_word(text: str) -> str:
    """The sentence without its longest word."""
    span = _longest(text)
    shortened = without(text, [span]) if span else ""
    return shortened if WORD.search(shortened) else text


def double_word(text: str) -> str:
    """The sentence with its longest word twice."""
    span = _longest(text)
    return f"{text[: span[1]]} {text[slice(*span)]}{text[span[1] :]}" if span else text


def misspell(text: str) -> str:
    """The sentence with two inner letters of its longest alphabetic word exchanged, with their marks."""
    span = _longest(text, lambda word: all(letter[0].isalpha() for letter in LETTER.findall(word)))
    word = LETTER.findall(text[slice(*span)]) if span else []
    at = next((i for i in range(1, len(word) - 2) if word[i] != word[i + 1]), None)
    if span is None or at is None:
        return text
    word[at : at + 2] = word[at + 1], word[at]
    return text[: span[0]] + "".join(word) + text[span[1] :]


def change_numbers(text: str) -> str:
    """The sentence with the last digit of each number increased by one, 9 becoming 0."""
    return NUMBER.sub(lambda match: match.group()[:-1] + str((int(match.group()[-1]) + 1) % 10), text)


def _longest(text: str, kind: Callable[[str], bool] = bool) -> Span | None:
    spans = [span for match in PERTURBED_WORD.finditer(text) for span in spans_within(text, *match.span())]
    return max((span for span in spans if kind(text[slice(*span)])), key=lambda span: span[1] - span[0], default=None)


def _split_end(text: str) -> tuple[str, str]:
    body = text.rstrip().rstrip(".!?")
    return body, text.rstrip()[len(body) :]


PERTURBATIONS = (
    Perturbation("negated", False, negate),
    Perturbation("final punctuation", True, lambda text: _split_end(text)[0] if _split_end(text)[1] else f"{text}."),
    Perturbation("capitals", True, str.upper),  # which an uncased model cannot distinguish
    Perturbation("typing error", True, misspell),
    Perturbation("word doubled", True, double_word),
    Perturbation("longest word dropped", False, drop_word),
    Perturbation("names exchanged", False, swap_names),
    Perturbation("numbers changed", False, change_numbers),
    Perturbation("words reversed", False, reverse_words),
)
