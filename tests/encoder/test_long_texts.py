"""Very long texts: cut before they are tokenised, with the very ids that the whole text has."""

from __future__ import annotations

import itertools
import random
from typing import Any

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
