"""Known items: how well a short form of a text finds that text among others."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from cse.corpus.words import spans_within
from cse.vectors import unit_rows

MIN_WORDS = 3  # fewer leave one word, which is no question
EQUAL_COSINES = 1e-6  # cosines that differ by less are equal in float32
QUERIES_AT_ONCE = 512


def every_second_word(text: str) -> str:
    """Return the first, third, … word of a text; "" for a text of fewer than `MIN_WORDS`.

    Words stand between spaces; scripts without spaces are cut as `cse.corpus.words` says.
    """
    words = [text[slice(*span)] for part in re.finditer(r"\S+", text) for span in spans_within(text, *part.span())]
    return " ".join(words[::2]) if len(words) >= MIN_WORDS else ""


def ranks(queries: np.ndarray, own: np.ndarray, texts: np.ndarray, draws: Sequence[np.ndarray]) -> np.ndarray:
    """Return the rank (draws, Q) from 1 by cosine of text `own[q]` for each of the `queries` (Q, d).

    `texts` are (N, d). In a draw, an (m,) array of numbers, a query is compared with these texts and its own. A text
    that is as near as the query's own counts as nearer.
    """
    unit = unit_rows(np.asarray(texts, np.float32))
    members = np.zeros((len(unit), len(draws)), np.float32)
    for number, draw in enumerate(draws):
        members[draw, number] = 1
    placed = []
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        rows = own[start : start + QUERIES_AT_ONCE]
        cosines = unit_rows(np.asarray(queries[start : start + len(rows)], np.float32)) @ unit.T
        numbers = np.arange(len(rows))
        nearer = cosines >= cosines[numbers, rows][:, None] - EQUAL_COSINES
        nearer |= np.isnan(cosines)
        nearer[numbers, rows] = False
        placed.append(1 + nearer.astype(np.float32) @ members)
    return np.concatenate(placed).T if placed else np.empty((len(draws), 0))


def known_item_values(
    queries: np.ndarray, own: np.ndarray, texts: np.ndarray, draws: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return recall@1 and reciprocal rank of each query (Q,), in [0, 1], as means over the draws of `ranks`."""
    placed = ranks(queries, own, texts, draws)
    return {"recall@1": (placed == 1).mean(axis=0), "mrr": (1 / placed).mean(axis=0)}
