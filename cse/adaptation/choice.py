"""The choice among the candidates of an adaptation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cse.adaptation.projection import MIN_TEXTS_WITH_NEIGHBOURS
from cse.training.held_out import HeldOutScore

NEIGHBOUR_MARGIN = 0.3  # points of label neighbours by which a candidate has to beat the start
LABEL_MEASURE = "neighbours"
START, READING, PROJECTION, LANGUAGE = "start", "reading", "projection", "language"
TRAINING, TRAINED = "training", "trained-projection"
STAGE_WORDS = {
    START: "your model as it is", READING: "your model", PROJECTION: "projection",
    LANGUAGE: "masked language modelling, then projection", TRAINING: "training", TRAINED: "training, then projection",
}  # fmt: skip
RESULTS = {PROJECTION: "the projection", LANGUAGE: "the model that learned the words of your texts, with a projection"}
# The folders of the candidates, in the order in which they are tried.
FOLDERS = {
    READING: "reading", PROJECTION: "projection", LANGUAGE: "language-projection", TRAINING: "trained",
    TRAINED: "trained-projection",
}  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """The `result`, a stage or `START`; the `candidate` to judge, a stage or None; and the reason as a `sentence`."""

    result: str
    candidate: str | None
    sentence: str

    @property
    def kept(self) -> bool:
        """True if nothing beat the start."""
        return self.result == START


def other_reading(stages: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the pooling of `READING` if its label neighbours beat those of the start, so that candidates begin there.

    A pooling that has collapsed does not count.
    """
    reading = stages.get(READING, {})
    return reading["pooling"] if _gain(stages, READING) > NEIGHBOUR_MARGIN and _sound(stages, READING) else None


def called(name: str, stages: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the words for a stage, with its pooling if this is not the start's."""
    pooling = stages[READING]["pooling"] if name == READING else name != START and other_reading(stages)
    return f"{STAGE_WORDS[name]} read by {pooling}" if pooling else STAGE_WORDS[name]


def measured(gain: float | None) -> str:
    """Return what was measured of a model against its start, by its `gain` in points of label neighbours, if any."""
    if gain is None:
        return "Neither grouping nor finding was measured."
    how = "better" if gain > NEIGHBOUR_MARGIN else "worse" if gain < -NEIGHBOUR_MARGIN else "equally well"
    return f"Groups by your labels {how}; finding was not measured."


def choose(stages: Mapping[str, Mapping[str, Any]]) -> Choice:
    """Return the choice among the finished `stages`.

    With labels the candidate with the most label neighbours wins if it beats the start by more than
    `NEIGHBOUR_MARGIN`. Without labels no score can tell a better model from a worse one: a projection is the result,
    after masked language modelling if there was any, since both were better in most trials (docs/own-text.md). A
    trained model is left to the user's judgement. A candidate that has collapsed is never chosen.
    """
    sound = [name for name in FOLDERS if _sound(stages, name)]
    if "labels" in stages[START]:
        gains = {name: _gain(stages, name) for name in sound}
        best = max(gains, key=lambda name: gains[name], default=START)
        if not sound:
            return Choice(START, None, f"{measured(None)} Keep your model: no candidate could be used.")
        name = called(best, stages)
        points = f"{abs(gains[best]):.1f} points {'more' if gains[best] >= 0 else 'less'}"
        why = f"{name} has {points} of the nearest texts with the same label than your model as it is."
        if gains[best] > NEIGHBOUR_MARGIN:
            return Choice(best, None, f"{measured(gains[best])} {name[0].upper()}{why[1:]}")
        return Choice(START, None, f"{measured(gains[best])} Keep your model: the best candidate, {why}")
    trained = next((name for name in (TRAINED, TRAINING) if name in sound), None)
    judged = "" if trained is None else f" Whether {STAGE_WORDS[trained]} suits you better still, only you can judge."
    for name in (LANGUAGE, PROJECTION):
        if name in sound:
            many = stages[name].get("texts", 0) >= MIN_TEXTS_WITH_NEIGHBOURS
            trials = "all of 15" if name == LANGUAGE else "all of 30" if many else "12 of 15"  # docs/own-text.md
            return Choice(
                name, trained,
                f"{measured(None)} The result is {RESULTS[name]}: there are no labels to compare by, but such "
                f"models grouped better by labels in {trials} trials on other texts.{judged}",
            )  # fmt: skip
    return Choice(START, trained, f"{measured(None)} Keep your model: no projection of it could be used.{judged}")


def _gain(stages: Mapping[str, Mapping[str, Any]], name: str) -> float:
    """Return the label neighbours of a stage minus those of the start; 0 without both."""
    scored = [stages.get(stage, {}).get("labels", {}).get(LABEL_MEASURE) for stage in (name, START)]
    return 0.0 if None in scored else float(scored[0] - scored[1])


def _sound(stages: Mapping[str, Mapping[str, Any]], name: str) -> bool:
    """True for a finished candidate that has not collapsed."""
    guard = stages.get(name, {}).get("guard")
    return guard is not None and not HeldOutScore(**guard).has_collapsed(HeldOutScore(**stages[START]["guard"]))
