"""Tokenisation of plain text, cleaned first, and by one thread at a time.

The options of a call apply to all threads that use a tokenizer at that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

PER_TOKEN = 256  # characters of a text that are read for each token kept; BERT reads a word of over 100 as unknown
_ONE_AT_A_TIME = Lock()


def shortened(text: str, tokenizer: PreTrainedTokenizerBase, limit: int) -> str:
    """Return so much of a text that a tokenizer finds `limit` ids in it, from the side that it keeps.

    A tokenizer reads a whole text before it truncates the ids, with about 200 bytes of memory per byte. Ids change only
    where kept ones have more than `PER_TOKEN` characters on average, as in a run of thousands of spaces.
    """
    length = PER_TOKEN * (limit + 1)
    return text[-length:] if tokenizer.truncation_side == "left" else text[:length]


def readable(text: str) -> str:
    """Return the text with NUL, which ends texts in some tools, as a space, and half of a surrogate pair, which has no
    UTF-8 form, as "?".
    """
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")


def plain_ids(tokenizer: PreTrainedTokenizerBase, text: str | Sequence[str], special: bool = False) -> BatchEncoding:
    """Return the encoding of a text or several, made `readable`; no ids are added; "[MASK]" is text unless `special`.

    Nothing is truncated, since a limit given to the tokenizer would truncate the texts of other threads.
    """
    with _ONE_AT_A_TIME:
        texts = readable(text) if isinstance(text, str) else list(map(readable, text))
        return tokenizer(texts, add_special_tokens=False, split_special_tokens=not special, verbose=False)


def lower_case(tokenizer: PreTrainedTokenizerBase) -> None:
    """Make a tokenizer lower-case its texts first, but not special tokens, as sentence-transformers does."""
    from tokenizers import normalizers

    backend = tokenizer.backend_tokenizer
    if "Lowercase" not in str(backend.normalizer):
        before = [backend.normalizer] if backend.normalizer else []
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *before])
