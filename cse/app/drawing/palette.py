"""The colours of topics, twelve per colour scheme, and of models: distinct for every kind of colour vision (tested)."""

from __future__ import annotations

LIGHT = (
    "#4e3bd8", "#eb4e76", "#768900", "#620000", "#6276ff", "#4e764e",
    "#764e00", "#89769d", "#3b0089", "#274e3b", "#624e76", "#3b273b",
)  # fmt: skip
DARK = (
    "#76b1b1", "#8962eb", "#ebd89d", "#eb2789", "#c4d800", "#9d764e",
    "#d8d8ff", "#008989", "#c49d89", "#b19deb", "#9debd8", "#9d9d14",
)  # fmt: skip
# Of the bundled models: at least 3:1 on the backgrounds of both schemes.
MODELS = {"simcse": "#3d8eff", "promptbert": "#eb2f00", "dcpcse": "#178267", "conpvp": "#ca499f"}
