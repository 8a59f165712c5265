"""Sentences that say what the shown numbers mean; empty where nothing is known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from cse.analysis.calibration import BINS, HIGHEST, LOWEST, overlap
from cse.app.models.naming import title

UNHEARD = 0.1  # of the way to an unrelated sentence
DEMO = "the demo corpus"
NARROW, APART = 0.4, 0.1  # a mean cosine of random pairs that is high, and a difference of two such means that matters
FAINT = 0.01  # a probability of the likeliest word that tells nothing
MOST_NAMED = 5  # removed words listed
NEGATED = re.compile(r"\b(?:not|never)\s+(\w+)|n't\s+(\w+)", re.IGNORECASE)
FEW = 20  # texts of which too little follows about neighbours
MARGIN = 1.96  # standard errors in half of a 95 % interval


def reaction(moved: Mapping[str, float], what: str) -> str:
    """Return which models react to `what` changes a sentence; `moved` is the way to an unrelated sentence by model."""
    if not moved:
        return ""
    deaf = {name: share for name, share in moved.items() if share < UNHEARD}
    least, most = (f"{max(0, round(100 * end(moved.values())))}" for end in (min, max))
    way = f"{least} %" if least == most else f"{least} to {most} %"
    if len(deaf) == len(moved):
        return f"No model reacts to {what}: {way} of the way to an unrelated sentence."
    if not deaf:
        return f"Every model reacts to {what}: {way} of the way to an unrelated sentence."
    hearing = set(moved) - set(deaf)
    react, no = ("reacts" if len(hearing) == 1 else "react"), ("does not" if len(deaf) == 1 else "do not")
    return f"{listed(hearing, moved)} {react} to {what}; {listed(deaf, moved)} {no} (below {percent(UNHEARD)})."


def scales(histograms: Mapping[str, Sequence[float]], corpus: str = DEMO) -> str:
    """Return whether the models' cosines share a scale; a histogram is that of random pairs of a corpus."""
    means = {name: mean_of(shares) for name, shares in histograms.items() if sum(shares)}
    if not means:
        return ""
    narrow = [name for name, mean in means.items() if mean >= NARROW]
    if narrow:
        whose = listed(narrow, means)
        them = ", ".join(f"{means[name]:.2f}" for name in means if name in narrow)
        return f"Even random pairs of {corpus} have a high cosine in {whose} (mean {them}): compare percentiles."
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    if means[high] - means[low] < APART:
        return ""
    return (
        f"Random pairs of {corpus} have a mean cosine of {means[low]:.2f} in {title(low)} and {means[high]:.2f} "
        f"in {title(high)}: compare percentiles."
    )


def among_random(percentile: float) -> str:
    """Return a percentile among random pairs to the precision that a sample of them allows."""
    if percentile in (0, 100):
        return "above all random pairs" if percentile else "below all random pairs"
    if not 0.05 <= percentile < 99.95:
        return "above 99.9 %" if percentile > 50 else "below 0.1 %"
    return f"{percentile:.1f} %"


def by_answer(answers: Mapping[str, str]) -> str:
    """Return which models give which answer, if there are any: "dog in SimCSE and ConPVP; cat in DCPCSE"."""
    groups = {answer: [name for name in answers if answers[name] == answer] for answer in answers.values()}
    if len(groups) == 1 and len(answers) > 1:
        return f"{next(iter(groups))} in every model"
    return "; ".join(f"{answer} in {listed(names, dict.fromkeys(answers, 0.0))}" for answer, names in groups.items())


def mean_of(shares: Sequence[float]) -> float:
    """Return the mean of a histogram from `LOWEST` to `HIGHEST`."""
    edges = np.linspace(LOWEST, HIGHEST, BINS + 1)
    return float(np.average((edges[:-1] + edges[1:]) / 2, weights=shares))


def denoising(before: Sequence[str], alone: Sequence[str], after: Sequence[str]) -> str:
    """Return which words of the template alone, and which others, denoising has removed from a sentence's likeliest."""
    lost = [word for word in before if word not in after]
    removed, others = [word for word in lost if word in alone], [word for word in lost if word not in alone]
    kept = [word for word in after if word in alone]
    pushed = f"pushed out {quoted(others)}." if others else ""
    if removed and pushed:
        return f"Of the template's own words denoising removed {quoted(removed)}; it also {pushed}"
    if removed:
        return f"Denoising removed {quoted(removed)}."
    if kept:
        return f"Denoising left {quoted(kept)}, which the template says alone" + (
            f"; it also {pushed}" if pushed else "."
        )
    return f"Denoising {pushed}" if pushed else ""


def flat(after: Sequence[tuple[str, float]]) -> str:
    """Return that no word stands out after denoising, given the likeliest with their probabilities, best first."""
    if not after or after[0][1] >= FAINT:
        return ""
    return f"No word stands out after denoising: the likeliest has {100 * after[0][1]:.1f} %."


def still_said(sentence: str, after: Sequence[str]) -> str:
    """Return that the likeliest word is one that the sentence negates; empty if it is not."""
    negated = [word.lower() for found in NEGATED.findall(sentence) for word in found if word]
    if not after or after[0].lower() not in negated:
        return ""
    return f"The likeliest word is still {quoted(after[:1])}, which the sentence negates."


def agreement(lists: Mapping[str, Sequence[int]]) -> str:
    """Return how far the models' results for a query agree; `lists` are rows of a corpus, best first."""
    shown = {name: rows for name, rows in lists.items() if rows}
    if len(shown) < 2:
        return ""
    count, common = max(map(len, shown.values())), set.intersection(*map(set, shown.values()))
    best = len({rows[0] for rows in shown.values()})
    first = "The models agree on the best sentence" if best == 1 else f"The models name {best} different best sentences"
    if count == 1:
        return f"{first}."
    if len(common) == count:
        return f"{first}{' and' if best == 1 else ', but agree'} on all {count} results."
    worst = min(combinations(shown, 2), key=lambda pair: overlap(shown[pair[0]], shown[pair[1]]))
    least = overlap(*(shown[name] for name in worst))
    return (
        f"{first}; {len(common)} of {count} results are common to all. {title(worst[0])} and {title(worst[1])} differ "
        f"most, with {least} in common."
    )


def neighbourhoods(unshared: Mapping[tuple[str, str], np.ndarray]) -> str:
    """Return which two models differ most in the texts' neighbours, if by more than chance.

    `unshared` are the (N,) shares of a text's nearest ones that two models do not have in common. Of fewer than `FEW`
    texts nothing is said.
    """
    if not unshared or len(next(iter(unshared.values()))) < FEW:
        return ""
    means = {pair: float(shares.mean()) for pair, shares in unshared.items()}
    most, least = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    names = " and ".join(map(title, most))
    if len(means) == 1:
        return f"{names} differ in {percent(means[most])} of a text's five nearest texts."
    lead = unshared[most] - unshared[least]
    if lead.mean() <= MARGIN * lead.std() / np.sqrt(len(lead)):
        return f"Each two models differ alike, within noise: in {percent(means[most])} of a text's five nearest texts."
    return (
        f"{names} differ most: in {percent(means[most])} of a text's five nearest texts. "
        f"{' and '.join(map(title, least))} differ least ({percent(means[least])})."
    )


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100 * share:.0f} %"


def quoted(words: Sequence[str]) -> str:
    """Return at most `MOST_NAMED` words in quotation marks."""
    return ", ".join(f"“{word}”" for word in words[:MOST_NAMED]) + (" and others" if len(words) > MOST_NAMED else "")


def listed(chosen: Sequence[str] | set[str] | Mapping[str, float], order: Mapping[str, float]) -> str:
    """Return the titles of the chosen models in the given order."""
    *others, last = (title(name) for name in order if name in chosen)
    return f"{', '.join(others)} and {last}" if others else last
