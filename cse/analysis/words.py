"""The words of a sentence as spans, the sentence without some of them, and the changes between two texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import NamedTuple

MOST_COMPARED = 200  # words of a text, since the time grows with their square

Span = tuple[int, int]  # start and end of a word


def words(text: str) -> list[Span]:
    """Spans between spaces, without punctuation at the edges: "don't", "well-known" and an emoji are one word each."""
    found = []
    for part in re.finditer(r"\S+", text):
        inside = [place for place in range(*part.span()) if not unicodedata.category(text[place]).startswith("P")]
        if inside:
            found.append((inside[0], inside[-1] + 1))
    return found


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
    """The words of two texts in order, as runs that are in both or in one of them; at most `MOST_COMPARED` of each.

    Words are what stands between spaces; a run of words that replaces another comes after it.
    """
    one, other = (text.split()[:MOST_COMPARED] for text in (first, second))
    found = []
    for kind, start, end, from_, to in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        sides = (
            (("both", one[start:end]),) if kind == "equal" else (("first", one[start:end]), ("second", other[from_:to]))
        )
        found += [Change(side, " ".join(run)) for side, run in sides if run]
    return found
