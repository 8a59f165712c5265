"""What sentence-transformers' tools and evaluators read of a model's card, and write to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse.encoding.protocol import SentenceModel


class ModelCardData:
    """A model's name for tools that keep something of it; the scores that evaluators file in a card are not kept."""

    def __init__(self, model: SentenceModel) -> None:
        self._model = model

    @property
    def base_model(self) -> str:
        """Name and fingerprint of the model: `mine_hard_negatives` files the vectors that it keeps under them."""
        return f"{self._model.name} {self._model.fingerprint}"

    def set_evaluation_metrics(self, evaluator: Any, metrics: dict[str, float], epoch: int, step: int) -> None:
        """Do nothing: the evaluator returns the same scores to its caller."""
