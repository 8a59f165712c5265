"""Plain text to ids, one rule for what no tokenizer can read, and one caller at a time.

A tokenizer keeps the options of a call under way for all of its callers.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

_ONE_AT_A_TIME = Lock()


def readable(text: str) -> str:
    """The text as every model here reads it: NUL, which ends texts in some tools, is a space, and half of a surrogate
    pair, which is no character and has no UTF-8, is "?"; any other text stays as it is.
    """
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")


def plain_ids(tokenizer: PreTrainedTokenizerBase, text: str | Sequence[str], special: bool = False) -> BatchEncoding:
    """The encoding of a text as `readable`, or of several: all ids, none added; "[MASK]" is plain unless `special`.

    Nothing is cut here, since a limit given to the tokenizer would cut what another thread reads.
    """
    with _ONE_AT_A_TIME:
        texts = readable(text) if isinstance(text, str) else list(map(readable, text))
        return tokenizer(texts, add_special_tokens=False, split_special_tokens=not special, verbose=False)
