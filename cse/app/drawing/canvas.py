"""The map component, drawn by the scripts of `static/map/`, and its value: points, neighbours and scores."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr
import numpy as np

from cse.app.drawing.components import script
from cse.app.drawing.glossary import asking
from cse.app.drawing.palette import DARK, LIGHT, MODELS, NO_LABEL
from cse.app.drawing.verdicts import neighbourhoods
from cse.app.models.models import Failure
from cse.app.models.naming import TITLES
from cse.app.state.groups import Groups
from cse.app.state.model_map import ModelMap, disagreements

PARTS = (
    "state", "marks", "view", "colouring", "filters", "labels", "draw", "legend", "details", "selection", "pointer",
    "keys", "map",
)  # fmt: skip
SCRIPTS = ("elements", *(f"map/{part}" for part in PARTS))
STEPS, SHARES = 65535, 255  # largest uint16 and uint8
COLOURS = len(LIGHT)
OTHERS = "others"
EXPLAINED = ("trustworthiness", "continuity", "label neighbours")  # of a map
MOST_CHARACTERS, LEAST_SHOWN = 4_000_000, 200  # of all texts, and of a text


def canvas(value: dict[str, Any]) -> gr.HTML:
    """Return a map component that shows a `canvas_value`, or a hint."""
    return gr.HTML(
        value, html_template='<div class="cse-maps"></div>', js_on_load=script(*SCRIPTS), apply_default_css=False,
        elem_id="maps", elem_classes="cse-result", titles=TITLES, colours=MODELS,
        asking=[asking(name) for name in EXPLAINED],
    )  # fmt: skip


def canvas_value(
    texts: Sequence[str], labels: Sequence[str] | None, maps: Mapping[str, ModelMap | Failure], **options: Any
) -> dict[str, Any]:
    """Return the component's value. The scripts treat texts and names as plain text, never as HTML.

    `labels` (N) become `names` and indices into them, `unlabelled` that of none (`legend`). Options: `joined` draws a
    line between points 2i and 2i + 1, `rows` (N) are the ids of the points in pins, `pin` is the point to pin at first,
    a new `request` pins it again, and `note` says which texts are drawn.
    """
    names, of, missing = legend(labels) if labels else ([], np.zeros(0), -1)
    differing = disagreements(maps)
    return {
        "texts": shortened(texts),
        "lengths": packed(np.array([min(len(text), STEPS) for text in texts]), "<u2"),
        "names": names,
        "labels": packed(of, "<u1"),
        "unlabelled": missing,
        "colours": {"light": LIGHT, "dark": DARK},
        "maps": [{"name": name, **map_value(drawn)} for name, drawn in maps.items()],
        "says": neighbourhoods(differing),
        "differing": [{"models": pair, "shares": packed_shares(shares)} for pair, shares in differing.items()],
        **options,
    }


def legend(labels: Sequence[str]) -> tuple[list[str], np.ndarray, int]:
    """Return at most as many names as there are colours, the (N,) index of each label's name, and that of `NO_LABEL`.

    Of more labels the most frequent have a name, and another name stands for the others. The label "" is none: its
    name is one more, the last, or its index -1.
    """
    counts = Counter(filter(None, labels))
    names = list(counts)
    if len(names) > COLOURS:
        names = [name for name, _ in counts.most_common(COLOURS - 1)]
    numbers, others = {name: number for number, name in enumerate(names)}, len(names)
    if len(counts) > len(names):
        names.append(f"{len(counts) - len(names):,} {OTHERS}")
    missing = len(names) if counts.total() < len(labels) else -1
    if missing >= 0:
        names.append(NO_LABEL)
    return names, np.array([numbers.get(label, others) if label else missing for label in labels]), missing


def shortened(texts: Sequence[str]) -> list[str]:
    """Return texts as the map shows them: of many or long ones the beginnings."""
    most = max(LEAST_SHOWN, MOST_CHARACTERS // max(len(texts), 1))
    return [text if len(text) <= most else f"{text[:most]}…" for text in texts]


def map_value(drawn: ModelMap | Failure) -> dict[str, Any]:
    """Return one model's map as JSON values, or the reason there is none."""
    if isinstance(drawn, Failure):
        return {"error": drawn.reason}
    scores = (drawn.trustworthiness, drawn.continuity, drawn.same_topic)
    groups = {} if drawn.groups is None else drawn.groups._asdict() | {"of": packed(drawn.groups.of, "<u1")}
    return {
        "xy": pack(drawn.xy),
        "near": packed(drawn.near, "<u2"),
        "lost": packed_shares(drawn.lost),
        "scores": [None if score is None else round(score, 4) for score in scores],
        "groups": groups,
    }


def map_of(value: Mapping[str, Any]) -> ModelMap:
    """Return the map of a `map_value`."""
    xy = unpack(value["xy"])
    near = unpacked(value["near"], "<u2").reshape(len(xy), -1)
    groups = value["groups"] and Groups(**{**value["groups"], "of": unpacked(value["groups"]["of"], "<u1")})
    drawn = ModelMap(xy, near, unpacked(value["lost"], "<u1") / SHARES, *value["scores"])
    return drawn._replace(groups=groups or None)


def packed_shares(shares: np.ndarray) -> str:
    """Encode (N,) numbers in [0, 1] as text, in steps of 1/255."""
    return packed((shares * SHARES).round(), "<u1")


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
