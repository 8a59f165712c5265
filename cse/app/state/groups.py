"""Groups of texts by a model's vectors, with their words and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cse.corpus.words import word_notes

SEED = 42  # of k-means
WORDS = 8  # of a group
LEAST, MOST, GROUPS = 1, 100, 12  # number of groups, and its default


class Groups(NamedTuple):
    """Groups of N texts, the largest first: `of` (N,) uint8 is the group of each text.

    Each group has its `words`, best first, and its most frequent label with its share, if there are labels. `notes` say
    how words were cut where a script has no spaces.
    """

    of: np.ndarray
    words: list[list[str]]
    labels: list[tuple[str, float] | None]
    notes: Sequence[str] = ()


def groups_of(texts: Sequence[str], labels: Sequence[str] | None, vectors: np.ndarray, count: int) -> Groups:
    """Return `count` groups of N texts by vectors (N, d), at most half as many as texts."""
    from cse.analysis.topics import class_words, grouped, majority

    if not len(texts):
        return Groups(np.zeros(0, np.uint8), [], [])
    of = grouped(vectors, min(count, max(1, len(texts) // 2)), SEED)
    words = [[word for word, _ in found] for found in class_words(texts, of, WORDS)]
    members = [np.flatnonzero(of == group).tolist() for group in range(len(words))]
    named = [majority([labels[row] for row in rows]) if labels else None for rows in members]
    notes = word_notes(texts, (word for found in words for word in found))
    return Groups(of.astype(np.uint8), words, named, notes)
