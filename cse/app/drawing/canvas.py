"""The map component, drawn by the scripts of `static/map/`, and its value: points, neighbours and scores."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr
import numpy as np

from cse.app.drawing.components import script
from cse.app.drawing.palette import DARK, LIGHT
from cse.app.models.maps import ModelMap
from cse.app.models.models import Failure

PARTS = ("state", "marks", "view", "labels", "draw", "details", "pointer", "keys", "map")
SCRIPTS = ("elements", *(f"map/{part}" for part in PARTS))
STEPS, SHARES = 65535, 255  # largest uint16 and uint8


def canvas(value: dict[str, Any]) -> gr.HTML:
    """Return a map component that shows a `canvas_value`, or a hint."""
    return gr.HTML(
        value, html_template='<div class="cse-maps"></div>', js_on_load=script(*SCRIPTS), apply_default_css=False,
        elem_id="maps", elem_classes="cse-result",
    )  # fmt: skip


def canvas_value(
    texts: Sequence[str], labels: Sequence[str], maps: Mapping[str, ModelMap | Failure], **options: Any
) -> dict[str, Any]:
    """Return the component's value. The scripts treat sentences and names as plain text, never as HTML.

    `labels` (N) become `names` and indices into them. Options: `joined` draws a line between points 2i and 2i + 1,
    `numbered` numbers the points, `rows` (N) are the ids of the points in pins, `pin` is the point to pin at first, and
    a new `request` pins it again.
    """
    names = list(dict.fromkeys(labels))
    numbers = {name: number for number, name in enumerate(names)}
    return {
        "texts": list(texts),
        "names": names,
        "labels": [numbers[label] for label in labels],
        "colours": {"light": LIGHT, "dark": DARK},
        "maps": [{"name": name, **map_value(drawn)} for name, drawn in maps.items()],
        **options,
    }


def map_value(drawn: ModelMap | Failure) -> dict[str, Any]:
    """Return one model's map as JSON values, or the reason there is none."""
    if isinstance(drawn, Failure):
        return {"error": drawn.reason}
    scores = (drawn.trustworthiness, drawn.continuity, drawn.same_topic)
    return {
        "xy": pack(drawn.xy),
        "near": packed(drawn.near, "<u2"),
        "lost": packed((drawn.lost * SHARES).round(), "<u1"),
        "scores": [None if score is None else round(score, 4) for score in scores],
    }


def map_of(value: Mapping[str, Any]) -> ModelMap:
    """Return the map of a `map_value`."""
    xy = unpack(value["xy"])
    near = unpacked(value["near"], "<u2").reshape(len(xy), -1).astype(int)
    return ModelMap(xy, near, unpacked(value["lost"], "<u1") / SHARES, *value["scores"])


def pack(xy: np.ndarray) -> str:
    """Encode (N, 2) numbers in [0, 1] as text, which the page reads 50 times faster than lists."""
    return packed((np.clip(xy, 0, 1) * STEPS).round(), "<u2")


def unpack(text: str) -> np.ndarray:
    """Decode the (N, 2) float32 numbers of `pack`."""
    return (unpacked(text, "<u2").reshape(-1, 2) / STEPS).astype(np.float32)


def packed(numbers: np.ndarray, kind: str) -> str:
    """Encode whole numbers as base64 of the NumPy type `kind`."""
    return base64.b64encode(numbers.astype(kind).tobytes()).decode()


def unpacked(text: str, kind: str) -> np.ndarray:
    """Decode the numbers of `packed`, flat."""
    return np.frombuffer(base64.b64decode(text), kind)
