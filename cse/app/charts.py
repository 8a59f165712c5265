"""Vega-Lite specifications of results: one look on the page, in both colour schemes, and in files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import pandas as pd

from cse.app.html import OWN, colour_of, pale
from cse.app.models.naming import BEFORE, title
from cse.app.result import records

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"  # a name, never fetched
FONTS = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]  # of the page
LOOK = {  # room for labels, by the font that they have
    "font": ", ".join(FONTS),
    "axisQuantitative": {"labelOverlap": "greedy", "labelSeparation": 6, "tickCount": 8},
    "legend": {"columnPadding": 26},
}  # fmt: skip
PIXELS = 10  # of the letters of a legend
# SVG takes the colours of its texts from the page's styles, in both schemes. The menu would offer a foreign site.
EMBEDDING = {"embedOptions": {"renderer": "svg", "actions": False}}


def chart(
    frame: pd.DataFrame, description: str, width: int | str = "container", height: int = 240, **spec: Any
) -> dict[str, Any]:
    """Return a specification over the rows of a frame; `spec` has its mark and encoding, or its layers."""
    shown = frame.assign(model=frame["model"].map(title)) if "model" in frame else frame
    return {
        "$schema": SCHEMA, "description": description, "background": None, "width": width, "height": height,
        "autosize": {"type": "fit", "contains": "padding"}, "usermeta": EMBEDDING,
        "config": LOOK,
        "data": {"values": records(shown)}, **spec,
    }  # fmt: skip


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return the colour of each model by its name: the palette's, a pale one before training, then those of others."""
    own = cycle(OWN)
    colours: dict[str, str] = {}
    for name in names:
        after = name.removesuffix(BEFORE)
        if after not in colours:
            colours[after] = colour_of(after) or next(own)
    return {
        name: pale(colours[name.removesuffix(BEFORE)]) if name.endswith(BEFORE) else colours[name] for name in names
    }


def by_model(names: Sequence[str], legend: bool = True) -> dict[str, Any]:
    """Return the encoding that colours marks by model, in the order of the names."""
    colours = colours_of(names)
    scale = {"domain": [title(name) for name in colours], "range": list(colours.values())}
    # The width of the plot depends on the rows of the legend, that of its place does not.
    columns = {"expr": f"max(1, floor((0 * width + containerSize()[0]) / {entry_width(scale['domain']):g}))"}
    return {
        "field": "model", "type": "nominal", "scale": scale, "sort": None,
        "legend": {"title": None, "orient": "top", "columns": columns} if legend else None,
    }  # fmt: skip


def entry_width(names: Sequence[str]) -> float:
    """Return the pixels that the widest of a legend's entries takes, with its mark and the room beside it."""
    return 0.65 * PIXELS * max(map(len, names), default=0) + 46


def tips(**fields: str) -> list[Mapping[str, Any]]:
    """Return what is told of a mark that is pointed at: the heading by the field's name; numbers have three digits."""
    return [
        {"field": name, "title": heading.removesuffix("#"), **({"format": ".3f"} if heading.endswith("#") else {})}
        for name, heading in fields.items()
    ]


def intervals(across: Mapping[str, Any], field: str, axis: str, told: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the layers of a chart with a point for each row of a frame, and its interval from `low` to `high`."""
    x: dict[str, Any] = {"type": "quantitative", "scale": {"zero": False, "padding": 8}, "title": axis}
    return [
        {"mark": {"type": "rule", "strokeWidth": 2},
         "encoding": {**across, "x": {**x, "field": "low"}, "x2": {"field": "high"}}},
        {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
         "encoding": {**across, "x": {**x, "field": field}, "tooltip": told}},
    ]  # fmt: skip
