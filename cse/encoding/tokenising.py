"""Tokenisation of plain text, cleaned first, and by one thread at a time.

The options of a call apply to all threads that use a tokenizer at that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

_ONE_AT_A_TIME = Lock()


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
