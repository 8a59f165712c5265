"""JSON files of a pretraining run: learning curve, resumable state and the record in the model folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, final

from cse.encoding.backbone import ModelDescription

if TYPE_CHECKING:
    from typing import NotRequired


class HeldOutScores(TypedDict):
    """Masked language modelling on held-out text: loss in nats, accuracy in [0, 1]."""

    held_out_loss: float
    held_out_accuracy: float


@final
class CurveEntry(HeldOutScores):
    """An evaluation after `step` steps over `tokens` tokens: `loss` of that step (nats) and the speed so far."""

    step: int
    tokens: int
    loss: float
    tokens_per_second: int


@final
class ResumeNote(TypedDict):
    """The report that a resumed run has no saved state and starts again at `step` 0."""

    step: int
    note: str


Report = Callable[[CurveEntry | ResumeNote], None]


class PretrainingState(TypedDict):
    """A run after `step` steps and `seconds`, as in `state/meta.json`; `recipe` is that of `PretrainRequest.recipe`."""

    step: int
    curve: list[CurveEntry]
    recipe: dict[str, object]
    seconds: float


class PretrainingRecord(PretrainingState):
    """A finished run, as in a model folder's `pretraining.json`.

    `before` is the record of the model that the run continued from, or None; `device` is torch's name and `torch` its
    version. `averaged` has the scores of the saved model if weights of its start were averaged in.
    """

    before: NotRequired[PretrainingRecord | None]
    averaged: NotRequired[HeldOutScores]
    device: str
    model: ModelDescription
    torch: str
