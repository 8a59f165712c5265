"""Truncation of long texts before tokenisation, without changing the ids that a model reads.

A tokenizer reads the whole text before it truncates the ids, with about 200 bytes of memory per byte of text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cse.encoding.tokenising import plain_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SHORTEST = 5_000  # characters of the first beginning that is tried
GROWTH = 4  # factor from one beginning to the next
MARGIN = 64  # words before a cut whose ids may depend on the text after it
BERT = ["BertNormalizer", "BertPreTokenizer", "WordPiece"]  # steps of its tokenizer
# A text is cut before white space, but not within a run of it, before an ASCII punctuation mark, or before an
# ideograph: Unicode normalisation joins none of them to the preceding text. The last such place of a region is taken.
CUT = re.compile(r".*(?=(?<!\s)[ \t\r\n]|[!-/:-@\[-`{-~]|[\u4e00-\u9fff])", re.DOTALL)


def beginning(text: str, tokenizer: PreTrainedTokenizerBase, limit: int) -> str:
    """Return the text, or a beginning of it with the same first `limit` ids, to which `tokenizer` truncates.

    A fast tokenizer splits a text into words, from left to right, and converts each to ids separately. The text after
    a cut can therefore change only the ids of the last few words, so a beginning is long enough if it has `limit` ids
    before its last `MARGIN` words. Beginnings grow until then: characters may normalise to nothing. A text without
    word separators is read whole, as is one whose tokenizer keeps the end or is not fast. A text of less than
    `SHORTEST * GROWTH` characters is returned unchanged; beginnings that were too short are a third of the text.
    If none is long enough, the same is tried with the `collapsed` text, if that is shorter.
    """
    size = SHORTEST
    if len(text) < size * GROWTH or not tokenizer.is_fast or tokenizer.truncation_side != "right":
        return text
    while size * GROWTH <= len(text):
        found = CUT.match(text, size // GROWTH, size)
        if found and _settled(text[: found.end()], tokenizer) >= limit:
            return text[: found.end()]
        size *= GROWTH
    shorter = collapsed(text, tokenizer)
    return beginning(shorter, tokenizer, limit) if len(shorter) < len(text) else text


def collapsed(text: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """Shorten long runs of white space, and of ASCII letters and digits, without changing the ids.

    BERT's tokenizer drops white space, and a word of more than 100 characters is one unknown token. For any other
    tokenizer, and if words were added to the vocabulary, these may matter: the text is returned unchanged.
    """
    inner, own = tokenizer.backend_tokenizer, set(tokenizer.get_added_vocab()) <= set(tokenizer.all_special_tokens)
    if not own or [type(part).__name__ for part in (inner.normalizer, inner.pre_tokenizer, inner.model)] != BERT:
        return text
    kept = inner.model.max_input_chars_per_word + 1
    return re.sub(rf"([ \t\r\n])[ \t\r\n]+|([A-Za-z0-9]{{{kept}}})[A-Za-z0-9]+", r"\1\2", text)


def _settled(text: str, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the number of ids before the last `MARGIN` words of a text."""
    encoding = plain_ids(tokenizer, text)
    words = [word for word in encoding.word_ids() if word is not None]
    return sum(word <= words[-1] - MARGIN for word in words)
