"""How long a training will take, from the speed of the open model on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cse.adaptation.candidates import BATCH, COST, EVERY, MOST_FITTED, MOST_TRAINED, STEPS
from cse.adaptation.facts import MOST_HELD, SHARE
from cse.app.models.models import divided
from cse.app.training.request import ADAPT, EVALUATIONS, TrainingRequest
from cse.methods.catalogue import METHODS
from cse.training.held_out import MOST

if TYPE_CHECKING:
    from cse.app.models.columns import Column
    from cse.app.state.app_state import AppState
    from cse.encoder.encoder import Encoder

TIMED = 64  # texts
STARTUP = 10.0  # seconds until the first step: the libraries, the backbone and the texts are read
PASSES = 1.5  # encodings of a text in an evaluation: whole, and without some of its words


def texts_per_second(state: AppState, method: str, texts: Sequence[str]) -> float | None:
    """Return the measured speed of the bundled model of a method on some of the texts, or None if it fails."""
    columns = [column for column in state.models.own if column.name == method] or list(state.models.own[:1])
    chosen = texts[:: max(1, len(texts) // TIMED)][:TIMED]

    def measured(column: Column, encoder: Encoder) -> float:
        encoder.encode(chosen[:8])  # compiles what the first call needs
        began = time.perf_counter()
        encoder.encode(chosen)
        return len(chosen) / max(1e-4, time.perf_counter() - began)

    return next(iter(divided(state.models.apply(measured, columns))[0].values()), None)


def seconds_of(request: TrainingRequest, speed: float) -> float:
    """Return the seconds that a training takes if this machine encodes `speed` texts a second."""
    return min(STARTUP + encodings_of(request) / speed, 60 * request.minutes)


def encodings_of(request: TrainingRequest) -> float:
    """Return the work of a training, in texts encoded."""
    count = len(request.texts)
    guarded = min(MOST, count // SHARE) * PASSES
    if request.method == ADAPT:
        held, fitted = min(MOST_HELD, count // SHARE), min(MOST_FITTED, count * (SHARE - 1) // SHARE)
        scored = held + guarded
        encoded = (5 if request.labels else 4) * scored + 2 * fitted + min(MOST_TRAINED, fitted)
        return STEPS * BATCH * 2 * COST + (STEPS // EVERY + 1) * guarded + encoded
    size = request.setting("batch_size")
    views = len(METHODS[request.method].views)
    return request.steps * size * views * COST + (EVALUATIONS + 1) * guarded * request.guarded


def in_words(seconds: float) -> str:
    """Return a duration to the precision of an estimate."""
    if seconds < 50:
        return "less than a minute"
    minutes = round(seconds / 60)
    return "about a minute" if minutes < 2 else f"about {minutes} minutes"
