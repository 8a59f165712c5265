"""From the values of a page to a checked training and the time it will take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cse.app.corpus.chosen import chosen_corpus
from cse.app.training.estimate import in_words, seconds_of, texts_per_second
from cse.app.training.request import TrainingRequest, checked
from cse.app.training.rules import REFUSED

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.app.training.rules import Rules


def asked_for(state: AppState, rules: Rules, corpus: str, key: str, values: Mapping[str, Any]) -> TrainingRequest:
    """Return the request of a page's values on the corpus that it has chosen. Raises ValueError as `checked` does."""
    if not rules.allowed:
        raise ValueError(REFUSED)
    found = chosen_corpus(state, corpus, key)
    start = state.admission.model(values["start"])
    return checked(rules, found.texts, found.labels, corpus=found.label, **{**values, "start": start})


def expected_of(state: AppState, request: TrainingRequest) -> float | None:
    """Return the seconds that a training is estimated to take here, or None if no model could be timed."""
    speed = texts_per_second(state, request.method, request.texts)
    return None if speed is None else seconds_of(request, speed)


def estimate_words(request: TrainingRequest, seconds: float | None) -> str:
    """Return the estimate in a sentence."""
    if seconds is None:
        return "The time cannot be estimated here."
    return (
        f"{in_words(seconds).capitalize()} for {len(request.texts):,} texts, estimated from the speed at which this "
        "machine encodes them now."
    )
