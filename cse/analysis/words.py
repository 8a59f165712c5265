"""The words of a sentence as places in it, and the sentence without some of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

Span = tuple[int, int]  # where a word begins and ends


def words(text: str) -> list[Span]:
    """What spaces separate, without the punctuation at its edges: "don't", "well-known" and an emoji are one each."""
    found = []
    for part in re.finditer(r"\S+", text):
        inside = [place for place in range(*part.span()) if not unicodedata.category(text[place]).startswith("P")]
        if inside:
            found.append((inside[0], inside[-1] + 1))
    return found


def without(text: str, spans: Iterable[Span]) -> str:
    """The text with the `spans`, which do not overlap, left out and no gap where they were; punctuation stays."""
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return re.sub(r"\s+([.,!?;:])", r"\1", " ".join(text.split()))
