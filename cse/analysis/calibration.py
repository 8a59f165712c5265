"""Calibration of cosines: percentiles among those of random sentence pairs, and ranks, are comparable between models.

Two unrelated sentences may have a cosine of 0.1 in one model and of 0.9 in another.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import regex

from cse.corpus.words import WORD
from cse.encoder.rows import plain_ids
from cse.evaluation.metrics import ranks
from cse.vectors import unit_rows

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder

LOWEST, HIGHEST = -0.25, 1.0  # range of histograms
BINS = 50
TAIL_FROM = 95.0  # the percentile above which `tail_cosine` extrapolates


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

    The tail is exponential in Fisher's z = atanh(cosine), with the slope between the median and the 95th percentile.
    """
    if percent <= TAIL_FROM:
        return cosine_at(percent, reference)
    middle, high = (np.arctanh(min(cosine_at(at, reference), 1 - 1e-7)) for at in (50.0, TAIL_FROM))
    slope = (high - middle) / np.log(50 / (100 - TAIL_FROM))
    return float(np.tanh(high + slope * np.log((100 - TAIL_FROM) / (100 - percent))))


def percentile(cosine: float, reference: np.ndarray) -> float:
    """The percentage of the ascending `reference` (P,) below `cosine`, 0 to 100; equal values count half."""
    return float(percentiles(np.array(cosine), reference))


def percentiles(cosines: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The `percentile` of each of the `cosines`, in their shape."""
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
    """The shares of `reference` in `BINS` equal bins from `LOWEST` to `HIGHEST`; values beyond are in the end bins."""
    counts, _ = np.histogram(reference.clip(LOWEST, HIGHEST), BINS, (LOWEST, HIGHEST))
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
    if foreign_share(text) > FOREIGN_SHARE:
        notes.append("it is in a script that an English model hardly knows")
    elif words >= FEWEST_WORDS and not unknown and len(pieces) / words >= PIECES_PER_WORD:
        rate = f"{len(pieces) / words:.1f} pieces each"
        notes.append(f"its words break into {rate}: rare words, or a language that an English model hardly knows")
    return notes


def foreign_share(text: str) -> float:
    """The share of a text's letters that are not Latin; 0 without letters."""
    letters = [letter for letter in text if letter.isalpha()]
    return sum(not unicodedata.name(letter, "").startswith("LATIN") for letter in letters) / max(1, len(letters))


Measure = Callable[[Sequence[Hashable], Sequence[Hashable]], float]

PERSISTENCE = 0.9  # p of rank-biased overlap, an expected depth of ten ranks


def overlap(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The number of items that two lists share."""
    return len(set(first) & set(second))


def shared(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """The share of the longer list's items that the other contains; overlap@k for two lists of k."""
    longest = max(len(first), len(second))
    return overlap(first, second) / longest if longest else 1.0


def agreements(lists: Sequence[Sequence[Hashable]], measure: Measure) -> list[list[float]]:
    """(M, M) values of the measure for all pairs of M ranked lists."""
    return [[measure(first, second) for second in lists] for first in lists]


def rank_biased_overlap(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Extrapolated rank-biased overlap of two lists without repetitions: 1 if equal, 0 if disjoint.

    Webber, Moffat and Zobel 2010, equation 32 for lists of one length; a longer list is truncated.
    """
    depth = min(len(first), len(second))
    if not depth:
        return 1.0 if len(first) == len(second) else 0.0
    agreements = [overlap(first[:rank], second[:rank]) / rank for rank in range(1, depth + 1)]
    weighted = sum(agreement * PERSISTENCE**rank for rank, agreement in enumerate(agreements, start=1))
    return agreements[-1] * PERSISTENCE**depth + (1 - PERSISTENCE) / PERSISTENCE * weighted


class Disagreement(NamedTuple):
    """Pair number `pair` and its normalised rank by model in `places`, 0 for the least similar pair to 1 for the most.

    `spread` is the largest rank minus the smallest, 0 to 1.
    """

    pair: int
    places: dict[str, float]
    spread: float


def disagreements(cosines: Mapping[str, np.ndarray]) -> list[Disagreement]:
    """Rank N pairs, given their (N,) cosines by two or more models, by the spread of their ranks, largest first.

    Pairs of equal cosine share their mean rank; pairs of equal spread keep their order. Raises ValueError for
    different N.
    """
    counts = {name: len(values) for name, values in cosines.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"the models have different numbers of pairs: {counts}")
    shares = {name: normalised_ranks(values) for name, values in cosines.items()}
    rows = []
    for pair in range(next(iter(counts.values()), 0)):
        of_pair = {name: float(of_model[pair]) for name, of_model in shares.items()}
        rows.append(Disagreement(pair, of_pair, max(of_pair.values()) - min(of_pair.values())))
    return sorted(rows, key=lambda row: -row.spread)


def normalised_ranks(values: np.ndarray) -> np.ndarray:
    """(N,) mean ranks of values (N,), scaled to 0 to 1; 0.5 for a single value."""
    return (ranks(values) - 1) / (len(values) - 1) if len(values) > 1 else np.full(len(values), 0.5)
