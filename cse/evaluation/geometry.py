"""Geometry of sentence vectors: anisotropy, alignment and uniformity, and how cosines follow human grades.

Arrays in, numbers out; `units` applies them to STS-B test.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.data import scored_pairs
from cse.data import sentences as read_sentences
from cse.evaluation.sts import distinct_texts, pair_vectors
from cse.vectors import cosines, unit_rows

if TYPE_CHECKING:
    from cse.evaluation import Encode, Unit

PAIRS = Path("STSB") / "test.tsv"
POSITIVE_GRADE = 4.0  # STS-B pairs from here on count as positives for `alignment`
SHARPNESS = 2.0  # Wang & Isola's t
TOP_GRADE = 5
BLOCK = 512
MOST_SENTENCES = 100_000  # PromptBERT's sample for Eq. 1
DIGITS = 4


def anisotropy(vectors: np.ndarray) -> float:
    """Absolute mean cosine, 0 to 1, over the pairs i != j of (N, d) rows (PromptBERT Eq. 1; of tokens: its Table 2).

    All N^2 cosines add up to the squared length of the summed unit rows; the self pairs are taken out of it.
    A zero row has cosine 0 with all. Raises ValueError for fewer than two rows.
    """
    count = len(_at_least(vectors, 2))
    rows = unit_rows(vectors)
    total = rows.sum(0, dtype=np.float64)
    return abs(float(total @ total) - int(rows.any(1).sum())) / (count * (count - 1))


def alignment(first: np.ndarray, second: np.ndarray) -> float:
    """Mean squared distance, 0 to 4, of the unit rows of two (N, d) arrays of positives (Wang & Isola 2020, alpha 2).

    A zero row counts as orthogonal. Raises ValueError for no row and for different shapes.
    """
    if first.shape != second.shape:
        raise ValueError(f"positives come in pairs; {first.shape} and {second.shape} have different shapes")
    return float(np.mean(2 - 2 * cosines(_at_least(first, 1), second)))


def uniformity(vectors: np.ndarray) -> float:
    """Log of the mean of exp(-2 distance^2), -8 to 0, over the pairs i < j of (N, d) unit rows (Wang & Isola 2020).

    Lower is more uniform. 512 rows at a time. A zero row counts as orthogonal. Raises ValueError for fewer than two.
    """
    rows = unit_rows(_at_least(vectors, 2)).astype(np.float64)
    total = 0.0
    for start in range(0, len(rows), BLOCK):
        squared = 2 - 2 * rows[start : start + BLOCK] @ rows[start:].T  # entry (i, j): rows start + i and start + j
        total += float(np.triu(np.exp(-SHARPNESS * squared), 1).sum())
    return float(np.log(total / (len(rows) * (len(rows) - 1) / 2)))


def grade_distribution(found: np.ndarray, grades: Sequence[float]) -> dict[str, Any]:
    """Spread of cosines (N,) within each bucket of grades 0 to 5, and what separates the outer ones (ConPVP Figure 4).

    `separation`: mean cosine of the highest bucket less that of the lowest. `buckets`: grades (0-1 holds 0 <= g < 1,
    4-5 both ends), count, mean, first, second and third quartile; empty ones are left out. `points`: the N grades and
    cosines. Raises ValueError for a grade outside 0 to 5 and for fewer than two buckets with pairs.
    """
    graded = np.asarray(grades, np.float64)
    if wrong := [grade for grade in grades if not 0 <= grade <= TOP_GRADE]:
        raise ValueError(f"grade {wrong[0]:g} is outside 0 to {TOP_GRADE}; give STS-B's scale")
    places = np.minimum(graded.astype(int), TOP_GRADE - 1)
    buckets = [_bucket(place, found[places == place]) for place in range(TOP_GRADE) if np.any(places == place)]
    if len(buckets) < 2:
        raise ValueError(f"{len(buckets)} bucket of grades has pairs; a separation needs two of 0-1, 1-2, ... 4-5")
    return {
        "separation": round(buckets[-1]["mean"] - buckets[0]["mean"], DIGITS),
        "buckets": buckets,
        "points": {"grades": graded.tolist(), "cosines": np.round(found, DIGITS).tolist()},
    }


def _bucket(place: int, inside: np.ndarray) -> dict[str, Any]:
    quartiles = np.round(np.quantile(inside, (0.25, 0.5, 0.75)), DIGITS).tolist()
    mean = round(float(inside.mean()), DIGITS)
    return {"grades": f"{place}-{place + 1}", "count": len(inside), "mean": mean, "quartiles": quartiles}


def units(folder: Path, *, sentences: Path | None = None) -> dict[str, Unit]:
    """`anisotropy`, `alignment-uniformity` and `distribution` on `folder`/STSB/test.tsv, rounded to four decimals.

    `sentences` is a file of any kind `cse.data.sentences` reads, whose first 100,000 take STS-B's place for the
    anisotropy. Raises ValueError where STS-B test, or that file, is missing.
    """
    pairs = Path(folder) / PAIRS
    if missing := [path for path in (pairs, sentences) if path and not Path(path).is_file()]:
        raise ValueError(f"{missing[0]}: no such file; give the folder that holds STSB, and sentences in a text file")
    return {
        "anisotropy": partial(_anisotropy, pairs, sentences),
        "alignment-uniformity": partial(_alignment_uniformity, pairs),
        "distribution": partial(_distribution, pairs),
    }


def _anisotropy(pairs: Path, sentences: Path | None, encode: Encode) -> dict[str, Any]:
    read = (
        distinct_texts(scored_pairs(pairs)) if sentences is None else islice(read_sentences(sentences), MOST_SENTENCES)
    )
    texts = list(dict.fromkeys(read))
    return {"anisotropy": round(anisotropy(encode(texts)), DIGITS), "sentences": len(texts)}


def _alignment_uniformity(path: Path, encode: Encode) -> dict[str, Any]:
    pairs = scored_pairs(path)
    positive = [number for number, (grade, _, _) in enumerate(pairs) if grade >= POSITIVE_GRADE]
    if not positive:
        raise ValueError(f"{path}: no pair has a grade of {POSITIVE_GRADE:g} or more; alignment needs such positives")
    vectors, first, second = pair_vectors(encode, pairs)
    return {
        "alignment": round(alignment(first[positive], second[positive]), DIGITS),
        "uniformity": round(uniformity(vectors), DIGITS),
        "positives": len(positive),
        "sentences": len(vectors),
    }


def _distribution(path: Path, encode: Encode) -> dict[str, Any]:
    pairs = scored_pairs(path)
    _, first, second = pair_vectors(encode, pairs)
    return grade_distribution(cosines(first, second), [grade for grade, _, _ in pairs])


def _at_least(vectors: np.ndarray, count: int) -> np.ndarray:
    if len(vectors) < count:
        raise ValueError(f"{len(vectors)} vectors; give at least {count}")
    return vectors
