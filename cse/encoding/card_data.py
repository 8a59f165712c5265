"""The card data that sentence-transformers' tools and evaluators read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse.encoding.protocol import SentenceModel


class ModelCardData:
    """The model's name, for tools that store it. Scores that evaluators add are dropped."""

    def __init__(self, model: SentenceModel) -> None:
        self._model = model

    @property
    def base_model(self) -> str:
        """Return name and fingerprint of the model: `mine_hard_negatives` uses them as a key of its cache."""
        return f"{self._model.name} {self._model.fingerprint}"

    def set_evaluation_metrics(self, evaluator: Any, metrics: dict[str, float], epoch: int, step: int) -> None:
        """Do nothing: the evaluator returns the same scores to its caller."""
