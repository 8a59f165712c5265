"""Plain text to ids, one caller at a time: a tokenizer keeps the options of a call under way for all of its callers."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

_ONE_AT_A_TIME = Lock()


def plain_ids(tokenizer: PreTrainedTokenizerBase, text: str | Sequence[str], special: bool = False) -> BatchEncoding:
    """The encoding of a text, or of several: all ids, none added, and "[MASK]" is plain text unless `special`.

    Nothing is cut here, since a limit given to the tokenizer would cut what another thread reads.
    """
    with _ONE_AT_A_TIME:
        texts = text if isinstance(text, str) else list(text)
        return tokenizer(texts, add_special_tokens=False, split_special_tokens=not special, verbose=False)
