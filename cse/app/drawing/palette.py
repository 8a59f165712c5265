"""The colours of topics, twelve per colour scheme, and of models: distinct for every kind of colour vision (tested)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import TYPE_CHECKING

from cse.models.names import BACKBONE

if TYPE_CHECKING:
    from cse.app.models.models import Column

LIGHT = (
    "#4e3bd8", "#eb4e76", "#768900", "#620000", "#6276ff", "#4e764e",
    "#764e00", "#89769d", "#3b0089", "#274e3b", "#624e76", "#3b273b",
)  # fmt: skip
DARK = (
    "#76b1b1", "#8962eb", "#ebd89d", "#eb2789", "#c4d800", "#9d764e",
    "#d8d8ff", "#008989", "#c49d89", "#b19deb", "#9debd8", "#9d9d14",
)  # fmt: skip
NO_LABEL = "no label"  # the name of texts without one, which are grey
# Of the bundled models: at least 3:1 on the backgrounds of both schemes.
MODELS = {"simcse": "#3d8eff", "promptbert": "#eb2f00", "dcpcse": "#178267", "conpvp": "#ca499f"}
OWN = ("#6655ff", "#777744", "#bb7788", "#779955")  # of other models, in the order of the page's columns


def pale(colour: str) -> str:
    """Return the colour of a model before its training: a third of its own, two thirds of grey."""
    mixed = ((int(colour[at : at + 2], 16) + 2 * 0x9A) // 3 for at in (1, 3, 5))
    return f"#{''.join(f'{part:02x}' for part in mixed)}"


def own_colours(columns: Iterable[Column]) -> dict[str, str]:
    """Return the colours of the columns that are neither bundled nor untrained, by name."""
    own = (column.name for column in columns if column.name not in MODELS and column.model != BACKBONE)
    return dict(zip(own, cycle(OWN)))
