"""The look of a figure for a paper: its width and font size, the marks of models, and texts that are safe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from cse.app import validation
from cse.app.drawing.palette import MODELS
from cse.app.models.naming import title
from cse.evaluation.figures import INK, MARKERS, paper_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 72  # of an inch
WIDTHS = {"one": 3.03, "two": 6.3}  # inches of a column and of two, in the ACL style: 77 and 160 mm
LEAST_SIZE, SIZE, MOST_SIZE = 6, 8, 12  # points of the font
GREY = "#7a7a7a"  # of models that have no colour on the page
RULE: dict[str, Any] = {"color": INK, "linewidth": 0.7, "linestyle": (0, (3, 2)), "zorder": 1}  # a line at a value
# XML has no place for these characters, and a label has none for the end of a line.
UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]+")


class Look(NamedTuple):
    """A figure's `width` in inches and the `size` of its font in points.

    `colours` are those that the page gives to models that are not bundled.
    """

    width: float = WIDTHS["two"]
    size: float = SIZE
    colours: Mapping[str, str] = MappingProxyType({})

    @property
    def narrow(self) -> bool:
        """True for a figure of one column."""
        return self.width < (WIDTHS["one"] + WIDTHS["two"]) / 2

    def letters(self, share: float) -> int:
        """Return how many letters fit a share of the width."""
        return max(8, int(share * self.width * POINTS / (0.58 * self.size)))

    def high(self, lines: float) -> float:
        """Return the height in inches of so many lines of text."""
        return lines * 1.35 * self.size / POINTS

    def figure(self, height: float) -> Figure:
        """Return an empty figure of a height in inches, at most that of ten pages."""
        return paper_figure(self.width, min(height, 100.0))

    def marks(self, names: Iterable[str]) -> dict[str, Mark]:
        """Return the mark of each model, in the page's colours."""
        return {
            name: Mark(
                line(title(name), 24), MODELS.get(name) or self.colours.get(name, GREY), MARKERS[place % len(MARKERS)]
            )
            for place, name in enumerate(names)
        }


class Mark(NamedTuple):
    """How a model is drawn: its name on the page, its colour, and a marker that repeats the colour."""

    name: str
    colour: str
    marker: str


def look_of(width: str, size: float) -> Look:
    """Return the look that a visitor chose."""
    chosen = validation.one_of(width, "The width", WIDTHS)
    return Look(WIDTHS[chosen], validation.between(size, "The font size", LEAST_SIZE, MOST_SIZE))


def line(text: str, most: int = 120) -> str:
    """Return a text as one line of at most `most` characters, without characters that files cannot hold."""
    clean = " ".join(UNFIT.sub(" ", str(text)).split())
    return clean if len(clean) <= most else f"{clean[: most - 1]}…"


def wrapped(text: str, letters: int, lines: int = 2) -> str:
    """Return a text in at most `lines` lines of about so many letters."""
    return fill(line(text, letters * lines - (lines - 1) * letters // 4), letters, break_long_words=True)
