"""Long texts before they are tokenised: as much of their beginning as decides the ids that a model reads.

A tokenizer reads the whole text before it cuts the ids, at some 200 bytes of memory a byte of text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cse.encoding.tokenising import plain_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SHORTEST = 5_000  # characters of the first beginning that is tried
GROWTH = 4  # a beginning that was too short is followed by one of so many times its length
MARGIN = 64  # words before a cut whose ids are not trusted: what is behind it may join or change them
BERT = ["BertNormalizer", "BertPreTokenizer", "WordPiece"]  # how its tokenizer reads a text
# A text is cut before white space, but not within a run of it, before a punctuation mark of ASCII, or before an
# ideograph: Unicode normalisation joins none of them to what stands before. The last such place of a region is sought.
CUT = re.compile(r".*(?=(?<!\s)[ \t\r\n]|[!-/:-@\[-`{-~]|[\u4e00-\u9fff])", re.DOTALL)


def beginning(text: str, tokenizer: PreTrainedTokenizerBase, limit: int) -> str:
    """The text, or a beginning of it that has the same first `limit` ids: what `tokenizer` truncates to.

    A fast tokenizer splits a text into words, from left to right, and turns each into ids on its own. What follows a
    cut can therefore change the ids of the last few words alone, and a beginning serves where it has `limit` ids
    before its last `MARGIN` words. It grows while it does not: characters may normalise to nothing, and a text in
    which nothing separates words is read whole, as is one whose tokenizer keeps the end or is not fast. A text of less
    than `SHORTEST * GROWTH` characters is returned as it is; beginnings that did not serve are a third of the text.
    What comes back is no beginning where none served and `squeezed` leaves less of the text.
    """
    size = SHORTEST
    if len(text) < size * GROWTH or not tokenizer.is_fast or tokenizer.truncation_side != "right":
        return text
    while size * GROWTH <= len(text):
        found = CUT.match(text, size // GROWTH, size)
        if found and _settled(text[: found.end()], tokenizer) >= limit:
            return text[: found.end()]
        size *= GROWTH
    shorter = squeezed(text, tokenizer)
    return beginning(shorter, tokenizer, limit) if len(shorter) < len(text) else text


def squeezed(text: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """A text of the same ids in which no run of white space, and none of ASCII's letters and digits, is long.

    BERT's tokenizer drops white space, and a word of more than 100 characters is one unknown token, however it goes on.
    To any other tokenizer both may say more, and so may a part of a word that was added to the vocabulary: the text
    comes back as it is.
    """
    inner, own = tokenizer.backend_tokenizer, set(tokenizer.get_added_vocab()) <= set(tokenizer.all_special_tokens)
    if not own or [type(part).__name__ for part in (inner.normalizer, inner.pre_tokenizer, inner.model)] != BERT:
        return text
    kept = inner.model.max_input_chars_per_word + 1
    return re.sub(rf"([ \t\r\n])[ \t\r\n]+|([A-Za-z0-9]{{{kept}}})[A-Za-z0-9]+", r"\1\2", text)


def _settled(text: str, tokenizer: PreTrainedTokenizerBase) -> int:
    """How many ids of a text come before its last `MARGIN` words."""
    encoding = plain_ids(tokenizer, text)
    words = [word for word in encoding.word_ids() if word is not None]
    return sum(word <= words[-1] - MARGIN for word in words)
