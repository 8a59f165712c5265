"""How long a training will take, from the speed of the open model on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cse.adaptation.candidates import BATCH_SIZE, EVAL_EVERY, MAX_FITTED_TEXTS, MAX_STEPS, MAX_TRAINED_TEXTS, STEP_COST
from cse.adaptation.facts import MAX_SCORED, SCORED_EVERY
from cse.app.models.models import divided
from cse.app.training.request import ADAPT, EVALUATIONS, TrainingRequest
from cse.methods.catalogue import METHODS
from cse.training.held_out import MAX_HELD_OUT

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
    guarded = min(MAX_HELD_OUT, count // SCORED_EVERY) * PASSES
    if request.method == ADAPT:
        held = min(MAX_SCORED, count // SCORED_EVERY)
        fitted = min(MAX_FITTED_TEXTS, count * (SCORED_EVERY - 1) // SCORED_EVERY)
        scored = held + guarded
        encoded = (5 if request.labels else 4) * scored + 2 * fitted + min(MAX_TRAINED_TEXTS, fitted)
        return MAX_STEPS * BATCH_SIZE * 2 * STEP_COST + (MAX_STEPS // EVAL_EVERY + 1) * guarded + encoded
    size = request.setting("batch_size")
    views = len(METHODS[request.method].views)
    return request.steps * size * views * STEP_COST + (EVALUATIONS + 1) * guarded * request.guarded


def in_words(seconds: float) -> str:
    """Return a duration to the precision of an estimate."""
    if seconds < 50:
        return "less than a minute"
    minutes = round(seconds / 60)
    return "about a minute" if minutes < 2 else f"about {minutes} minutes"
