"""A guard without labels: texts held out from training, and a score of them that sees a collapse.

It is no judge between models. Measured over ten models and 1,200 texts of each of four sets, the score has a rank
correlation of .95 (biomedical titles), .42 (AG News), .37 (search snippets) and -.04 (Stack Overflow titles) with the
share of the five nearest texts that have the same label. That was the best of five such scores (words dropped, first
and second half, uniformity, alignment and uniformity); all of them see a clear failure. Its use for choosing a step
within one run has not been measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cse.vectors import unit_rows

if TYPE_CHECKING:
    from datasets import Dataset

    from cse.evaluation import Encode

MOST, LEAST = 500, 20  # held-out texts
SHARE = 5  # one text of so many is held out
WORDS = 6  # fewer do not make two halves that say something
COLLAPSED = 0.99  # mean cosine of different texts
READ = 10_000  # texts at a time
SAME = 1e-6  # cosines that differ by less are equal in float32
SELECTION = "best at finding the other half of held-out texts, without labels"


@dataclass(frozen=True)
class HeldOutScore:
    """Of held-out texts: percent whose odd words find their even words, and the mean cosine of different texts."""

    found: float
    cosine: float


def held_out_score(encode: Encode, texts: Sequence[str]) -> HeldOutScore:
    """Score an encoder without dropout on texts of two words or more.

    The odd words of a text (first, third, ...) have found its even words if their cosine is higher than with the even
    words of any other text; an equal one counts as not found. The mean cosine is that of odd words with the even words
    of other texts; it is 1 if vectors are not finite or all cosines are the same.
    """
    words = [text.split() for text in texts]
    vectors = np.asarray(encode([" ".join(half) for start in (0, 1) for half in (each[start::2] for each in words)]))
    odd, even = unit_rows(vectors.astype(np.float64)).reshape(2, len(texts), -1)
    cosines = odd @ even.T  # (N, N)
    if not np.isfinite(cosines).all() or cosines.max() - cosines.min() < SAME:
        return HeldOutScore(0.0, 1.0)
    own, others = np.diag(cosines), cosines.copy()
    np.fill_diagonal(others, -np.inf)
    found = 100 * float((own > others.max(axis=1) + SAME).mean())
    count = len(texts)
    return HeldOutScore(round(found, 3), float((cosines.sum() - own.sum()) / (count * (count - 1))))


def has_collapsed(score: HeldOutScore, start_cosine: float) -> bool:
    """True if nearly all texts have one vector, and did less so at the start: an untrained RoBERTa does."""
    return score.cosine > COLLAPSED and score.cosine > start_cosine


def hold_out(examples: Dataset, seed: int) -> tuple[Dataset, tuple[str, ...]]:
    """Split examples into those to train on and held-out texts: a fifth, at most 500, drawn by the seed.

    Texts of column "0" with six words or more are held out, each once, and no example with such a text is trained on.
    Raises ValueError if there are fewer than 20, or too few others.
    """
    long = list(dict.fromkeys(text for text in _texts(examples) if len(text.split()) >= WORDS))
    count = min(MOST, len(long) // SHARE)
    if count < LEAST:
        raise ValueError(
            f"`dev` auto needs {LEAST * SHARE} different texts of {WORDS} words or more, a fifth of which is held out; "
            f"found {len(long)}; give scored pairs, or none"
        )
    chosen = np.random.default_rng((seed, MOST)).permutation(len(long))[:count]
    texts = tuple(long[number] for number in sorted(chosen.tolist()))
    held = set(texts)
    kept = [number for number, text in enumerate(_texts(examples)) if text not in held]
    return examples.select(kept), texts


def _texts(examples: Dataset) -> Iterator[str]:
    """The texts of column "0", read in parts: one at a time takes a hundred times as long."""
    return (text for part in examples.iter(READ) for text in part["0"])
