"""Very long texts: cut before they are tokenised, with the very ids that the whole text has."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import cse
from cse.encoder.rows import CHARACTERS_PER_TOKEN, shortened
from tests.conftest import WORDS

PIECES = {
    "words": [f"{word}{end}" for word in (*WORDS, "playingfoo") for end in (" ", ", ", "\n", "")],
    "letters": list("abcdefghijklmnop"),
    "ideographs": ["中", "文", "的", "句", "。", "，", "カ", "ナ", "\u3099", "豈"],
    "combining marks": ["e", "a ", "\u0301", "\u0323", "=\u0338", "ö", "가", "\u1100\u1161", "\u11a8"],
    "long words": ["cat" * 40, "x" * 101, " ", "-", " the"],
}


def uncut(tokenizer: Any, text: str, limit: int) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False, truncation=True, max_length=limit)["input_ids"])


def test_a_long_text_has_the_ids_of_the_whole_and_little_of_it_is_read(backbone: str) -> None:
    encoder = cse.load(backbone, backend="torch")
    template = encoder.views[0][0]
    for kind, side in itertools.product(PIECES, ("right", "left")):
        encoder.tokenizer.truncation_side = side
        text = "".join(random.Random(20261123).choices(PIECES[kind], k=10_000))[:10_000]
        for limit in (1, 9, encoder.max_content):
            assert len(shortened(text, encoder.tokenizer, limit)) <= CHARACTERS_PER_TOKEN * (limit + 1), (kind, side)
            ids = encoder.tokenise([text], [template], limit)
            assert ids == [uncut(encoder.tokenizer, text, limit)], (kind, side)


def lengths_read(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all texts that the tokenizer will be given, as they come."""
    read: list[int] = []
    inner = type(encoder.tokenizer)._encode_plus

    def watched(self: Any, text: Any, *arguments: Any, **named: Any) -> Any:
        read.extend(map(len, [text] if isinstance(text, str) else text))
        return inner(self, text, *arguments, **named)

    monkeypatch.setattr(type(encoder.tokenizer), "_encode_plus", watched)
    return read


def test_a_line_of_megabytes_is_not_read_by_the_tokenizer(backbone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = cse.load(backbone, backend="torch")
    text = "the man is playing guitar, and a woman runs in the park. " * 50_000
    read = lengths_read(encoder, monkeypatch)
    encoder.encode([text])
    encoder.top_tokens(text)
    assert 0 < max(read) <= CHARACTERS_PER_TOKEN * (encoder.row_limit + 1)
