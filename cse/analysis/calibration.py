"""Calibration of cosines: percentiles among those of random sentence pairs, and ranks, are comparable between models.

Two unrelated sentences may have a cosine of 0.1 in one model and of 0.9 in another.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import regex

from cse.corpus.words import WORD
from cse.encoder.rows import plain_ids
from cse.evaluation.metrics import ranks
from cse.vectors import unit_rows

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder

BINS = 80  # of a histogram of cosines, from -1 to 1
TAIL_FROM, TAIL_TO = 95.0, 99.0  # the percentiles between which `tail_cosine` reads the slope that it extrapolates


def random_cosines(vectors: np.ndarray) -> np.ndarray:
    """(N (N - 1) / 2,) ascending cosines of all pairs of N sentences' vectors (N, d)."""
    rows = unit_rows(np.asarray(vectors, np.float32))
    return np.sort((rows @ rows.T)[np.triu_indices(len(rows), 1)])


def unrelated_cosines(vectors: np.ndarray) -> np.ndarray:
    """Ascending cosines of all pairs of N texts' vectors (N, d) but those of a text and its nearest other.

    Near-duplicates are among the nearest, so a percentile of the rest does not depend on how many there are.
    """
    rows = unit_rows(np.asarray(vectors, np.float32))
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -np.inf)
    own, nearest = np.arange(len(rows)), cosines.argmax(axis=1)
    kept = np.triu(np.ones(cosines.shape, dtype=bool), 1)
    kept[np.minimum(own, nearest), np.maximum(own, nearest)] = False
    return np.sort(cosines[kept])


def tail_cosine(percent: float, reference: np.ndarray) -> float:
    """The cosine at the percentile `percent`, 0 to 100, of the ascending `reference` (P,), extrapolated above 95.

    The tail is exponential in Fisher's z = atanh(cosine), with the slope between the 95th and the 99th percentile. It
    falls faster from the median to the 95th in some models and slower in others, by up to ten times the pairs.
    """
    if percent <= TAIL_FROM:
        return cosine_at(percent, reference)
    low, high = (np.arctanh(min(cosine_at(at, reference), 1 - 1e-7)) for at in (TAIL_FROM, TAIL_TO))
    slope = (high - low) / np.log((100 - TAIL_FROM) / (100 - TAIL_TO))
    return float(np.tanh(low + slope * np.log((100 - TAIL_FROM) / (100 - percent))))


def percentile(cosine: float, reference: np.ndarray) -> float:
    """The one value of `percentiles`."""
    return float(percentiles(np.array(cosine), reference))


def percentiles(cosines: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The percentage of the ascending `reference` (P,) below each cosine, 0 to 100; equal values count half."""
    below, within = (np.searchsorted(reference, cosines, side=side) for side in ("left", "right"))
    return 50 * (below + within) / len(reference)


def cosine_at(percent: float, reference: np.ndarray) -> float:
    """The cosine at the percentile `percent`, 0 to 100, of the ascending `reference` (P,)."""
    return float(np.quantile(reference, percent / 100))


def displacement(cosine: float, reference: np.ndarray) -> float:
    """Displacement of a vector by a change: 0 for none, 1 for the distance of the median random pair (P,)."""
    apart = 1 - float(np.median(reference))
    return (1 - cosine) / apart if apart > 0 else 0.0


def histogram(reference: np.ndarray) -> list[float]:
    """The shares of the cosines of `reference` in `BINS` equal bins from -1 to 1."""
    counts, _ = np.histogram(reference.clip(-1, 1), BINS, (-1, 1))
    return [round(count / len(reference), 4) for count in counts.tolist()]


FOREIGN_SHARE = 0.3  # share of letters outside the Latin script
PIECES_PER_WORD, FEWEST_WORDS = 1.6, 4  # pieces per word, from this many words on; true of 3 % of the STS sentences
WORD_OR_SIGN = regex.compile(rf"{WORD.pattern}|[^\w\s]", regex.V1)


def input_notes(encoder: Encoder, text: str) -> list[str]:
    """Return notes on why a text's vector may represent it badly; an empty list for an ordinary text."""
    (pieces,) = plain_ids(encoder.tokenizer, [text])
    notes = []
    if len(pieces) > encoder.max_content:
        notes.append(f"only the first {encoder.max_content} of its {len(pieces):,} word pieces are read")
    unknown = sum(piece == encoder.tokenizer.unk_token_id for piece in pieces)
    if unknown == len(pieces):
        notes.append("no piece of it is in the vocabulary, so the vector says nothing")
    elif unknown:
        are = "is" if unknown == 1 else "are"
        notes.append(f"{unknown} of its {len(pieces):,} word pieces {are} not in the vocabulary")
    words = len(WORD_OR_SIGN.findall(text))
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(not unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
    if foreign > FOREIGN_SHARE * len(letters):
        notes.append("it is in a script that an English model hardly knows")
    elif words >= FEWEST_WORDS and not unknown and len(pieces) / words >= PIECES_PER_WORD:
        rate = f"{len(pieces) / words:.1f} pieces each"
        notes.append(f"its words break into {rate}: rare words, or a language that an English model hardly knows")
    return notes


def overlap(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The number of items that two lists share."""
    return len(set(first) & set(second))


def normalised_ranks(values: np.ndarray) -> np.ndarray:
    """(N,) mean ranks of values (N,), scaled to 0 to 1; 0.5 for a single value."""
    return (ranks(values) - 1) / (len(values) - 1) if len(values) > 1 else np.full(len(values), 0.5)
