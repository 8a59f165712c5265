"""A guard without labels: texts held out from training, a score of them, and the signs of a collapse.

The score is no judge between models, and an unproven one between the steps of a run. It is the concentration of the
vectors: 100 minus their effective rank (the exponential of the entropy of the spectrum) in percent of the dimensions.
Measured in single runs on the bundled backbone, with the share of the five nearest texts that have the same label, from
the start to the end:

| run | neighbours | concentration | rank correlation |
|---|---|---|---|
| SimCSE's preset, Stack Overflow titles, 30 steps | 78.1, 48.1 | 77.5, 69.4 | 1.0 |
| rate 1e-5, temperature .2, 105 steps | 78.1, best 80.4 at step 30, 75.6 | 77.5, best 78.4 at step 45, 76.7 | .93 |
| SimCSE's preset, AG News, 25 steps | 79.4, 73.4 | 78.5, 70.2 | 1.0 |

In all three the mean reciprocal rank at which the odd words of a text find its even words rose while the neighbours
got worse. In the second, `dev="auto"` with evaluations every 20 steps kept step 40, with 80.4 of neighbours.

On Wikipedia text and STS-B dev the score was wrong in two of two runs: PromptBERT gains 18 points in fifty steps (66.2
to 83.8) while the concentration falls from 83.7 to 73.8, SimCSE 1.9 in 75 (84.0 to 85.9) while it falls from 74.7 to
71.7. Whether the domain or the measure makes the difference is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cse.evaluation.metrics import effective_rank
from cse.vectors import unit_rows

if TYPE_CHECKING:
    from cse.corpus.supervised import Examples
    from cse.evaluation import Encode

MAX_HELD_OUT, MIN_HELD_OUT = 500, 20  # held-out texts
HELD_OUT_EVERY = 5  # one text of so many is held out
MIN_WORDS = 6  # fewer leave too little when some are dropped
DROPPED_SHARE = 0.4  # share of the words
COLLAPSED_COSINE = 0.99  # mean cosine of different texts
COSINE_TOLERANCE = 1e-6  # cosines that differ by less are equal in float32
HELD_OUT_SELECTION = "highest concentration of held-out texts, without labels"


@dataclass(frozen=True)
class HeldOutScore:
    """The concentration of held-out texts in percent, and the signs of a collapse.

    `found` is the percent of texts that are found after words are dropped, `cosine` the mean of different texts.
    """

    concentration: float
    found: float
    cosine: float

    def __str__(self) -> str:
        return (
            f"{self.found:.1f} % of shortened texts are found, different texts have a mean cosine of {self.cosine:.3f}"
        )

    def has_collapsed(self, start: HeldOutScore) -> bool:
        """True if nearly all texts have one vector, or half of those found at the `start` are no longer found.

        Vectors that are as much alike at the start, as an untrained RoBERTa's are, have not collapsed.
        """
        return COLLAPSED_COSINE < self.cosine > start.cosine or self.found < start.found / 2


def held_out_score(encode: Encode, texts: Sequence[str]) -> HeldOutScore:
    """Score an encoder without dropout on texts.

    A text is found if its copy without 40 % of the words, drawn at random, is nearer to it by cosine than to any other
    text; an equal cosine counts as not found. If vectors are not finite or all the same, nothing is found, the mean
    cosine is 1 and the concentration 0.
    """
    count, copies = len(texts), []
    for number, text in enumerate(texts):  # a text of this number always loses the same words
        words = text.split()
        kept = np.random.default_rng(number).permutation(len(words))[: max(1, round(len(words) * (1 - DROPPED_SHARE)))]
        copies.append(" ".join(words[position] for position in sorted(kept.tolist())))
    whole, thinned = unit_rows(np.asarray(encode([*texts, *copies]), dtype=np.float64)).reshape(2, count, -1)
    cosines = thinned @ whole.T  # (N, N)
    if not np.isfinite(cosines).all() or cosines.max() - cosines.min() < COSINE_TOLERANCE:
        return HeldOutScore(0.0, 0.0, 1.0)
    own, others = np.diag(cosines), cosines.copy()
    np.fill_diagonal(others, -np.inf)
    recovered = 100 * float((own > others.max(axis=1) + COSINE_TOLERANCE).mean())
    mean = float((cosines.sum() - own.sum()) / (count * (count - 1)))
    concentration = float(100 * (1 - effective_rank(whole) / min(count - 1, whole.shape[1])))
    return HeldOutScore(round(concentration, 3), round(recovered, 3), mean)


def can_hold_out(texts: Sequence[str]) -> bool:
    """True if there are enough long texts for `hold_out`."""
    return len(_long(texts)) >= MIN_HELD_OUT * HELD_OUT_EVERY


def _long(texts: Iterable[str]) -> list[str]:
    """The different texts of enough words, in their order."""
    return list(dict.fromkeys(text for text in texts if len(text.split()) >= MIN_WORDS))


def hold_out(examples: Examples, seed: int) -> tuple[Examples, tuple[str, ...]]:
    """Split examples into those to train on and held-out texts: a fifth, at most 500, drawn by the seed.

    Texts of the first view with six words or more are held out, each once, and no example that has one there is trained
    on; as the second text of a pair one may still be.
    Raises ValueError if there are fewer than 20, or too few others.
    """
    long = _long(examples.anchors())
    count = min(MAX_HELD_OUT, len(long) // HELD_OUT_EVERY)
    if count < MIN_HELD_OUT:
        raise ValueError(
            f"`dev` auto needs {MIN_HELD_OUT * HELD_OUT_EVERY} different texts of {MIN_WORDS} words or more, a fifth "
            f"of which is held out; found {len(long)}; give scored pairs, or none"
        )
    chosen = np.random.default_rng((seed, MAX_HELD_OUT)).permutation(len(long))[:count]
    texts = tuple(long[number] for number in sorted(chosen.tolist()))
    held = set(texts)
    kept = [number for number, text in enumerate(examples.anchors()) if text not in held]
    return examples.select(kept), texts
