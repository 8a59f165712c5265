"""The style of all figures, and the one writer of their files: PNG, and PDF and SVG in which text stays text."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

DPI = 150
PAPER_DPI = 300
# Paul Tol's "vibrant", distinguishable with any colour vision, also used by the app; markers repeat the colours.
COLOURS = ("#0077bb", "#ee7733", "#009988", "#ee3377", "#33bbee", "#cc3311")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK, FAINT, GRID = "#333333", "#b8b8b8", "#e8e8e8"
KINDS = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}
# Journals refuse fonts of PDF type 3; an SVG with text as text is searched and edited.
FILES = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "cse"}
# What the formats call a figure's title and its description; dates would make equal figures differ.
TERMS: dict[str, dict[str, str | None]] = {
    "svg": {"title": "Title", "description": "Description", "Date": None},
    "pdf": {"title": "Title", "description": "Subject", "CreationDate": None},
    "png": {"title": "Title", "description": "Description"},
}
_settings = Lock()  # matplotlib's settings are one dictionary of the process


@contextmanager
def paper_style(size: float) -> Iterator[None]:
    """Make figures with a font of `size` points, in which `$` is a plain character; one thread at a time."""
    from matplotlib import rc_context

    small = 0.88 * size
    look: dict[str, Any] = {
        "text.parse_math": False, "font.size": size, "axes.titlesize": size, "axes.labelsize": size,
        "legend.fontsize": small, "xtick.labelsize": small, "ytick.labelsize": small, "text.color": INK,
        "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": FAINT, "axes.linewidth": 0.6,
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
        "grid.color": GRID, "grid.linewidth": 0.5, "xtick.major.size": 2.5, "ytick.major.size": 0,
        "xtick.major.width": 0.6, "lines.linewidth": 1.0, "lines.markersize": 0.5 * size, "legend.frameon": False,
        "figure.facecolor": "white", "axes.unicode_minus": True,
    }  # fmt: skip
    with _settings, rc_context(look):
        yield


def paper_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches; call it within `paper_style`."""
    from matplotlib.figure import Figure

    return Figure((width, height), layout="constrained")


def handles(marks: Iterable[tuple[str, str]]) -> list[Line2D]:
    """Return the marks of a legend: a colour and a marker each."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], ls="", color=colour, marker=marker) for colour, marker in marks]


def save_figure(
    figure: Figure, file: Path | BinaryIO, kind: str, facts: Mapping[str, str] | None = None, dpi: int = DPI
) -> bool:
    """Write a figure as `kind` of `KINDS`; `facts` are its `title` and `description`, which the file keeps.

    Returns True if the font lacks characters of its texts, which only an SVG then keeps.
    """
    from matplotlib import rc_context

    terms = TERMS[kind]
    known = {terms[key]: value for key, value in (facts or {}).items()}
    metadata: dict[Any, Any] = known | {key: value for key, value in terms.items() if value is None}
    with warnings.catch_warnings(record=True) as caught, rc_context(FILES):
        warnings.filterwarnings("always", "Glyph")
        figure.savefig(file, format=kind, metadata=metadata, dpi=dpi)
    others = [each.message for each in caught if "Glyph" not in str(each.message)]
    for message in others:
        warnings.warn(message, stacklevel=2)
    return len(others) < len(caught)


def figure_bytes(figure: Figure, kind: str, facts: Mapping[str, str]) -> tuple[bytes, bool]:
    """Return a figure's file as bytes, and what `save_figure` returns."""
    file = BytesIO()
    lacking = save_figure(figure, file, kind, facts, PAPER_DPI)
    return file.getvalue(), lacking
