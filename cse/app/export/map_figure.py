"""The aligned maps of all models as one figure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from cse.app.drawing.palette import LIGHT
from cse.app.export.look import Look, line, wrapped
from cse.app.export.plots import panels
from cse.benchmark.plotting import FAINT, MARKERS, handles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cse.app.export.taken import Taken

MOST_VECTORS = 3000  # points of a map that are drawn one by one; more are one picture inside the vector file
OTHERS = "others"


def map_figure(taken: Taken, look: Look) -> Figure:
    """Return a panel per model with the same limits; points are coloured by label, without labels by group."""
    marks, labels = look.marks(taken.answered), taken.answer["labels"]
    side = look.width / min(len(marks), 2 if look.narrow else 4)
    figure, grid = panels(look, len(marks), side + look.high(2.8), 4)
    first = next(iter(taken.answered.values()))
    topics = labels or [f"group {group + 1}" for group in first["groups"]["of"]]
    names, of = named(topics)
    for axes, (name, mark), found in zip(grid, marks.items(), taken.answered.values(), strict=True):
        points, area = np.array(found["xy"], float), max(1.0, min(9.0, 2500 / len(topics) * look.width / 6))
        for place, label in enumerate(names):
            chosen = points[of == place]
            axes.scatter(
                chosen[:, 0], chosen[:, 1], s=area, color=colour(place, label), marker=MARKERS[place % len(MARKERS)],
                linewidths=0, alpha=0.85, label=label, gid=f"{name} {label}", rasterized=len(points) > MOST_VECTORS,
            )  # fmt: skip
        axes.set(xlim=(-0.02, 1.02), ylim=(1.02, -0.02), xticks=[], yticks=[], aspect="equal")
        axes.set_title(wrapped(titled(mark.name, found["trustworthiness"]), look.letters(side / look.width - 0.04)))
        axes.spines[["top", "right"]].set_visible(True)
    shown = handles((colour(place, label), MARKERS[place % len(MARKERS)]) for place, label in enumerate(names))
    columns = max(1, int(look.letters(1.0) // (max(map(len, names)) + 4)))
    told = [wrapped(name, look.letters(0.7), 1) for name in names]
    figure.legend(
        shown, told, loc="outside lower left", ncols=min(columns, len(names)), handletextpad=0.1,
        columnspacing=1.0,
    )  # fmt: skip
    return figure


def named(labels: list[str]) -> tuple[list[str], np.ndarray]:
    """Return at most as many names as there are colours, and the (N,) index of each label's name."""
    known = [label for label, _ in Counter(labels).most_common()]
    kept = sorted(known if len(known) <= len(LIGHT) else known[: len(LIGHT) - 1], key=str)
    names = [line(label, 24) or "no label" for label in kept] + ([OTHERS] if len(kept) < len(known) else [])
    places = {label: place for place, label in enumerate(kept)}
    return names, np.array([places.get(label, len(names) - 1) for label in labels])


def colour(place: int, label: str) -> str:
    """Return a label's colour; the rest of many labels is grey."""
    return FAINT if label == OTHERS else LIGHT[place % len(LIGHT)]


def titled(name: str, trustworthiness: float | None) -> str:
    """Return a panel's heading."""
    return name if trustworthiness is None else f"{name} ({trustworthiness:.2f})"
