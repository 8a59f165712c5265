"""The map component, drawn by the scripts of `static/map/`, and what it is given: points, neighbours and scores."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gradio as gr
import numpy as np

from cse.app.drawing.components import script
from cse.app.drawing.palette import DARK, LIGHT
from cse.app.models.models import Failure

PARTS = ("state", "marks", "view", "labels", "draw", "details", "pointer", "keys", "map")
SCRIPTS = ("elements", *(f"map/{part}" for part in PARTS))
STEPS, SHARES = 65535, 255  # of a uint16 and of a uint8


class ModelMap(NamedTuple):
    """A model's map of N points.

    `xy` (N, 2) float32 in [0, 1]; `near` (N, k) the points whose vectors are nearest, nearest first; `lost` (N,) the
    share of a point's neighbours that the map does not show; scores as in
    `cse.analysis.projection`, None where there is none.
    """

    xy: np.ndarray
    near: np.ndarray
    lost: np.ndarray
    trustworthiness: float | None = None
    continuity: float | None = None
    same_topic: float | None = None


def canvas(value: dict[str, Any]) -> gr.HTML:
    """A map component that shows a `canvas_value`, or a hint."""
    return gr.HTML(
        value, html_template='<div class="cse-maps"></div>', js_on_load=script(*SCRIPTS), apply_default_css=False,
        elem_id="maps", elem_classes="cse-result",
    )  # fmt: skip


def canvas_value(
    texts: Sequence[str], labels: Sequence[str], maps: Mapping[str, ModelMap | Failure], **options: Any
) -> dict[str, Any]:
    """What the scripts read. Sentences and names are plain text there, never HTML.

    `labels` (N) become `names` and numbers into them. Of the `options`, `joined` gives points 2 i and 2 i + 1 a line,
    `numbered` gives points numbers, `rows` (N) says how pins name the points, `pin` is the point to pin at first, and
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
    """One model's map as JSON values, or the reason there is none."""
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
    """The map that `map_value` made JSON values of."""
    xy = unpack(value["xy"])
    near = unpacked(value["near"], "<u2").reshape(len(xy), -1).astype(int)
    return ModelMap(xy, near, unpacked(value["lost"], "<u1") / SHARES, *value["scores"])


def pack(xy: np.ndarray) -> str:
    """(N, 2) numbers in [0, 1] as text: 50 times faster for the page than lists."""
    return packed((np.clip(xy, 0, 1) * STEPS).round(), "<u2")


def unpack(text: str) -> np.ndarray:
    """The (N, 2) float32 numbers that `pack` made text of."""
    return (unpacked(text, "<u2").reshape(-1, 2) / STEPS).astype(np.float32)


def packed(numbers: np.ndarray, kind: str) -> str:
    """Whole numbers as base64 of little-endian ones of a kind."""
    return base64.b64encode(numbers.astype(kind).tobytes()).decode()


def unpacked(text: str, kind: str) -> np.ndarray:
    """The numbers that `packed` made text of, in one row."""
    return np.frombuffer(base64.b64decode(text), kind)
