"""The map component: one canvas per model, drawn by `canvas.js`, hovered together."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr
import numpy as np

from ui.models import Failure

SCRIPT = Path(__file__).with_name("canvas.js")
STEPS = 65535  # of a uint16


class ModelMap(NamedTuple):
    """A model's map: (N, 2) float32 in [0, 1] and how faithful it is."""

    xy: np.ndarray
    trustworthiness: float


def canvas(value: dict[str, Any] | None = None) -> gr.HTML:
    """A map component that shows a `canvas_value`, or nothing yet."""
    script = SCRIPT.read_text(encoding="utf-8")
    return gr.HTML(
        value or {}, html_template='<div class="cse-maps"></div>', js_on_load=script, apply_default_css=False,
        elem_id="maps", elem_classes="cse-result",
    )  # fmt: skip


def canvas_value(
    texts: Sequence[str], labels: Sequence[str], maps: Mapping[str, ModelMap | Failure], *, joined: bool
) -> dict[str, Any]:
    """What `canvas.js` reads. Sentences and names are plain text there, never HTML.

    `labels` (N) become `names` and numbers into them; with `joined` points 2 i and 2 i + 1 get a line.
    """
    names = list(dict.fromkeys(labels))
    numbers = {name: number for number, name in enumerate(names)}
    return {
        "texts": list(texts),
        "names": names,
        "labels": [numbers[label] for label in labels],
        "joined": joined,
        "maps": [map_value(name, drawn) for name, drawn in maps.items()],
    }


def map_value(name: str, drawn: ModelMap | Failure) -> dict[str, Any]:
    """One model's points, or the reason there are none."""
    if isinstance(drawn, Failure):
        return {"name": name, "error": drawn.reason}
    return {"name": name, "xy": pack(drawn.xy), "trustworthiness": round(drawn.trustworthiness, 3)}


def pack(xy: np.ndarray) -> str:
    """(N, 2) numbers in [0, 1] as base64 of little-endian uint16: 50 times faster for the page than lists."""
    return base64.b64encode((np.clip(xy, 0, 1) * STEPS).round().astype("<u2").tobytes()).decode()


def unpack(packed: str) -> np.ndarray:
    """The (N, 2) float32 numbers that `pack` made text of."""
    return (np.frombuffer(base64.b64decode(packed), "<u2").reshape(-1, 2) / STEPS).astype(np.float32)
