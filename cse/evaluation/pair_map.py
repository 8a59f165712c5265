"""Pairs of known likeness on a map: ConPVP's Figure 6."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.evaluation.isotropy import DIGITS
from cse.text.sentences import Pair, scored_pairs
from cse.vectors import cosines, unit_rows

if TYPE_CHECKING:
    from cse.evaluation import Encode, Scores

GRADES, PAIRS_EACH = (0.0, 3.0, 5.0), 10  # three groups of ten pairs
PERPLEXITY, SEED = 10.0, 42  # the paper gives neither


def drawn_pairs(pairs: list[Pair]) -> list[Pair]:
    """At most ten pairs of each grade that is exactly 0, 3 or 5, drawn with a fixed seed, in that order."""
    rng = np.random.default_rng(SEED)
    chosen: list[Pair] = []
    for grade in GRADES:
        of_grade = [pair for pair in pairs if pair[0] == grade]
        places = rng.permutation(len(of_grade))[:PAIRS_EACH]
        chosen += [of_grade[place] for place in sorted(places.tolist())]
    return chosen


def pair_map(encode: Encode, path: Path) -> Scores:
    """Mean cosine of the drawn pairs of each grade, and in `points` where t-SNE puts their sentences.

    `points`: `x` and `y` (2n: the n first sentences, then the n second ones) and the pairs' `grades` (n). Raises
    ValueError where fewer than four pairs have one of the grades.
    """
    from sklearn.manifold import TSNE

    chosen = drawn_pairs(scored_pairs(path))
    if len(chosen) < 4:
        raise ValueError(f"{path}: {len(chosen)} pairs are graded exactly 0, 3 or 5; a map needs four or more")
    vectors = encode([*(first for _, first, _ in chosen), *(second for _, _, second in chosen)]).astype(np.float64)
    found = cosines(*np.split(vectors, 2))
    grades = np.array([pair[0] for pair in chosen])
    unit = unit_rows(vectors)
    perplexity = min(PERPLEXITY, (len(unit) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", random_state=SEED).fit_transform(unit).round(DIGITS)
    means = {f"cosine of {grade:g}": float(found[grades == grade].mean()) for grade in GRADES if grade in grades}
    return {
        **{name: round(value, DIGITS) for name, value in means.items()},
        "pairs": len(chosen),
        "points": {"x": places[:, 0].tolist(), "y": places[:, 1].tolist(), "grades": grades.tolist()},
    }
