"""The choice among the candidates of an adaptation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cse.adaptation.projection import LEAST_WITH_NEIGHBOURS
from cse.training.held_out import HeldOutScore

MARGIN = 0.3  # points of label neighbours by which a candidate has to beat the start
MEASURE = "neighbours"
START, PROJECTION, TRAINING, TRAINED = "start", "projection", "training", "trained-projection"
CALLED = {
    START: "your model as it is", PROJECTION: "projection", TRAINING: "training",
    TRAINED: "training, then projection",
}  # fmt: skip
FOLDERS = {PROJECTION: "projection", TRAINING: "trained", TRAINED: "trained-projection"}  # of the stages


@dataclass(frozen=True)
class Choice:
    """The `result`, a stage or `START`; the `candidate` to judge, a stage or None; and why, in a sentence."""

    result: str
    candidate: str | None
    sentence: str

    @property
    def kept(self) -> bool:
        """True if nothing beat the start."""
        return self.result == START


def choose(stages: Mapping[str, Mapping[str, Any]]) -> Choice:
    """Return the choice among the finished `stages`.

    With labels the candidate with the most label neighbours wins if it beats the start by more than `MARGIN`. Without
    labels no score can tell a better model from a worse one: the projection is the result, since it was better in most
    trials (docs/own-text.md), and a trained model is left to the user's judgement. A candidate that has collapsed is
    never chosen.
    """
    first = HeldOutScore(**stages[START]["guard"])
    sound = [
        name for name in (PROJECTION, TRAINING, TRAINED)
        if "guard" in stages.get(name, {}) and not HeldOutScore(**stages[name]["guard"]).has_collapsed(first)
    ]  # fmt: skip
    if "labels" in stages[START]:
        gains = {name: stages[name]["labels"][MEASURE] - stages[START]["labels"][MEASURE] for name in sound}
        best = max(gains, key=lambda name: gains[name], default=START)
        if gains.get(best, 0.0) > MARGIN:
            return Choice(best, None, f"Use the new model: {CALLED[best]} has {gains[best]:.1f} points more of the "
                          "nearest texts with the same label than your model.")  # fmt: skip
        why = f"no candidate beat it by more than {MARGIN} points" if sound else "no candidate could be used"
        return Choice(START, None, f"Keep your model: {why}.")
    trained = next((name for name in (TRAINED, TRAINING) if name in sound), None)
    judged = "" if trained is None else f" Whether {CALLED[trained]} is better still, only you can judge."
    if PROJECTION in sound:
        return Choice(
            PROJECTION, trained,
            "Use the projection: without labels nothing was proved on your texts, but projections were better in "
            f"{_better(stages[PROJECTION])} trials on other texts.{judged}",
        )  # fmt: skip
    return Choice(START, trained, f"Keep your model: no projection of it could be used.{judged}")


def _better(stage: Mapping[str, Any]) -> str:
    """Return in how many trials a projection fitted on as many texts was better than its start (docs/own-text.md)."""
    return "all of 30" if stage.get("texts", 0) >= LEAST_WITH_NEIGHBOURS else "12 of 15"
