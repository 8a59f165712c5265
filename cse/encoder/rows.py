"""Rows: a template and a sentence as token ids, the input of a backbone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from cse.methods.templates import TEMPLATE_PARTS, Template

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

    from cse.methods.method import Method

CHARACTERS_PER_TOKEN = 256  # that are read of a text per token kept; BERT reads a word of over 100 as unknown
_ONE_AT_A_TIME = Lock()


def shortened(text: str, tokenizer: PreTrainedTokenizerBase, limit: int) -> str:
    """Return so much of a text that a tokenizer finds `limit` ids in it, from the side that it keeps.

    A tokenizer reads a whole text before it truncates the ids, with about 200 bytes of memory per byte. Ids change only
    where kept ones have more than `CHARACTERS_PER_TOKEN` characters on average, as in a run of thousands of spaces.
    """
    length = CHARACTERS_PER_TOKEN * (limit + 1)
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


TOKENS = {"cpu": 2048}  # per pass; more do not fit into a CPU's caches
MAX_PASS_TOKENS = 65_536  # per pass on other devices
WINDOW = 16_384  # sentences tokenised and sorted together, which limits the memory of a long list
SMALL_PASS_DIVISOR = 8  # a pass of fewer than 1/8 of the rows that fit is filled up with shorter ones, padded


def plan_batches(lengths: Sequence[int], tokens: int, sentences: int | None = None) -> Iterator[np.ndarray]:
    """Yield the row numbers of each pass over N rows of `lengths` tokens, longest rows first.

    A pass has at most `tokens`, padding included, but at least one row, and at most `sentences` rows. All its rows have
    the same length, unless these would be too few.
    """
    order = np.argsort(np.negative(lengths), kind="stable")
    falling = -np.asarray(lengths)[order]
    start = 0
    while start < len(order):
        room = max(1, tokens // max(1, -int(falling[start])))
        room = room if sentences is None else min(room, sentences)
        alike = int(np.searchsorted(falling, falling[start], side="right")) - start
        size = min(room, max(alike, room // SMALL_PASS_DIVISOR))
        yield order[start : start + size]
        start += size


HARD = -1  # the slot of a token that is not learned
SPECIALS = 2  # the first and the last token of every row


@dataclass(frozen=True)
class Row:
    """One backbone input: `ids` (L,), `slots` (L,) with the learned slot or -1, `positions` (L,) from 0.

    `pool_at` is the token that is read. `cut` lists dimensions in which the embeddings of all its tokens are zero.
    A mean leaves out the first `unread` tokens.
    """

    ids: tuple[int, ...]
    slots: tuple[int, ...]
    positions: tuple[int, ...]
    pool_at: int
    cut: tuple[int, ...] = ()
    unread: int = 0


@dataclass(frozen=True)
class TokenTemplate:
    """A template in one tokenizer's ids before and after the sentence, special tokens included.

    The pooling leaves out the first `unread` tokens: those of a prompt, and what is before it.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    before_slots: tuple[int, ...]
    after_slots: tuple[int, ...]
    mask_index: int | None  # within before + after; None reads the first token
    spaced: bool  # the sentence follows a space, which matters to byte-level tokenizers
    unread: int = 0

    @property
    def length(self) -> int:
        """Number of tokens the template adds to a sentence."""
        return len(self.before) + len(self.after)

    @property
    def slot_ids(self) -> tuple[int, ...]:
        """The token id of every learned slot, in slot order."""
        ids = (*self.before, *self.after)
        slots = (*self.before_slots, *self.after_slots)
        return tuple(ids[slots.index(slot)] for slot in range(max(slots) + 1))

    def content_limit(self, max_length: int) -> int:
        """Return the maximum tokens of a sentence for a training `max_length`.

        SimCSE's and DCPCSE's 32 include the two special tokens, PromptBERT's and ConPVP's 32 no part of the template.
        """
        return max_length if self.length > SPECIALS else max(1, max_length - SPECIALS)

    def row(self, content: Sequence[int]) -> Row:
        """Return the row of a sentence's token ids (n,)."""
        return self._row(content, range(self.length + len(content)))

    def bias_row(self, n: int, specials: bool = True) -> Row:
        """Return the row without a sentence, positions after it shifted by n as for n tokens (PromptBERT 4.2).

        `specials=False` leaves out the first and the last token (ConPVP's masked form).
        """
        start = len(self.before)
        row = self._row((), (*range(start), *range(start + n, self.length + n)))
        if specials:
            return row
        return Row(row.ids[1:-1], row.slots[1:-1], row.positions[1:-1], row.pool_at - 1)

    def _row(self, content: Sequence[int], positions: Sequence[int]) -> Row:
        at = self.mask_index or 0
        if self.mask_index is None and self.unread < self.length + len(content):
            at = self.unread
        return Row(
            ids=(*self.before, *content, *self.after),
            slots=(*self.before_slots, *(HARD,) * len(content), *self.after_slots),
            positions=tuple(positions),
            pool_at=at if self.mask_index is None or at < len(self.before) else at + len(content),
            unread=self.unread,
        )


def render(template: Template, tokenizer: PreTrainedTokenizerBase) -> TokenTemplate:
    """Return the template in `tokenizer`'s ids.

    Spaces before [MASK], [P] and the sentence belong to these, so that byte-level tokenizers make no lone space token.
    """
    parts = [part for part in TEMPLATE_PARTS.split(template.text) if part]
    where = parts.index("[X]")
    ids: list[list[int]] = [[tokenizer.cls_token_id], []]
    slots: list[list[int]] = [[HARD], []]
    learned, mask_index = 0, None
    for number, part in enumerate(parts):
        side = int(number > where)
        if part == "[X]":
            continue
        if part == "[MASK]":
            mask_index = len(ids[0]) + len(ids[1])
            pieces, soft = [tokenizer.mask_token_id], False
        elif part == "[P]":
            pieces, soft = [tokenizer.pad_token_id], True
        else:
            pieces, soft = (
                plain_ids(tokenizer, part.rstrip(), special=True)["input_ids"] if part.strip() else [],
                template.soft,
            )
        for piece in pieces:
            ids[side].append(piece)
            slots[side].append(learned if soft else HARD)
            learned += soft
    ids[1].append(tokenizer.sep_token_id)
    slots[1].append(HARD)
    return TokenTemplate(
        before=tuple(ids[0]),
        after=tuple(ids[1]),
        before_slots=tuple(slots[0]),
        after_slots=tuple(slots[1]),
        mask_index=mask_index,
        spaced=where > 0 and parts[where - 1].endswith(" "),
    )


def rendered(method: Method, tokenizer: PreTrainedTokenizerBase) -> tuple[tuple[TokenTemplate, ...], ...]:
    """Return the templates of a method's views in `tokenizer`'s ids.

    Raises ValueError if another template than the anchor's has learned slots.
    """
    views = tuple(tuple(render(template, tokenizer) for template in view) for view in method.views)
    if any(template.slot_ids and template != views[0][0] for view in views for template in view):
        raise ValueError(f"{method.name}: only the anchor's template may have learned slots")
    return views


def token_mask(rows: Sequence[Row]) -> np.ndarray:
    """Return (B, L) bool: True at the tokens of rows that are padded to the longest."""
    lengths = np.array([len(row.ids) for row in rows])
    return np.arange(lengths.max()) < lengths[:, None]


def pooled_mask(rows: Sequence[Row], mask: np.ndarray) -> np.ndarray:
    """Return (B, L) bool: True at the tokens of rows, at which the `mask` (B, L) is true, that a mean reads."""
    return mask & (np.arange(mask.shape[1]) >= np.array([row.unread for row in rows])[:, None])


def padded(values: Iterable[Sequence[int]], mask: np.ndarray, fill: int) -> np.ndarray:
    """Return (B, L) int64 values of B rows where the `mask` (B, L) is true, elsewhere `fill`."""
    table = np.full(mask.shape, fill)
    table[mask] = np.fromiter(chain.from_iterable(values), table.dtype, np.count_nonzero(mask))
    return table
