"""Pictures of a scoreboard: the figures of every column on one axis, and each model's gain over its own start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cse.app.drawing import html
from cse.app.scoreboard.scores import Names, heading

if TYPE_CHECKING:
    from cse.evaluation.scoreboard import Figure, Row, Scoreboard

STEPS = (1, 2, 5, 10, 20, 50)  # between two ticks
MOST_TICKS = 6


class Axis(NamedTuple):
    """An axis from `low` to `high` with a tick every `step`."""

    low: float
    high: float
    step: float

    def at(self, value: float) -> float:
        """Return the place of a value in percent of the axis."""
        return 100 * (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[float]:
        """The values that have a label."""
        return [self.low + place * self.step for place in range(round((self.high - self.low) / self.step) + 1)]


def axis_of(values: Sequence[float]) -> Axis:
    """Return an axis that holds the values, with whole ends and few ticks."""
    least, most = min(values), max(values)
    step = next((step for step in STEPS if most - least <= step * (MOST_TICKS - 1)), STEPS[-1])
    low = math.floor(least / step) * step
    return Axis(low, max(math.ceil(most / step) * step, low + step), step)


def charts_html(board: Scoreboard, names: Names) -> str:
    """Return the lines of a board; empty if its columns do not share a unit in which higher is better."""
    units = {heading(board, column)[1] for column in board.columns}
    if len(units) != 1 or not board.task.unit_headings or any(each.score in board.task.lower for each in board.columns):
        return ""
    return figures_chart(board, names) + gains_chart(board, names)


def figures_chart(board: Scoreboard, names: Names) -> str:
    """Return a line per column with a dot per model at its figure, and a bar of its standard deviation."""
    rows = drawn(board)
    axis = axis_of([end for row in rows.values() for figure in row.figures if figure for end in ends(figure)])
    lines = "".join(
        line(html.escape(heading(board, column)[0]), marks(axis, rows, number))
        for number, column in enumerate(board.columns)
    )
    unit = heading(board, board.columns[0])[1]
    spread = any(figure and figure.deviation for row in rows.values() for figure in row.figures)
    caption = f"{unit}; bars: ± a standard deviation" if spread else unit
    named = ((html.chip(row.record.model), html.escape(names[label])) for label, row in rows.items())
    legend = "".join(f"<li>{chip}{name}</li>" for chip, name in named)
    return chart(caption, lines, axis, f"{board.task.title} of each model by set", legend)


def drawn(board: Scoreboard) -> dict[str, Row]:
    """Return the rows of a picture: the models, and of several untrained readings the strongest."""
    return {label: row for label, row in board.rows.items() if not row.pooling or board.strongest in (None, label)}


def ends(figure: Figure) -> tuple[float, float]:
    """Return a figure minus and plus its standard deviation."""
    deviation = figure.deviation or 0.0
    return figure.value - deviation, figure.value + deviation


def marks(axis: Axis, rows: Mapping[str, Row], number: int) -> str:
    """Return the dots and bars of a column, each model a little below the one before."""
    found = []
    for place, row in enumerate(rows.values()):
        figure = row.figures[number]
        if figure is not None:
            top, (low, high) = 100 * (place + 1) / (len(rows) + 1), ends(figure)
            found.append(bar(axis, row, low, high, top) + dot(axis, row, figure.value, top))
    return "".join(found)


def gains_chart(board: Scoreboard, names: Names) -> str:
    """Return a line per model, from its figure in the first column before training to that after; may be empty."""
    both = {
        label: (row, row.start[0].value, row.figures[0].value)
        for label, row in board.rows.items()
        if row.start and row.start[0] and row.figures[0]
    }
    if not both:
        return ""
    axis = axis_of([value for _, *values in both.values() for value in values])
    lines = "".join(
        line(
            html.chip(row.record.model) + html.escape(names[label]),
            bar(axis, row, *sorted((before, after)))
            + dot(axis, row, before, kind="cse-hollow")
            + dot(axis, row, after),
            f"{after - before:+.1f}".replace("-", "\N{MINUS SIGN}"),
        )
        for label, (row, before, after) in both.items()
    )
    what = " ".join(heading(board, board.columns[0]))
    return chart(f"{what}: from before training (ring) to after (dot)", lines, axis, "Gain over the own start")


def dot(axis: Axis, row: Row, value: float, top: float = 50.0, kind: str = "") -> str:
    """Return the mark of a value, with its number as a hint."""
    place = f"left:{axis.at(value):.2f}%;top:{top:.1f}%;{html.colour(row.record.model)}"
    return f'<i class="cse-dot {kind}" style="{place}" title="{html.escape(row.record.model)} {value:.2f}"></i>'


def bar(axis: Axis, row: Row, low: float, high: float, top: float = 50.0) -> str:
    """Return a line between two values; empty if they are the same."""
    if low == high:
        return ""
    place = f"left:{axis.at(low):.2f}%;width:{axis.at(high) - axis.at(low):.2f}%;top:{top:.1f}%"
    return f'<i class="cse-span" style="{place};{html.colour(row.record.model)}"></i>'


def line(name: str, inside: str, value: str = "") -> str:
    """Return a line of a picture: its name (HTML), its marks, and a number at its end."""
    return f'<div class="cse-line"><span>{name}</span><div class="cse-track">{inside}</div><span>{value}</span></div>'


def chart(caption: str, lines: str, axis: Axis, spoken: str, legend: str = "") -> str:
    """Return a picture under its caption; screen readers are sent to the table."""
    ticks = "".join(f'<i style="left:{axis.at(tick):.2f}%">{tick:g}</i>' for tick in axis.ticks)
    listed = f'<ul class="cse-chart-legend">{legend}</ul>' if legend else ""
    return (
        f'<figure class="cse-chart"><figcaption>{html.escape(caption)}</figcaption>{listed}'
        f'<div role="img" aria-label="{html.escape(spoken)}; the table below has the numbers." '
        f'style="--cse-step:{100 * axis.step / (axis.high - axis.low):.3f}%">{lines}'
        f'<div class="cse-line cse-ticks"><span></span><div class="cse-track">{ticks}</div><span></span></div>'
        "</div></figure>"
    )
