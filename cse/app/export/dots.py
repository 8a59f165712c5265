"""Rows of marks: a dot by model at its value, as a function from values to a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cse.app.export.look import RULE, Look, Mark, wrapped
from cse.evaluation.figures import handles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS = 0.36  # of the width, at most, for the names of rows
SPREAD = 0.7  # of a row, over which its models' marks are spread
LINES = 3  # of a row's name


class Dot(NamedTuple):
    """A value, with the ends of its interval, and where it `began`, drawn as a ring."""

    value: float
    low: float | None = None
    high: float | None = None
    began: float | None = None


Rows = Sequence[tuple[str, Mapping[str, Dot]]]  # a name, and a dot by model


def dots(look: Look, rows: Rows, axis: str, levels: Mapping[str, float] | None = None, *, named: bool = True) -> Figure:
    """Return a row per name with a dot per model at its value, its interval as a line, and dashed lines at `levels`.

    With `named`, the models' marks are above it.
    """
    marks = look.marks(models_of(rows)) if named else {}
    lines = wrapped(axis, look.letters(0.95 - LABELS), 4).count("\n") - (-len(marks) // legend_columns(look, marks))
    figure = look.figure(rows_height(look, rows) + look.high(lines + 4))
    add_dots(figure.subplots(), look, rows, axis, levels)
    legend(figure, look, marks)
    return figure


def models_of(rows: Rows) -> list[str]:
    """Return the models of the rows in order."""
    return list(dict.fromkeys(name for _, found in rows for name in found))


def rows_height(look: Look, rows: Rows, share: float = LABELS) -> float:
    """Return the height in inches that the rows need, whose names take at most a `share` of the figure's width."""
    lines = [max(wrapped(name, look.letters(share), LINES).count("\n") + 1, 0.6 * len(found)) for name, found in rows]
    return look.high(sum(lines) + 0.5 * len(rows))


def add_dots(
    axes: Axes,
    look: Look,
    rows: Rows,
    axis: str,
    levels: Mapping[str, float] | None = None,
    share: float = LABELS,
    part: float = 1.0,
) -> None:
    """Draw `dots` on axes over a `part` of the width, of which the names of rows take at most a `share`."""
    marks = look.marks(models_of(rows))
    for row, (_, found) in enumerate(rows):
        for name, dot in found.items():
            place = row + SPREAD * ((list(marks).index(name) + 0.5) / len(marks) - 0.5)
            mark = marks[name]
            low = dot.value if dot.low is None else dot.low
            high = dot.value if dot.high is None else dot.high
            if dot.began is not None:
                axes.plot([dot.began, dot.value], [place, place], color=mark.colour, zorder=2)
                axes.plot(dot.began, place, mark.marker, mfc="white", mec=mark.colour, label="_start", zorder=3)
            if low != high:
                axes.hlines(place, low, high, color=mark.colour, linewidth=1.0, zorder=2)
            axes.plot(dot.value, place, mark.marker, color=mark.colour, label=name, zorder=4)
    for name, value in (levels or {}).items():
        axes.axvline(value, label=name, **RULE)
        axes.annotate(name, (value, 1), (2, 1), xycoords=("data", "axes fraction"), textcoords="offset points",
                      fontsize=0.8 * look.size, va="bottom")  # fmt: skip
    names = [wrapped(name, look.letters(share * part), LINES) for name, _ in rows]
    axes.set(ylim=(len(rows) - 0.4, -0.6), xlabel=wrapped(axis, look.letters((0.95 - share) * part), 4))
    axes.set_yticks(range(len(rows)), labels=names)
    axes.grid(visible=False, axis="y")


def legend(figure: Figure, look: Look, marks: Mapping[str, Mark]) -> None:
    """Add the models' marks above the plot."""
    if marks:
        shown = handles((mark.colour, mark.marker) for mark in marks.values())
        names = [wrapped(mark.name, look.letters(0.75), 1) for mark in marks.values()]
        columns = legend_columns(look, marks)
        figure.legend(shown, names, loc="outside upper left", ncols=columns, handletextpad=0.1, columnspacing=1.2)


def legend_columns(look: Look, marks: Mapping[str, Mark]) -> int:
    """Return how many models are named beside each other."""
    longest = max((len(mark.name) for mark in marks.values()), default=0)
    return max(1, min(len(marks), int(look.letters(1.0) // (longest + 5))))
