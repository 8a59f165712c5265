"""The words of a sentence as spans, and the sentence without some of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

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
