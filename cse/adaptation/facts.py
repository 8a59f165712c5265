"""Facts about a user's texts as a model reads them: number, lengths, truncation, unknown pieces, duplicates."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cse.encoding.encoder import Encoder
from cse.encoding.tokenising import plain_ids, shortened
from cse.grouping.duplicates import default_percentile, groups_of, threshold
from cse.grouping.links import strongest_links
from cse.text.labelled import LabelledText
from cse.vectors import unit_rows

SHARE, MOST_HELD = 5, 2_000  # one text of so many is held out; at most so many
SAMPLE = 2_000  # texts whose tokens are counted
UNKNOWN, FRAGMENTS = 20.0, 50.0  # percent of a text's pieces above which the vocabulary does not know the language
IDEOGRAPHS = "CJK"  # beginning of their names; each is a piece of its own in a vocabulary that knows them


@dataclass(frozen=True)
class TextFacts:
    """Numbers of rows and different texts; medians of words and tokens; percents of texts and of pieces.

    `cut` is the percent of texts longer than the model reads, `unknown` that of a text's pieces that the vocabulary
    lacks, `letters` that of its pieces that are one letter or a part of one, both as means over the texts, so that a
    long one counts no more than others; `near` the percent of texts with a near-duplicate among the held-out ones.
    """

    rows: int
    distinct: int
    words: float
    tokens: float
    cut: float
    unknown: float
    letters: float
    near: float

    @property
    def warning(self) -> str | None:
        """A sentence if the model's vocabulary does not know the language of the texts."""
        if self.unknown <= UNKNOWN and self.letters <= FRAGMENTS:
            return None
        return (
            f"the model's vocabulary does not know the language of these texts: {self.unknown:.0f} % of their pieces "
            f"are unknown, {self.letters:.0f} % are single letters; choose a model of that language"
        )

    def known(self) -> dict[str, Any]:
        """The facts as JSON values, the warning included."""
        return {**asdict(self), "warning": self.warning}

    def __str__(self) -> str:
        return (
            f"{self.rows:,} texts, {self.distinct:,} of them different, {self.near:.1f} % with a near-duplicate; "
            f"median {self.words:g} words, {self.tokens:g} tokens; {self.cut:.1f} % longer than the model reads; "
            f"{self.unknown:.1f} % of the pieces unknown"
        )


def split(rows: Sequence[LabelledText], seed: int) -> tuple[list[LabelledText], list[str]]:
    """Return the rows held out for scores, a fifth and at most `MOST_HELD`, and the texts to fit on, both in random
    order by the seed. No text is in both if the rows are of distinct texts.
    """
    order = np.random.default_rng((seed, SHARE)).permutation(len(rows)).tolist()
    count = min(MOST_HELD, len(rows) // SHARE)
    return [rows[number] for number in order[:count]], [rows[number].text for number in order[count:]]


def text_facts(encoder: Encoder, texts: Sequence[str], rows: int, held: np.ndarray, seed: int) -> TextFacts:
    """Return the facts about distinct texts in random order, of so many rows; `held` (N, d) are the vectors of some.

    Tokens are counted in the first `SAMPLE` texts.
    """
    sample, limit, tokenizer = texts[:SAMPLE], encoder.max_content, encoder.tokenizer
    read = plain_ids(tokenizer, [shortened(text, tokenizer, limit + 1) for text in sample])["input_ids"]
    lengths = [len(ids) for ids in read]
    numbers = sorted({number for ids in read for number in ids})
    pieces = dict(zip(numbers, tokenizer.convert_ids_to_tokens(numbers), strict=True))

    def percent(counted: Callable[[str], bool]) -> float:
        chosen = {number for number, piece in pieces.items() if counted(piece)}
        shares = [sum(number in chosen for number in ids) / len(ids) for ids in read if ids]
        return round(100 * float(np.mean(shares or [0.0])), 1)

    return TextFacts(
        rows=rows, distinct=len(texts), words=float(np.median([len(text.split()) for text in sample])),
        tokens=float(np.median(lengths)), cut=round(100 * float(np.mean(np.array(lengths) > limit)), 1),
        unknown=percent(lambda piece: piece == tokenizer.unk_token), letters=percent(_is_letter),
        near=_near_percent(held, seed),
    )  # fmt: skip


def _is_letter(piece: str) -> bool:
    """True for a piece of one letter, ideographs apart, or of a single byte of one, as byte-level vocabularies have."""
    plain = piece.removeprefix("##").lstrip("Ġ▁")
    return len(plain) == 1 and plain.isalpha() and not unicodedata.name(plain, "").startswith(IDEOGRAPHS)


def _near_percent(vectors: np.ndarray, seed: int) -> float:
    """The percent of the texts, by their vectors (N, d), that are in a group of near-duplicates."""
    unit = unit_rows(vectors)

    def search(queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        cosines = queries @ unit.T
        rows = np.argsort(-cosines, axis=1)[:, :k]
        return np.take_along_axis(cosines, rows, axis=1), rows

    least = threshold(unit, default_percentile(len(unit)), seed)
    groups = groups_of(strongest_links(unit, search, least).groups(least))
    return round(100 * sum(map(len, groups)) / max(1, len(unit)), 1)
