"""Rows: a template and a sentence as token ids, the input of a backbone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from cse.files.writing import digest
from cse.methods.templates import TEMPLATE_PARTS, Template

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from cse.methods.method import Method

CHARACTERS_PER_TOKEN = 256  # that are read of a text per token kept; BERT reads a word of over 100 as unknown
BLOCK = 256  # texts tokenised at once by a thread; what the tokenizer says of them besides ids takes memory
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
    clean = text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
    return clean.replace("\x00", " ")


def plain_ids(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], special: bool = False, limit: int | None = None
) -> list[list[int]]:
    """Return the ids of texts, made `readable`; no ids are added; "[MASK]" is text unless `special`.

    With `limit` a text has at most so many, from the side that the tokenizer keeps. The tokenizer itself truncates
    nothing, since a limit given to it would truncate the texts of other threads.
    """
    clean = [readable(text) for text in texts]
    if limit is not None:
        clean = [shortened(text, tokenizer, limit) for text in clean]
    with _ONE_AT_A_TIME:
        ids = _batch_ids(tokenizer, clean, special)
    if limit is None:
        return ids
    kept = slice(-limit, None) if tokenizer.truncation_side == "left" else slice(limit)
    return [numbers[kept] for numbers in ids]


def _batch_ids(tokenizer: PreTrainedTokenizerBase, texts: list[str], special: bool) -> list[list[int]]:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:  # written in Python
        read = tokenizer(texts, add_special_tokens=False, split_special_tokens=not special, verbose=False)
        return read["input_ids"] if texts else []
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = not special

    def block_ids(start: int) -> list[list[int]]:
        block = backend.encode_batch_fast(texts[start : start + BLOCK], add_special_tokens=False)
        return [encoding.ids for encoding in block]

    starts = range(0, len(texts), BLOCK)
    if (threads := min(len(starts), cores())) < 2:
        return list(chain.from_iterable(map(block_ids, starts)))
    with ThreadPoolExecutor(threads) as pool:  # the tokenizer's own threads would not survive a fork of the process
        return list(chain.from_iterable(pool.map(block_ids, starts)))


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return 12 hex digits that change with what a tokenizer reads in texts."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return digest(repr(tokenizer), json.dumps(tokenizer.get_vocab()))
    settings = json.loads(backend.to_str())
    return digest(json.dumps({**settings, "truncation": None, "padding": None}), tokenizer.truncation_side)


def cores() -> int:
    """Return the number of cores that this process may use, by its affinity and OMP_NUM_THREADS."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = os.environ.get("OMP_NUM_THREADS", "")
    return min(allowed, int(threads)) if threads.isdecimal() and int(threads) else allowed


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


def plan_batches(lengths: np.ndarray, device: str, sentences: int | None = None) -> Iterator[np.ndarray]:
    """Yield the row numbers of each pass over N rows of `lengths` tokens, longest rows first.

    A pass has as many tokens as suit the device, padding included, but at least one row, and at most `sentences` rows.
    All its rows have the same length, unless these would be too few.
    """
    tokens = TOKENS.get(device, MAX_PASS_TOKENS)
    order = np.argsort(-lengths, kind="stable")
    falling = -lengths[order]
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
class TokenTemplate:
    """A template in one tokenizer's ids, special tokens included, and the learned slot of each or -1.

    The sentence comes after the first `start` of them. The pooling leaves out the first `unread` tokens of a row: those
    of a prompt, and what is before it.
    """

    ids: tuple[int, ...]
    slots: tuple[int, ...]
    start: int
    mask_index: int | None  # within `ids`; None reads the first token
    spaced: bool  # the sentence follows a space, which matters to byte-level tokenizers
    unread: int = 0

    @property
    def length(self) -> int:
        """Number of tokens the template adds to a sentence."""
        return len(self.ids)

    @property
    def slot_ids(self) -> tuple[int, ...]:
        """The token id of every learned slot, in slot order."""
        return tuple(self.ids[self.slots.index(slot)] for slot in range(max(self.slots, default=HARD) + 1))

    def content_limit(self, max_length: int) -> int:
        """Return the maximum tokens of a sentence for a training `max_length`.

        SimCSE's and DCPCSE's 32 include the two special tokens, PromptBERT's and ConPVP's 32 no part of the template.
        """
        return max_length if self.length > SPECIALS else max(1, max_length - SPECIALS)


def ends(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """Return the ids that a tokenizer puts before and after a text: [CLS] and [SEP] or, without these, its own."""
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not (first is None or last is None or getattr(tokenizer, "padding_side", "") == "left"):
        return [first], [last]
    backend.no_truncation()
    backend.no_padding()
    encoding = backend.encode("a")  # padding on the left is that of decoders, and of XLNet, whose [CLS] comes last
    own = encoding.special_tokens_mask
    before = own.index(0) if 0 in own else 0
    return encoding.ids[:before], encoding.ids[len(own) - own[::-1].index(0) :] if 0 in own else encoding.ids


def render(template: Template, tokenizer: PreTrainedTokenizerBase) -> TokenTemplate:
    """Return the template in `tokenizer`'s ids. Raises ValueError for a [MASK] that the tokenizer does not have.

    Spaces before [MASK], [P] and the sentence belong to these, so that byte-level tokenizers make no lone space token.
    """
    if template.prompts and tokenizer.mask_token_id is None:
        raise ValueError(f"template {template.text!r} has a [MASK], and this model's tokenizer has no such token")
    parts = [part for part in TEMPLATE_PARTS.split(template.text) if part]
    where = parts.index("[X]")
    before, after = ends(tokenizer)
    ids, slots = [*before], [HARD] * len(before)
    start, learned, mask_index = 0, 0, None
    for part in parts:
        soft, pieces = template.soft, []
        if part == "[X]":
            start = len(ids)
        elif part == "[MASK]":
            mask_index = len(ids)
            soft, pieces = False, [tokenizer.mask_token_id]
        elif part == "[P]":
            soft, pieces = True, [tokenizer.pad_token_id]
        elif part.strip():
            (pieces,) = plain_ids(tokenizer, [part.rstrip()], special=True)
        ids += pieces
        slots += range(learned, learned + len(pieces)) if soft else [HARD] * len(pieces)
        learned += soft * len(pieces)
    spaced = where > 0 and parts[where - 1].endswith(" ")
    return TokenTemplate((*ids, *after), (*slots, *[HARD] * len(after)), start, mask_index, spaced)


def rendered(method: Method, tokenizer: PreTrainedTokenizerBase) -> tuple[tuple[TokenTemplate, ...], ...]:
    """Return the templates of a method's views in `tokenizer`'s ids.

    Raises ValueError if another template than the anchor's has learned slots.
    """
    views = tuple(tuple(render(template, tokenizer) for template in view) for view in method.views)
    if any(template.slot_ids and template != views[0][0] for view in views for template in view):
        raise ValueError(f"{method.name}: only the anchor's template may have learned slots")
    return views


@dataclass(frozen=True)
class TokenRows:
    """B backbone inputs: the `tokens` (3, T) of row b are those from `offsets[b]` (B + 1,) on.

    A token has an id, a learned slot or -1, and a position from 0. Row b stands in template number `kinds[b]` of
    `templates`, around `lengths[b]` tokens of a sentence, and is read at its token `read_at[b]`. `cut` (B, d) is True
    where the embeddings of all its tokens are zero.
    """

    templates: tuple[TokenTemplate, ...]
    kinds: np.ndarray
    lengths: np.ndarray
    offsets: np.ndarray
    read_at: np.ndarray
    tokens: np.ndarray
    cut: np.ndarray | None = None

    @classmethod
    def of(cls, contents: Sequence[Sequence[int]], templates: Sequence[TokenTemplate]) -> TokenRows:
        """Return the rows of B sentences' token ids, each in its template."""
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        return cls.of_ids(np.fromiter(chain.from_iterable(contents), np.int32, lengths.sum()), lengths, templates)

    @classmethod
    def of_ids(cls, ids: np.ndarray, lengths: np.ndarray, templates: Sequence[TokenTemplate]) -> TokenRows:
        """Return the rows of B sentences of `lengths` (B,) ids, which follow one another, each in its template."""
        keys = list(map(id, templates))
        by_id = dict(zip(keys, templates, strict=True))  # a template is hashed once, not once a row
        distinct = tuple(dict.fromkeys(by_id.values()))
        numbers = {key: distinct.index(template) for key, template in by_id.items()}
        kinds = np.fromiter(map(numbers.__getitem__, keys), np.int64, len(keys))
        known = [(t.start, t.length, HARD if t.mask_index is None else t.mask_index, t.unread) for t in distinct]
        starts, around, masks, unread = np.array(known, np.int64).reshape(-1, 4)[kinds].T
        sizes = around + lengths
        read_at = np.where(masks < starts, masks, masks + lengths)
        read_at = np.where(masks == HARD, np.where(unread < sizes, unread, 0), read_at)
        tokens = np.full((3, sizes.sum()), HARD, np.int32)
        tokens[2] = runs(np.zeros_like(sizes), sizes)
        rows = cls(distinct, kinds, lengths, _ends(sizes), read_at, tokens)
        inside = rows.inside
        outside = ~inside
        tokens[0, inside] = ids
        own = np.concatenate([np.empty((2, 0), np.int32), *((t.ids, t.slots) for t in distinct)], 1)
        own = own.take(runs(_ends([t.length for t in distinct])[kinds], around), 1)
        tokens[0, outside], tokens[1, outside] = own
        return rows

    @property
    def ids(self) -> np.ndarray:
        """(T,) the ids of the tokens."""
        return self.tokens[0]

    @cached_property
    def sizes(self) -> np.ndarray:
        """(B,) the number of tokens of each row."""
        return np.diff(self.offsets)

    @property
    def inside(self) -> np.ndarray:
        """(T,) bool: True at the tokens of the sentences, in rows that are not augmented."""
        starts = np.array([template.start for template in self.templates], np.int64)[self.kinds]
        inside = np.zeros(self.tokens.shape[1], bool)
        inside[runs(self.offsets[:-1] + starts, self.lengths)] = True
        return inside

    @property
    def unread(self) -> np.ndarray:
        """(T,) bool: True at the tokens that a pooling leaves out."""
        unread = np.array([template.unread for template in self.templates], np.int64)[self.kinds]
        return self.tokens[2] < np.repeat(unread, self.sizes)

    def tables(self, padding: int, first: int = 0, *, by_position: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return (5, B, L) int64 of rows padded to the longest, and the column (B,) that is read.

        The five are ids, slots, positions, 1 at a token, and 1 at one that a mean reads. `padding` is the id beside the
        tokens, and `first` the position of a row's first one. With `by_position` each token stands in the column of its
        position, and a gap is no token: a model that takes no positions reads such rows as if it did.
        """
        columns = self.tokens[2]
        if not by_position:
            columns = np.arange(len(columns)) - np.repeat(self.offsets[:-1], self.sizes)
        width = int(columns.max(initial=0)) + 1
        flat = np.zeros((5, len(self) * width), np.int64)
        flat[0], flat[1] = padding, HARD
        at = columns + np.repeat(np.arange(len(self)) * width, self.sizes)  # one index is faster than two
        flat[:3, at], flat[3, at], flat[4, at] = self.tokens, 1, ~self.unread
        tables = flat.reshape(5, len(self), width)
        tables[3:, self.sizes == 0, 0] = 1  # of a row without tokens, or there is nothing to attend to
        tables[2] += first
        return tables, np.where(self.sizes, columns.take(self.offsets[:-1] + self.read_at, mode="clip"), 0)

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, numbers: Sequence[int] | np.ndarray) -> TokenRows:
        """Return the rows of these numbers."""
        numbers = np.asarray(numbers, np.int64)
        sizes = self.sizes[numbers]
        tokens = self.tokens.take(runs(self.offsets[numbers], sizes), 1)
        cut = None if self.cut is None else self.cut[numbers]
        kinds, lengths, read_at = self.kinds[numbers], self.lengths[numbers], self.read_at[numbers]
        return TokenRows(self.templates, kinds, lengths, _ends(sizes), read_at, tokens, cut)

    def repeated(self, counts: np.ndarray) -> TokenRows:
        """Return the rows with every token `counts` (T,) times in place, 0 to leave it out."""
        ends = _ends(counts)
        offsets = ends[self.offsets]
        read_at = ends[self.offsets[:-1] + self.read_at] - offsets[:-1]
        return replace(self, offsets=offsets, read_at=read_at, tokens=np.repeat(self.tokens, counts, 1))

    def biases(self) -> tuple[list[tuple[TokenTemplate, int]], np.ndarray]:
        """Return the distinct (template, sentence length) as they come, and the number (B,) of every row's."""
        pairs = list(zip(self.kinds.tolist(), self.lengths.tolist(), strict=True))
        numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        return [(self.templates[kind], n) for kind, n in numbers], np.array([numbers[pair] for pair in pairs])


def embedding_means(rows: TokenRows, table: np.ndarray) -> np.ndarray:
    """Return (B, d) float32 means of the rows of a `table` (V, d), which may be float16, over each row's tokens.

    It is a sparse product: a graph of OpenVINO would copy the table at every pass.
    """
    from scipy.sparse import csr_array

    weights = (~rows.unread).astype(np.float32)
    distinct, numbers = np.unique(rows.ids, return_inverse=True)
    counts = csr_array((weights, numbers, rows.offsets), (len(rows), len(distinct)))
    return (counts @ table[distinct].astype(np.float32, copy=False)) / np.maximum(counts.sum(1), 1)[:, None]


def bias_rows(biases: Sequence[tuple[TokenTemplate, int]], specials: bool) -> TokenRows:
    """Return the row of each (template, n) without a sentence, positions as for one of n tokens (PromptBERT 4.2).

    `specials=False` leaves out the first and the last token (ConPVP's masked form).
    """
    lengths = np.array([length for _, length in biases], np.int64)
    rows = TokenRows.of_ids(np.zeros(lengths.sum(), np.int32), lengths, [template for template, _ in biases])
    counts = np.where(rows.inside, 0, 1)
    if not specials:
        counts[[*rows.offsets[:-1], *(rows.offsets[1:] - 1)]] = 0
    return rows.repeated(counts)


def _ends(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def runs(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return `sizes` (B,) numbers from `starts` (B,) on, run after run."""
    ends = _ends(sizes)
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], sizes)
