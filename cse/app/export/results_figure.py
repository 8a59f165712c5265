"""The figures of scores: by set with intervals, the gain over the own start, cost against score, and the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cse.app.drawing.terms import MEASURES
from cse.app.export.dots import Dot, Rows, add_dots, dots, legend, models_of, rows_height
from cse.app.export.look import Look
from cse.app.export.plots import panels
from cse.app.models.naming import title
from cse.evaluation.tasks import find_task
from cse.models.names import BACKBONE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cse.app.export.taken import Taken

NAMES = {True: 0.3, False: 0.16}  # of the width, for the names of rows, if it is narrow or not


def results_figure(taken: Taken, look: Look) -> Figure:
    """Return the scores of a task; a task whose scores have several units gets a panel for each."""
    columns, models = taken.answer["columns"], shown(taken)
    if len({column["score"] for column in columns}) > 1:
        return by_score(look, taken.answer["task"], columns, models)
    rows = [
        (column["unit"], {name: dot(row["figures"][place]) for name, row in models.items() if row["figures"][place]})
        for place, column in enumerate(columns)
    ]
    gains, costs = gain_rows(models), costs_of(models)
    below = 0 if not gains else 1 + bool(costs)
    unit = " ".join(MEASURES.get(columns[0]["score"], (columns[0]["score"], "")))
    high = rows_height(look, rows) + look.high(3)
    under = max(rows_height(look, gains) + look.high(4), look.high(13))
    figure = look.figure(high + look.high(3) + under * (below if look.narrow else min(below, 1)))
    places = layout(figure, high, under, below, narrow=look.narrow)
    add_dots(places[0], look, rows, unit, share=NAMES[look.narrow])
    if gains:
        part, heading = 1.0 if look.narrow else 1 / below, f"{columns[0]['unit']}, before training (ring) and after"
        add_dots(places[1], look, gains, heading, share=NAMES[look.narrow] / part, part=part)
    if below > 1:
        cost_panel(places[2], look, costs, f"{columns[0]['unit']}")
    legend(figure, look, look.marks(models_of(rows)))
    return figure


def layout(figure: Figure, high: float, under: float, below: int, *, narrow: bool) -> list[Axes]:
    """Return a panel over the whole width and `below` panels below, in a `narrow` figure one by one."""
    if not below:
        return [figure.subplots()]
    if narrow:
        grid = figure.add_gridspec(1 + below, 1, height_ratios=[high, *([under] * below)])
        return [figure.add_subplot(grid[place]) for place in range(1 + below)]
    grid = figure.add_gridspec(2, below, height_ratios=[high, under])
    return [figure.add_subplot(grid[0, :]), *(figure.add_subplot(grid[1, place]) for place in range(below))]


def shown(taken: Taken) -> dict[str, Any]:
    """Return the rows of the models, and of several untrained readings the one with the best first score."""
    models: dict[str, Any] = taken.answered
    lower = taken.answer["columns"][0].get("lower_is_better", False)
    untrained = {
        name: row["figures"][0]["value"] for name, row in models.items() if row.get("untrained") and row["figures"][0]
    }
    best = (min if lower else max)(untrained, key=untrained.__getitem__) if untrained else None
    return {row_title(name, row): row for name, row in models.items() if name == best or not row.get("untrained")}


def row_title(name: str, row: dict[str, Any]) -> str:
    """Return a row's name in figures and tables; a method keeps the name by which its colour is known."""
    return f"{title(BACKBONE)} ({row['untrained']})" if row.get("untrained") else name


def dot(figure: dict[str, Any]) -> Dot:
    """Return a score with plus and minus its standard deviation."""
    value, spread = figure["value"], figure["deviation"] or 0.0
    return Dot(value, value - spread, value + spread)


def gain_rows(models: dict[str, Any]) -> Rows:
    """Return a row per model that was scored before training, in the first column."""
    return [
        (title(name), {name: Dot(row["figures"][0]["value"], began=row["before_training"][0]["value"])})
        for name, row in models.items()
        if row.get("before_training") and row["before_training"][0] and row["figures"][0]
    ]


def costs_of(models: dict[str, Any]) -> dict[str, tuple[int, float]]:
    """Return trained parameters and the first score of each model for which both are known."""
    return {
        name: (row["trained_parameters"], row["figures"][0]["value"])
        for name, row in models.items()
        if row.get("trained_parameters") is not None and row["figures"][0]
    }


def cost_panel(axes: Any, look: Look, costs: dict[str, tuple[int, float]], score: str) -> None:
    """Draw trained parameters, on a logarithmic axis that begins with 0, against the score."""
    axes.set_xscale("symlog", linthresh=1e4, linscale=0.4)
    for name, mark in look.marks(costs).items():
        axes.plot(*costs[name], mark.marker, color=mark.colour, label=name)
    axes.set(xlabel="trained parameters", ylabel=score, xlim=(-2e3, 1e8))
    axes.set_xticks([0, 1e4, 1e5, 1e6, 1e7, 1e8], labels=["0", "10 k", "100 k", "1 M", "10 M", "100 M"])
    axes.minorticks_off()
    axes.margins(y=0.15)


def by_score(look: Look, task: str, columns: list[dict[str, Any]], models: dict[str, Any]) -> Figure:
    """Return a panel per column with a row per model."""
    share, part, headed = 0.3, 1.0 if look.narrow else 1 / 3, find_task(task).unit_headings
    tall = rows_height(look, [(title(name), {name: Dot(0)}) for name in models], share * part) + look.high(5)
    figure, grid = panels(look, len(columns), tall, 3)
    for place, (axes, column) in enumerate(zip(grid, columns, strict=True)):
        rows = [
            (title(name), {name: dot(row["figures"][place])}) for name, row in models.items() if row["figures"][place]
        ]
        name, unit = MEASURES.get(column["score"], (column["score"], ""))
        add_dots(
            axes,
            look,
            rows,
            f"{unit}{', lower is better' if column['lower_is_better'] else ''}",
            share=share,
            part=part,
        )
        axes.set_title(f"{column['unit']}: {name}" if headed else name)
        axes.locator_params(axis="x", nbins=4)
    return figure


def ledger_figure(taken: Taken, look: Look) -> Figure:
    """Return a row per published score that was obtained again: the published one as a ring, and ours."""
    rows = [
        (f"{entry['row']} ({entry['task']})", {"obtained": Dot(entry["mean"], began=entry["published"])})
        for entry in taken.answer
        if entry.get("mean") is not None and entry["published"] is not None
    ]
    if not rows:
        raise ValueError("No row of the ledger was obtained here, so there is no figure.")
    return dots(look, rows, "published (ring) and obtained here", named=False)
