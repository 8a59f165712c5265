"""Panels, matrices, ranks, bars and curves: functions from values by model to matplotlib, in `paper_style`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.app.drawing.palette import LIGHT
from cse.app.drawing.ramps import MINUS
from cse.app.export.look import RULE, Look, wrapped
from cse.evaluation.figures import FAINT, INK, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW, DARK = 8, 0.6  # rows of a matrix whose values are written, and the value from which they are white


def panels(look: Look, count: int, height: float, most: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels of a `height` in inches, at most `most` beside each other in two columns."""
    columns = min(count, max(1, most // 2 if look.narrow else most))
    rows = -(-count // columns)
    figure = look.figure(rows * height + look.high(2))
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes in grid[count:]:
        axes.remove()
    return figure, list(grid[:count])


def matrices(look: Look, values: Mapping[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Return a panel per model with its (N, N) values as shades, and as numbers if there are few."""
    columns = min(len(values), 1 if look.narrow else 2)
    share = 0.32 if columns == 1 else 0.22
    side = look.width / columns * (1 - share)
    figure, axes_of = panels(look, len(values), 0.8 * side + look.high(3), 2)
    for axes, (name, mark), matrix in zip(axes_of, look.marks(values).items(), values.values(), strict=True):
        image = axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1, label=name, aspect="auto")
        numbers = range(len(names))
        numbered = [f"{wrapped(text, look.letters(share - 0.07), 1)} {number + 1}" for number, text in enumerate(names)]
        axes.set_title(mark.name, color=INK)
        axes.set_xticks(numbers, labels=[str(number + 1) for number in numbers])
        axes.set_yticks(numbers, labels=numbered if axes in axes_of[::columns] else [str(n + 1) for n in numbers])
        axes.grid(visible=False)
        if len(names) <= FEW:
            small = min(0.8 * look.size, 30 * side / len(names))
            for (i, j), value in np.ndenumerate(matrix):
                colour = "white" if value > DARK else INK
                axes.text(j, i, figure_of(value), ha="center", va="center", color=colour, fontsize=small)
    thin = look.high(0.7) / figure.get_figheight()
    figure.colorbar(
        image, ax=axes_of, shrink=0.6, label="cosine", location="bottom", fraction=thin, pad=thin, aspect=25
    )
    return figure


def figure_of(value: float) -> str:
    """Return a cosine with two decimals and without the zero before them."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", MINUS)


def ranks(look: Look, lists: Mapping[str, Sequence[str]]) -> Figure:
    """Return a line per text through its ranks in each model's list, with the text after the last model.

    Below a dashed line are the texts that the last list lacks, and the lines of a list leave it there.
    """
    last, most = list(lists.values())[-1], max(map(len, lists.values()))
    texts = [*last, *dict.fromkeys(text for found in lists.values() for text in found if text not in last)]
    figure = look.figure(look.high(1.6 * (most + len(texts) - len(last)) + 4))
    axes: Any = figure.subplots()
    for number, text in enumerate(texts):
        end = number + 1 if text in last else most + 1 + number - len(last)
        places = [
            found.index(text) + 1 if text in found else end if found is last else most + 1 for found in lists.values()
        ]
        colour = LIGHT[number % len(LIGHT)]
        axes.plot(range(len(lists)), places, marker=MARKERS[number % len(MARKERS)], color=colour, label=text)
        axes.annotate(wrapped(text, look.letters(0.45), 1), (len(lists) - 1, end), (6, 0), color=colour,
                      textcoords="offset points", va="center", fontsize=0.85 * look.size)  # fmt: skip
    names = [mark.name for mark in look.marks(lists).values()]
    axes.set_xticks(
        range(len(lists)), labels=names, rotation=40 if look.narrow else 0, ha="left" if look.narrow else "center"
    )
    axes.axhline(most + 0.5, **RULE)
    axes.set(ylim=(most + len(texts) - len(last) + 0.5, 0.5), yticks=range(1, most + 1), ylabel="rank")
    axes.set_xlim(-0.2, len(lists) - 0.8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[["bottom", "left"]].set_visible(False)
    return figure


def bars(look: Look, lists: Mapping[str, Mapping[str, Sequence[tuple[str, float]]]], axis: str) -> Figure:
    """Return a row of panels per model, one for each kind of its lists: a bar per word, on one scale.

    Where the letters are large for the width, the kinds are below each other.
    """
    kinds = list(next(iter(lists.values())))
    longest = max((len(words) for found in lists.values() for words in found.values()), default=1)
    top = max((value for found in lists.values() for words in found.values() for _, value in words), default=1.0)
    columns = len(kinds) if look.letters(1.0) >= 15 * len(kinds) else 1
    rows = len(lists) * len(kinds) // columns
    figure = look.figure(rows * look.high(1.25 * longest + 3.2) + look.high(2))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True).reshape(len(lists), len(kinds))
    for row, ((name, mark), found) in enumerate(zip(look.marks(lists).items(), lists.values(), strict=True)):
        for column, kind in enumerate(kinds):
            axes, words = grid[row, column], found[kind]
            axes.barh(range(len(words)), [value for _, value in words], color=mark.colour, height=0.6, label=name)
            axes.set_yticks(
                range(len(words)), labels=[wrapped(word, min(14, look.letters(0.12)), 1) or "·" for word, _ in words]
            )
            axes.set(ylim=(longest - 0.5, -0.5), xlim=(0, 1.05 * top))
            named = wrapped(kind, look.letters(0.22))
            axes.set_title(f"{wrapped(mark.name, look.letters(0.3))}\n{named}" if column == 0 else named, loc="left")
            axes.grid(visible=False, axis="y")
            axes.locator_params(axis="x", nbins=3)
    figure.supxlabel(axis, fontsize=look.size)
    return figure


def curves(axes: Axes, lines: Mapping[str, tuple[Sequence[float], dict[str, Any]]], named: str, level: float) -> None:
    """Draw values by layer, counted from 1: a line each with its style, and a dashed one at the `level` of a name."""
    for name, (values, style) in lines.items():
        axes.plot(range(1, len(values) + 1), values, label=name, **style)
    axes.axhline(level, label=named, **RULE)
    axes.set_xlabel("layer")
    axes.locator_params(axis="x", integer=True)
    axes.update_datalim([(1, 0)])
    axes.autoscale_view()
    axes.legend(loc="best", handlelength=1.5)
    axes.spines["left"].set_color(FAINT)
