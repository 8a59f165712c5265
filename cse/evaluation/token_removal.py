"""The effect of frequent tokens: STS scores as more and more of them are removed from the input (ConPVP Figure 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from cse.evaluation.metrics import check_grades, correlation_or_none, distinct_texts, mean_or_none
from cse.text.sentences import Pair
from cse.vectors import cosines

Tokenise = Callable[[list[str]], list[list[int]]]
EncodeIds = Callable[[list[list[int]]], np.ndarray]

STEPS = tuple(range(0, 101, 10))


def most_frequent(contents: Iterable[Sequence[int]], k: int) -> list[int]:
    """The k most frequent token ids in lists of ids, most frequent first, ties by lower id."""
    counts = Counter(token for content in contents for token in content)
    return sorted(counts, key=lambda token: (-counts[token], token))[:k]


def task_scores(rows: Mapping[str, np.ndarray], sets: Mapping[str, Sequence[Pair]]) -> dict[str, float | None]:
    """Spearman x 100 of each set's cosines with its grades, and their `average`, from a vector (d,) per sentence.

    A set whose cosines are all equal, and then the average, is None. Raises ValueError if all its grades are equal.
    """
    scores: dict[str, float | None] = {}
    for name, pairs in sets.items():
        check_grades(pairs, name)
        first, second = (np.array([rows[str(pair[side])] for pair in pairs], np.float64) for side in (1, 2))
        found = cosines(first, second)
        scores[name] = correlation_or_none(found, [grade for grade, _, _ in pairs])
    return {**scores, "average": mean_or_none(list(scores.values()))}


def removal_curve(
    tokenise: Tokenise,
    encode_ids: EncodeIds,
    sets: Mapping[str, Sequence[Pair]],
    *,
    counted: Iterable[str],
    steps: Sequence[int] = STEPS,
) -> dict[str, Any]:
    """Average Spearman x 100 of `sets` without the K most frequent tokens, for each K of `steps` (ConPVP Figure 5).

    Tokens are counted in the sentences `counted` (paper: STS-B test) and removed from the input for every method:
    ConSERT removes them from mean pooling only, which is impossible for prompt methods, as they read one vector.
    ConSERT's two most frequent tokens are [CLS] and [SEP]; here `tokenise` omits them and `encode_ids` adds them, so
    they are never removed. `encode_ids` ((N, d) from N lists, which may be empty) is called once, with every distinct
    list. Returns "K=0" ... "K=100" and `curve` with `removed` (the steps), `average`, and `kept` (percent of tokens).
    Raises ValueError without a set or a step.
    """
    if not sets or not steps:
        raise ValueError("a removal curve needs at least one set of pairs and one step")
    texts = distinct_texts(chain.from_iterable(sets.values()))
    contents = tokenise(texts)
    rank = {token: number for number, token in enumerate(most_frequent(tokenise(list(counted)), max(steps)))}
    left = {
        step: [tuple(token for token in content if rank.get(token, step) >= step) for content in contents]
        for step in steps
    }
    distinct = list(dict.fromkeys(content for kept in left.values() for content in kept))
    vectors = dict(zip(distinct, encode_ids([list(content) for content in distinct]), strict=True))
    curve: dict[str, list[Any]] = {"removed": list(left), "average": [], "kept": []}
    for kept in left.values():
        scored = task_scores({text: vectors[content] for text, content in zip(texts, kept, strict=True)}, sets)
        curve["average"].append(scored["average"])
        curve["kept"].append(round(100 * sum(map(len, kept)) / max(1, sum(map(len, contents))), 2))
    return {**{f"K={step}": score for step, score in zip(left, curve["average"], strict=True)}, "curve": curve}
