"""Deterministic small changes of a sentence that keep or change its meaning, to probe a model's sensitivity."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import regex

from cse.analysis.attribution import without
from cse.corpus.words import WORD as PLAIN_WORD
from cse.corpus.words import spans_within
from cse.evaluation.metrics import ranks

AUXILIARIES = frozenset(
    "am is are was were can could will would shall should may might must has have had do does did".split()
)
CONTRACTED = {"won't": "will", "can't": "can", "cannot": "can", "shan't": "shall", "ain't": "am"}
STARTERS = AUXILIARIES | frozenset(
    "a an the this that these those there here i he she it we you they my your his her its our their who what when "
    "where why how which if in on at by for from to of with as and but or so no not yes all some every each".split()
)
WORD = regex.compile(rf"{PLAIN_WORD.pattern}(?:'{PLAIN_WORD.pattern})?", regex.V1)
LETTER = regex.compile(r"\X")
NUMBER = re.compile(r"\d[\d.,]*(?<=\d)")
EDGE_PUNCTUATION = '.,;:!?"()'


@dataclass(frozen=True)
class Perturbation:
    """A named change; `apply` returns the changed sentence, or None if there is nothing to change.

    `keeps` is True if the meaning stays the same, so that a good model's vector should hardly change.
    """

    name: str
    keeps: bool
    apply: Callable[[str], str | None]


def negate(text: str) -> str | None:
    """The sentence with "not" after its first auxiliary verb, or without the "not" that it contains."""
    words = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split()
    bare = [word.lower().strip(EDGE_PUNCTUATION) for word in words]
    for at, (word, lower) in enumerate(zip(words, bare, strict=True)):
        if lower == "not":
            return " ".join(words[:at] + words[at + 1 :])
        positive = CONTRACTED.get(lower) or (lower.removesuffix("n't") if lower.endswith("n't") else "")
        if positive:
            return " ".join([*words[:at], positive.capitalize() if word[:1].isupper() else positive, *words[at + 1 :]])
    for at, word in enumerate(words):
        name = at > 0 and word[0].isupper()  # the month of May
        if word.lower() in AUXILIARIES and not name:
            return " ".join([*words[: at + 1], "not", *words[at + 1 :]])
    return None


def change_numbers(text: str) -> str | None:
    """The sentence with the last digit of every number increased by one, 9 becoming 0."""
    changed = NUMBER.sub(lambda match: match.group()[:-1] + str((int(match.group()[-1]) + 1) % 10), text)
    return changed if changed != text else None


def swap_names(text: str) -> str | None:
    """The sentence with two capitalised words exchanged: the first two after its first word.

    With only one of these, the first word is used too, unless it is a common first word of sentences.
    """
    spans = [match.span() for match in WORD.finditer(text) if match.group()[0].isupper() and match.group() != "I"]
    inner = [span for span in spans if span[0] > 0]
    names = [span for span in spans if text[slice(*span)].lower() not in STARTERS]
    chosen = inner[:2] if len(inner) > 1 else names
    if len(chosen) < 2 or text[slice(*chosen[0])] == text[slice(*chosen[1])]:
        return None
    (a, b), (c, d) = chosen
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def reverse_words(text: str) -> str | None:
    """The words in reverse order, with the final punctuation at the end."""
    body, end = _end(text)
    words = body.split()
    return " ".join(reversed(words)) + end if words != words[::-1] else None


def drop_word(text: str) -> str | None:
    """The sentence without its longest word."""
    span = _longest(text)
    shortened = without(text, [span]) if span else ""
    return shortened if WORD.search(shortened) else None


def double_word(text: str) -> str | None:
    """The sentence with its longest word twice."""
    span = _longest(text)
    return f"{text[: span[1]]} {text[slice(*span)]}{text[span[1] :]}" if span else None


def misspell(text: str) -> str | None:
    """The sentence with two inner letters of its longest alphabetic word exchanged, with their marks."""
    span = _longest(text, lambda word: all(letter[0].isalpha() for letter in LETTER.findall(word)))
    if span is None:
        return None
    word = LETTER.findall(text[slice(*span)])
    at = next((i for i in range(1, len(word) - 2) if word[i] != word[i + 1]), None)
    if at is None:
        return None
    word[at : at + 2] = word[at + 1], word[at]
    return text[: span[0]] + "".join(word) + text[span[1] :]


def shout(text: str) -> str | None:
    """The sentence in capitals, which an uncased model cannot distinguish."""
    return text.upper() if text != text.upper() else None


def change_end(text: str) -> str | None:
    """The sentence without its final punctuation, or with a full stop if it has none."""
    body, end = _end(text)
    return body if end else f"{text}."


PERTURBATIONS = (
    Perturbation("final punctuation", True, change_end),
    Perturbation("capitals", True, shout),
    Perturbation("typing error", True, misspell),
    Perturbation("word doubled", True, double_word),
    Perturbation("longest word dropped", False, drop_word),
    Perturbation("names exchanged", False, swap_names),
    Perturbation("numbers changed", False, change_numbers),
    Perturbation("words reversed", False, reverse_words),
    Perturbation("negated", False, negate),
)


def _longest(text: str, kind: Callable[[str], bool] = bool) -> tuple[int, int] | None:
    words = [span for match in WORD.finditer(text) for span in spans_within(text, *match.span())]
    spans = [span for span in words if kind(text[slice(*span)])]
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def _end(text: str) -> tuple[str, str]:
    body = text.rstrip().rstrip(".!?")
    return body, text.rstrip()[len(body) :]


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
    ranks = {name: normalised_ranks(values) for name, values in cosines.items()}
    rows = []
    for pair in range(next(iter(counts.values()), 0)):
        of_pair = {name: float(ranks_of_model[pair]) for name, ranks_of_model in ranks.items()}
        rows.append(Disagreement(pair, of_pair, max(of_pair.values()) - min(of_pair.values())))
    return sorted(rows, key=lambda row: -row.spread)


def normalised_ranks(values: np.ndarray) -> np.ndarray:
    """(N,) mean ranks of values (N,), scaled to 0 to 1; 0.5 for a single value."""
    return (ranks(values) - 1) / (len(values) - 1) if len(values) > 1 else np.full(len(values), 0.5)
