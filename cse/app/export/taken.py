"""A result of an endpoint that a visitor downloads, and its answers by model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cse

PLACES = {"pairs": "models", "results": "models", "map": "maps"}  # the key of the models in nested answers
REASONS = ("changes", "disagreements")  # answers with failed models under "errors"
SINGLE = ("duplicates", "ballot", "training")  # answers that are not by model


@dataclass(frozen=True)
class Taken:
    """The `answer` of an endpoint to `inputs`, with the fingerprints of its `models` and the app's `version`.

    `seeds` are those of the models' training. `percentiles` are those of a pair's cosines by model, which the page
    shows too. Figures alone show the `histograms` of random pairs, and the `colours` of models that are not bundled.
    `added` are the names by which the visitor added models. A `private` answer is about data of the visitor's page
    alone, so no code can repeat it.
    """

    endpoint: str
    inputs: dict[str, Any]
    models: dict[str, str]
    answer: Any
    added: tuple[str, ...] = ()
    private: bool = False
    percentiles: dict[str, float] = field(default_factory=dict)
    seeds: dict[str, int] = field(default_factory=dict)
    histograms: dict[str, list[float]] = field(default_factory=dict)
    colours: dict[str, str] = field(default_factory=dict)
    version: str = cse.__version__

    @property
    def answered(self) -> dict[str, Any]:
        """Return the answers by model, without failures."""
        return divided_answer(self.endpoint, self.answer)[0]

    @property
    def missing(self) -> list[str]:
        """Return the names of the models that failed, and so have no row in a table."""
        return divided_answer(self.endpoint, self.answer)[1]


def divided_answer(endpoint: str, answer: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the answers by model, and the names of the models that failed."""
    if endpoint in REASONS:
        return {}, list(answer["errors"])
    if endpoint in SINGLE:
        return {}, []
    place = PLACES.get(endpoint)
    models = answer[place] if place else answer if isinstance(answer, Mapping) else {}
    missing = [name for name, found in models.items() if isinstance(found, Mapping) and set(found) == {"error"}]
    return {name: found for name, found in models.items() if name not in missing}, missing
