"""The verdict of an adaptation on two axes, grouping and finding, and the choice among its candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cse.evaluation.metrics import Difference

START, PROJECTION, LANGUAGE = "start", "projection", "language"
TRAINING, TRAINED = "training", "trained-projection"
STAGE_WORDS = {
    START: "the start", PROJECTION: "projection",
    LANGUAGE: "masked language modelling, then projection", TRAINING: "training", TRAINED: "training, then projection",
}  # fmt: skip
MIN_FITTED_TEXTS = 256  # texts that a projection is fitted on
MIN_TEXTS = MIN_FITTED_TEXTS * 5 // 4  # four fifths of them are fitted on
LATER = (LANGUAGE, TRAINING, TRAINED)  # stages of minutes
TOWARDS_NEIGHBOURS, TOWARDS_LABELS = "neighbours", "labels"


@dataclass(frozen=True)
class Variant:
    """A projection: the `exponent` of its spectrum, and what its layer moves texts `towards` first: their neighbours,
    the mean of their label, or nothing.
    """

    exponent: float
    towards: str

    def __str__(self) -> str:
        towards = f" towards {self.towards}" if self.towards else ""
        return f"{towards}, dial {self.exponent:g}" if self.exponent else towards


DIALS = {
    "": (0.0, -0.125, -0.25, 0.25, 0.5), TOWARDS_NEIGHBOURS: (0.0, -0.25, -0.5),
    TOWARDS_LABELS: (0.0, -0.25, -0.375, -0.5),
}  # fmt: skip
VARIANTS = {  # in the order in which they are tried: the first of equals is taken
    f"{towards} {dial:g}".strip() if dial or not towards else towards: Variant(dial, towards)
    for towards, dials in DIALS.items()
    for dial in dials
}
GROUPING, FINDING = AXES = ("grouping", "finding")
MEASURES = {GROUPING: "neighbours", FINDING: "recall@1"}  # by which an axis is decided
GROUPS, SEARCH, BOTH = PURPOSES = ("groups", "search", "both")
AXIS_OF = {GROUPS: GROUPING, SEARCH: FINDING}
MAX_LOSS = 1.0  # points that a candidate for both may lose on one axis
OUT_OF_TIME = "out_of_time"  # marks a stage that more minutes would try
UNMEASURED = "Neither grouping nor finding was measured."

Stages = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Choice:
    """The `result`, the name of a candidate or `START`; another `candidate` to judge or None; the verdict's sentence.

    A candidate is named by its stage and, after a space, its variant.
    """

    result: str
    candidate: str | None
    sentence: str


def candidates(stages: Stages) -> dict[str, Mapping[str, Any]]:
    """Return the scores of the start and of each candidate by name, in the order in which they were tried."""
    scored: dict[str, Mapping[str, Any]] = {}
    for name, stage in stages.items():
        scored |= {f"{name} {variant}": scores for variant, scores in stage.get("variants", {}).items()}
        if "scores" in stage:
            scored[name] = stage
    return scored


def called(name: str) -> str:
    """Return the words for a candidate."""
    stage, _, variant = name.partition(" ")
    return f"{STAGE_WORDS[stage]}{VARIANTS.get(variant, '')}"


def gains_of(scores: Mapping[str, Any]) -> dict[str, Difference]:
    """Return what a candidate gains on each axis that was measured, in points over the start."""
    return {axis: Difference(*gain) for axis, gain in scores.get("gains", {}).items()}


def is_taken(gains: Mapping[str, Difference], purpose: str) -> bool:
    """True if a candidate is taken: better than noise on an axis of the purpose and, for both, not much worse.

    For both it may lose at most `MAX_LOSS` points on the other axis; for one, the other does not count.
    """
    if purpose in AXIS_OF:
        return AXIS_OF[purpose] in gains and gains[AXIS_OF[purpose]].low > 0
    return any(gain.low > 0 for gain in gains.values()) and all(gain.value >= -MAX_LOSS for gain in gains.values())


def phrase(gains: Mapping[str, Difference]) -> str:
    """Return what was measured on each axis, such as "better at grouping (+2.1), level at finding (-0.3)".

    A gain or loss within noise is level up to `MAX_LOSS`, and a larger one "perhaps" one.
    """

    def word(gain: Difference) -> str:
        if gain.low > 0 or gain.high < 0:
            return "better" if gain.low > 0 else "worse"
        return "level" if abs(gain.value) <= MAX_LOSS else f"perhaps {'better' if gain.value > 0 else 'worse'}"

    return ", ".join(f"{word(gain)} at {axis} ({gain.value:+.1f})" for axis, gain in gains.items())


def choose(stages: Stages, purpose: str = BOTH) -> Choice:
    """Return the choice among the candidates of the finished `stages` for a purpose.

    Of the candidates that `is_taken` the one with the largest gain is the result: the sum over the axes that were
    measured for both, that of its axis for one. Where none is, the best of each axis is offered by name, and the first
    of these is the candidate to judge. Without labels nothing is known of grouping, so a later candidate that finds no
    worse than `MAX_LOSS` is left to the user's judgement.
    """
    gains = {name: gains_of(scores) for name, scores in candidates(stages).items() if name != START}
    gains = {name: gain for name, gain in gains.items() if gain}
    best_for = {word: _best(gains, word) for word in PURPOSES}
    result = best_for[purpose] or START
    offers = {word: name for word, name in best_for.items() if word in AXIS_OF and name}
    unlabelled = bool(gains) and GROUPING not in next(iter(gains.values()))
    unjudged = [name for name in gains if unlabelled and name != result and gains[name][FINDING].value >= -MAX_LOSS]
    if result != START:
        said = phrase(gains[result])
        sentence = f"{said[0].upper()}{said[1:]}: use the new model. It was made by {called(result)}."
    elif offers:
        sentence = "Keep your model, or give up one thing for the other. " + " ".join(
            f"{called(name)[0].upper()}{called(name)[1:]}: {phrase(gains[name])}: `--for {word}` takes it."
            for word, name in offers.items()
        )
    elif gains:
        best = max(gains, key=lambda name: _total(gains[name], purpose))
        sentence = f"No better: keep your model. The best candidate, {called(best)}: {phrase(gains[best])}."
    else:
        sentence = f"{UNMEASURED} Keep your model: no candidate could be used."
    candidate = next(iter(offers.values()), None) if result == START else None
    if unlabelled:
        candidate = candidate or (unjudged[-1] if unjudged else None)
        sentence += " Grouping was not measured, as there are no labels: only you can judge it."
    if fitted := stages[START].get("fitted"):
        sentence += f" The start was fitted on {fitted:,} of the held-out texts, so that its scores may be too good."
    texts, wanted = stages[START].get("texts", 0), stages[START].get("wanted", 0)
    if texts < wanted:
        sentence += (
            f" The time was enough for {texts:,} of {wanted:,} texts to fit on: more minutes may answer otherwise."
        )
    untried = {STAGE_WORDS[name].partition(",")[0]: stage.get("minutes") for name, stage in stages.items()
               if OUT_OF_TIME in stage}  # fmt: skip
    if untried:
        words, minutes = " and ".join(untried), max(filter(None, untried.values()), default=0)
        cure = f"try {minutes:,} minutes" if minutes else "try more minutes"
        sentence += f" {words[0].upper()}{words[1:]} did not fit in the time: {cure}."
    return Choice(result, candidate, sentence)


def _best(gains: Mapping[str, Mapping[str, Difference]], purpose: str) -> str | None:
    """Return the candidate of the largest gain, among those that are taken for a purpose; None if none is."""
    taken = {name: _total(gain, purpose) for name, gain in gains.items() if is_taken(gain, purpose)}
    return max(taken, key=lambda name: taken[name], default=None)


def _total(gains: Mapping[str, Difference], purpose: str) -> float:
    axes = [AXIS_OF[purpose]] if AXIS_OF.get(purpose) in gains else list(gains)
    return sum(gains[axis].value for axis in axes)
