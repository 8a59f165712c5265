"""Cost against score: planes with a named dot per model, by trained parameters and by the time of a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from cse.app.drawing import html
from cse.app.scoreboard.charts import Axis, axis_of, drawn
from cse.app.scoreboard.scores import Names, heading, opened_by
from cse.app.state.records import record_of
from cse.evaluation.scoreboard import AVERAGE

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.evaluation.scoreboard import Row, Scoreboard

COSTS = {0: "0", 10_000: "10 k", 100_000: "100 k", 1_000_000: "1 M", 10_000_000: "10 M", 100_000_000: "100 M"}
LEAST_COST = 10_000  # trained parameters from which the axis is logarithmic
HALF, NEAR = 50.0, 9.0  # percent: the middle of the plane, and the height of a name
FIRST, ROOM = 4.0, 92.0  # percent: the place of the least cost, and how far it is to that of the most


class Cost(NamedTuple):
    """A model's cost: its place on the axis in percent, and its value in words."""

    at: float
    words: str


def parameters_plane(board: Scoreboard, names: Names) -> str:
    """Return the average score against the number of trained parameters; empty without averages."""
    trained = {label: record_of(row.record.model).trained for label, row in drawn(board).items()}
    costs = {
        label: Cost(cost_at(count), f"{count:,} trained parameters")
        for label, count in trained.items()
        if count is not None
    }
    ticks = {cost_at(count): words for count, words in COSTS.items()}
    return plane(board, names, "trained parameters", costs, ticks)


def speed_plane(board: Scoreboard, names: Names, speeds: Mapping[str, float]) -> str:
    """Return the average score against the milliseconds of a sentence by label; empty without two of them."""
    if len(speeds) < 2:
        return ""
    axis = axis_of([0.0, *speeds.values()])
    costs = {label: Cost(time_at(axis, took), f"{took:.3g} ms a sentence") for label, took in speeds.items()}
    return plane(
        board, names, "milliseconds a sentence on this host", costs,
        {time_at(axis, tick): f"{tick:g}" for tick in axis.ticks},
    )  # fmt: skip


def time_at(axis: Axis, took: float) -> float:
    """Return the place of a time in percent."""
    return FIRST + ROOM * axis.at(took) / 100


def times_of(state: AppState, board: Scoreboard) -> dict[str, float]:
    """Return the milliseconds of a sentence, measured on this host, by the label of a board's row."""
    measured = {label: state.speeds.get(opened_by(row)) for label, row in drawn(board).items()}
    return {label: took for label, took in measured.items() if took is not None}


def plane(board: Scoreboard, names: Names, what: str, costs: Mapping[str, Cost], ticks: Mapping[float, str]) -> str:
    """Return a figure of `what` a model costs against its average; empty without averages of two models."""
    known = {
        label: (row, costs[label], row.figures[0].value)
        for label, row in drawn(board).items()
        if label in costs and row.figures[0]
    }
    if board.columns[0].unit != AVERAGE or len(known) < 2:
        return ""
    axis, score = axis_of([value for *_, value in known.values()]), " ".join(heading(board, board.columns[0]))
    points = {label: (cost.at, 100 - axis.at(value)) for label, (_, cost, value) in known.items()}
    dots = "".join(
        named_dot(row, names[label], points[label], side_of(label, points), f"{cost.words}, {value:.2f}")
        for label, (row, cost, value) in known.items()
    )
    across = "".join(f'<i style="left:{place:.2f}%">{words}</i>' for place, words in ticks.items())
    up = "".join(f'<i style="top:{100 - axis.at(tick):.2f}%">{tick:g}</i>' for tick in axis.ticks)
    return (
        f'<figure class="cse-chart"><figcaption>{html.escape(score)} against {what}</figcaption>'
        f'<div class="cse-plane" role="img" aria-label="Score against {what}: {in_words(known, names)}.">'
        f'<div class="cse-up">{up}</div><div class="cse-field">{dots}</div>'
        f'<div class="cse-across">{across}</div></div></figure>'
    )


def in_words(known: Mapping[str, tuple[Row, Cost, float]], names: Names) -> str:
    """Return the points in words, escaped."""
    return html.escape(
        "; ".join(f"{names[each]} {cost.words}, {value:.2f}" for each, (_, cost, value) in known.items())
    )


def cost_at(count: int) -> float:
    """Return the place of a number of parameters in percent, on a logarithmic axis that begins with 0."""
    least, most = (math.log10(count) for count in (LEAST_COST, max(COSTS)))
    if count < LEAST_COST:
        return FIRST
    return 12 + 84 * min((math.log10(count) - least) / (most - least), 1.0)


def side_of(label: str, points: Mapping[str, tuple[float, float]]) -> str:
    """Return the classes of a name near its point: left where the right has no room, off the name of another."""
    across, up = points[label]
    side = "cse-left" if across > HALF else ""
    near = [y for other, (x, y) in points.items() if other != label and (x > HALF) == bool(side) and abs(y - up) < NEAR]
    apart = "" if not near else "cse-above" if up < min(near) else "cse-below"
    return f"{side} {apart}".strip()


def named_dot(row: Row, name: str, point: tuple[float, float], side: str, words: str) -> str:
    """Return the mark of a model at a point in percent, and its name on a side of it."""
    place = f"left:{point[0]:.2f}%;top:{point[1]:.2f}%;{html.colour(row.record.model)}"
    return (
        f'<i class="cse-dot" style="{place}" title="{html.escape(words)}"></i>'
        f'<span class="cse-named {side}" style="{place}">{html.escape(name)}</span>'
    )
