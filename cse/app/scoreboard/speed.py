"""Encoding time of a sentence on this host by model, measured once when the models are opened."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

import gradio as gr

from cse.app.models.columns import Column
from cse.app.models.models import divided
from cse.app.models.remembered import fingerprint_of
from cse.app.models.visitors import ClientLeft

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.encoder.encoder import Encoder

SENTENCE = "A man is playing a guitar on stage in front of a large audience."
RUNS = 5
UNKNOWN = "not measured yet"
# Fills the cards of the strip without redrawing them, since they may be open, and the chart of times.
FILL = """watch('value', () => {
  const {speeds = {}, chart} = props.value || {};
  document.querySelectorAll('[data-speed]').forEach(place => {
    if (speeds[place.dataset.speed]) place.textContent = speeds[place.dataset.speed];
  });
  if (chart) document.querySelectorAll('[data-chart="speed"]').forEach(place => { place.innerHTML = chart; });
});"""


def milliseconds(encoder: Encoder) -> float:
    """Return the median time of `RUNS` encodings of one sentence, after a warm-up."""
    took = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        encoder.encode(SENTENCE)
        took.append(1000 * (time.perf_counter() - start))
    return median(took[1:])


def speeds(state: AppState) -> dict[str, str]:
    """Return each column's time in words, measured if not known yet; failed models are left out.

    Empty if the visitor has left.
    """

    def measured(column: Column, encoder: Encoder) -> str:
        known = state.speeds.get(column.opened_by)
        if known is None:
            fingerprint_of(encoder)  # cached for the first answer
            known = milliseconds(encoder)
            state.speeds.put(column.opened_by, known)
        return in_words(known)

    try:
        found, _ = divided(state.models.apply(measured))
    except ClientLeft:
        return {}
    return found


def in_words(found: float | None) -> str:
    """Return a measurement in words, or `UNKNOWN`."""
    return UNKNOWN if found is None else f"{found:.3g} ms a sentence on this host (median of {RUNS})"


def speed_filler() -> gr.HTML:
    """Return the hidden component that fills the cards with `speeds`, and the `chart` of them, both of its value."""
    return gr.HTML({}, html_template="<div></div>", js_on_load=FILL, visible="hidden", apply_default_css=False)
