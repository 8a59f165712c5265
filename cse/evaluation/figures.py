"""Figures of the papers, of tasks and of training runs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.files.writing import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cse.evaluation.results import ModelRecord
    from cse.evaluation.tasks import Task

    Numbers = Mapping[str, Sequence[float]]

DPI = 150
# Paul Tol's "vibrant", distinguishable with any colour vision; markers repeat the colours.
COLOURS = ("#0077bb", "#ee7733", "#009988", "#ee3377", "#33bbee", "#cc3311")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK, FAINT, GRID = "#333333", "#b8b8b8", "#e8e8e8"
STYLE: dict[str, Any] = {
    "text.parse_math": False,  # a model's name may have a $
    "font.size": 9, "axes.titlesize": 9, "legend.fontsize": 8, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "axes.edgecolor": FAINT, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": GRID, "lines.linewidth": 1.0, "lines.markersize": 4.5,
    "legend.framealpha": 0.85, "legend.edgecolor": GRID,
    # Journals refuse fonts of PDF type 3; an SVG with text as text is searched and edited.
    "svg.fonttype": "none", "pdf.fonttype": 42,
}  # fmt: skip
BUCKETS = 5
MAX_COLUMNS = 5
MAX_CURVE_POINTS = 100  # of a curve of losses
LINE_PLOT_SIZE = (5.8, 3.8)  # inches of a line plot


def violins(scores: Mapping[str, Numbers], path: Path, title: str) -> Path:
    """ConPVP Figure 7: a panel per set with a violin per model over its scores, such as few-shot accuracies by seed.

    `scores`: set -> model -> values. Dots are the values, the dash is their mean. Each panel has its own scale.
    """
    models = list(dict.fromkeys(chain.from_iterable(scores.values())))
    with panels_of(scores, path, title, (0.8 + 0.55 * len(models), 3.0)) as panels:
        for axes, of_set in zip(panels, scores.values(), strict=True):
            for model, values in of_set.items():
                x = models.index(model)
                colour = COLOURS[x % len(COLOURS)]
                bodies: Any = axes.violinplot(values, [x], widths=0.8, showextrema=False)["bodies"]
                for body in bodies:
                    body.set(facecolor=colour, edgecolor=colour, alpha=0.3)
                axes.scatter([x] * len(values), values, s=9, color=colour, zorder=3)
                axes.hlines(np.mean(values), x - 0.3, x + 0.3, color=INK, linewidth=1.4, zorder=4)
            axes.set_xticks(range(len(models)), labels=models, rotation=35, ha="right")
        panels[0].set_ylabel("score")
    return path


def similarity_by_grade(points: Mapping[str, Numbers], path: Path, title: str) -> Path:
    """ConPVP Figure 4: a panel per model with each pair's cosine over its grade 0 to 5, and a box per bucket of grades.

    `points`: model -> `grades` and `cosines` (N each) of `grade_distribution`. Whiskers span 5 to 95 percent.
    """
    with panels_of(points, path, title, (3.2, 3.0), shared=True) as panels:
        for number, (axes, of_model) in enumerate(zip(panels, points.values(), strict=True)):
            grades, cosines = (np.asarray(of_model[key], float) for key in ("grades", "cosines"))
            axes.scatter(grades, cosines, s=5, color=COLOURS[number % len(COLOURS)], alpha=0.35, linewidths=0)
            buckets = np.minimum(grades.astype(int), BUCKETS - 1)
            boxes = {bucket + 0.5: cosines[buckets == bucket] for bucket in np.unique(buckets)}
            axes.boxplot([*boxes.values()], positions=[*boxes], whis=(5, 95), sym="", manage_ticks=False)
            axes.set(xlim=(-0.15, BUCKETS + 0.15), xticks=range(BUCKETS + 1), xlabel="human grade")
        panels[0].set_ylabel("cosine")
    return path


def pair_maps(points: Mapping[str, Numbers], path: Path, title: str) -> Path:
    """ConPVP Figure 6: a panel per model, each pair a line between its sentences, coloured by its grade.

    `points`: model -> `x` and `y` (2n, first sentences then second ones) and `grades` (n), as `pair_map` returns them.
    """
    with panels_of(points, path, title, (3.4, 3.2)) as panels:
        for axes, of_model in zip(panels, points.values(), strict=True):
            ends = np.array([of_model["x"], of_model["y"]], float).reshape(2, 2, -1)  # axis, sentence, pair
            grades = np.asarray(of_model["grades"], float)
            for number, grade in enumerate(np.unique(grades)):
                axes.plot(*ends[:, :, grades == grade], **_look(number))[0].set_label(f"graded {grade:g}")
            axes.set(xticks=[], yticks=[])
        panels[0].legend()
    return path


def removal_curves(curves: Mapping[str, Numbers], path: Path, title: str) -> Path:
    """ConPVP Figure 5: a line per model, from the `curve` of its `removal_curve`: `average` over tokens `removed`."""
    with panels_of(curves, path, title, LINE_PLOT_SIZE, names=[""]) as (axes,):
        for number, (model, curve) in enumerate(curves.items()):
            axes.plot(curve["removed"], curve["average"], label=model, **_look(number))
        axes.set(xlabel="most frequent tokens removed", ylabel="Spearman x 100, average")
        axes.legend()
    return path


def training_curves(
    logs: Mapping[str, Sequence[Mapping[str, Any]]], starts: Mapping[str, float], path: Path, title: str
) -> Path:
    """Two panels with a line per run: its loss and, if any run has dev pairs, its dev score by step.

    `logs`: run -> the entries of its steps (`step`, `loss` and at evaluations `dev`); `starts`: run -> dev score before
    the first step. Losses are means over equal parts of a run, at most `MAX_CURVE_POINTS`. A .svg `path` gets an SVG.
    """
    lines: dict[str, dict[str, Any]] = {"loss": {}, "dev": {}}
    for run, entries in logs.items():
        losses = np.array([(entry["step"], entry["loss"]) for entry in entries])
        lines["loss"][run] = [part.mean(axis=0) for part in np.array_split(losses, min(len(losses), MAX_CURVE_POINTS))]
        start = [(0, starts[run])] if run in starts else []
        scores = [(entry["step"], entry["dev"]) for entry in entries if entry.get("dev") is not None]
        if start + scores:
            lines["dev"][run] = start + scores
    named = {f"{name} by step": of_runs for name, of_runs in lines.items() if of_runs}
    with panels_of(named, path, title, LINE_PLOT_SIZE) as panels:
        for axes, of_runs in zip(panels, named.values(), strict=True):
            for run, points in of_runs.items():
                axes.plot(*np.transpose(points), label=run, ms=3, **_look([*logs].index(run)))
        panels[0].legend()  # which has every run
    return path


def token_picture(picture: Mapping[str, Any], path: Path, title: str) -> Path:
    """PromptBERT Figure 1: the same tokens in two dimensions, a panel per kind of group, coloured by group.

    `picture` is that of `geometry.picture`. Tokens without a group are grey; small groups are drawn on top.
    """
    kinds = [kind for kind in picture if kind not in ("x", "y", "tokens", "explained")]
    with panels_of(picture, path, title, (3.6, 3.6), names=kinds, shared=True) as panels:
        x, y = np.asarray(picture["x"], float), np.asarray(picture["y"], float)
        for axes, kind in zip(panels, kinds, strict=True):
            names, sizes = np.array(picture[kind]), Counter(picture[kind])
            for number, group in enumerate(sorted({"", *sizes}), start=-1):
                if group in sizes:
                    look = _look(number) if group else {"color": FAINT, "marker": "."}
                    look |= {"ms": 2.7, "ls": "", "mew": 0, "alpha": 0.6, "zorder": 3 - sizes[group] / len(names)}
                    axes.plot(x[names == group], y[names == group], label=group or "no group", **look)
            axes.legend(markerscale=2)
            axes.set_xlabel(f"component 1 ({picture['explained'][0]:.1f} % of variance)")
        panels[0].set_ylabel(f"component 2 ({picture['explained'][1]:.1f} %)")
    return path


@contextmanager
def panels_of(
    values: Mapping[str, Any],
    path: Path,
    title: str,
    size: tuple[float, float],
    *,
    names: Sequence[str] = (),
    shared: bool = False,
) -> Iterator[list[Axes]]:
    """Yield a titled panel of `size` inches per name, by default per key of `values`; then write the figure to `path`.

    At most five are in a row. Raises ValueError if `values`, or an entry of it, is empty.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if not values or any(len(entry) == 0 for entry in values.values()):
        raise ValueError(f"nothing to draw for {title!r}: an entry is empty; give numbers for each")
    named = list(names or values)
    rows, columns = -(-len(named) // MAX_COLUMNS), min(len(named), MAX_COLUMNS)
    with rc_context(STYLE), warnings.catch_warnings():
        figure = Figure((size[0] * columns + 0.4, size[1] * rows + 0.4), layout="constrained")
        figure.suptitle(fill(title, int(12 * figure.get_figwidth())), fontsize=10)  # about 12 letters per inch
        grid = figure.subplots(rows, columns, squeeze=False, sharex=shared, sharey=shared).flatten()
        for axes in grid[len(named) :]:
            axes.remove()
        for axes, name in zip(grid, named, strict=False):
            axes.set_title(name)
            axes.tick_params(labelbottom=True)  # in every row, even with shared axes
        yield list(grid[: len(named)])
        warnings.filterwarnings("ignore", "Glyph")  # a character of a name that the font lacks is drawn as a box
        kind = path.suffix.lower().removeprefix(".") or "png"
        write_file(path, lambda fresh: figure.savefig(fresh, format=kind, dpi=DPI))


def _look(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


DRAWINGS = {  # of a unit's scores: what is drawn, and its title
    "similarity": (similarity_by_grade, "points", "Cosine by grade, STS-B test"),
    "pairs": (pair_maps, "points", "STS-B test pairs graded 0, 3 and 5, t-SNE"),
    "removal": (removal_curves, "curve", "Without the most frequent tokens"),
}


def draw(task: Task, models: Mapping[str, ModelRecord], folder: Path) -> list[Path]:
    """Write the PNG figures of `task` to `folder`, all models side by side, and return their paths.

    Static embeddings have a figure per model, as each has its own tokens and axes. Raises ValueError for results
    without the points to draw.
    """
    drawn: list[Path] = []
    for figure, unit in task.figures.items():
        path = folder / f"{figure}.png"
        if unit is None:
            sets = dict.fromkeys(chain.from_iterable(record.scores for record in models.values()))
            runs = {
                name: {label: record.scores[name]["runs"] for label, record in models.items() if name in record.scores}
                for name in sets
            }
            drawn.append(violins(runs, path, "16 labelled sentences per class, 10 seeds: accuracy"))
            continue
        scores = {label: record.scores[unit] for label, record in models.items() if unit in record.scores}
        if figure in DRAWINGS and scores:
            drawing, key, title = DRAWINGS[figure]
            drawn.append(drawing({label: of_model[key] for label, of_model in scores.items()}, path, title))
            continue
        for label, of_model in scores.items():
            title = f"Word embeddings of {label}, two principal components"
            drawn.append(token_picture(of_model["picture"], folder / f"{figure}-{label.replace(' ', '-')}.png", title))
    return drawn
