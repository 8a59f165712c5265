"""Notes on an input text: truncation, unknown word pieces, foreign scripts and rare words."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from cse.encoding.tokenising import plain_ids

if TYPE_CHECKING:
    from cse.encoding.encoder import Encoder

FOREIGN = 0.3  # share of letters outside the Latin script
BROKEN, FEWEST = 1.6, 4  # pieces per word, from this many words on; true of 3 % of the STS sentences
WORD = re.compile(r"\w+|[^\w\s]")


def input_notes(encoder: Encoder, text: str) -> list[str]:
    """Return notes on why a text's vector may represent it badly; an empty list for an ordinary text."""
    pieces = plain_ids(encoder.tokenizer, text)["input_ids"]
    notes = []
    if len(pieces) > encoder.max_content:
        notes.append(f"only the first {encoder.max_content} of its {len(pieces):,} word pieces are read")
    unknown = sum(piece == encoder.tokenizer.unk_token_id for piece in pieces)
    if unknown == len(pieces):
        notes.append("no piece of it is in the vocabulary, so the vector says nothing")
    elif unknown:
        are = "is" if unknown == 1 else "are"
        notes.append(f"{unknown} of its {len(pieces):,} word pieces {are} not in the vocabulary")
    words = len(WORD.findall(text))
    if foreign_share(text) > FOREIGN:
        notes.append("it is in a script that an English model hardly knows")
    elif words >= FEWEST and not unknown and len(pieces) / words >= BROKEN:
        each = f"{len(pieces) / words:.1f} pieces each"
        notes.append(f"its words break into {each}: rare words, or a language that an English model hardly knows")
    return notes


def foreign_share(text: str) -> float:
    """The share of a text's letters that are not Latin; 0 without letters."""
    letters = [letter for letter in text if letter.isalpha()]
    return sum(not unicodedata.name(letter, "").startswith("LATIN") for letter in letters) / max(1, len(letters))
