"""The papers' figures, and curves of runs, as PNG files in one style, readable without colour vision.

Every function writes `path` atomically at 150 dots per inch, creating its folder, and returns it. `title` is printed as
given and should name model, seeds and protocol. All raise ValueError if there is nothing to draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.benchmark.plotting import COLOURS, DPI, FAINT, GRID, INK, MARKERS, save_figure
from cse.storage.writing import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BUCKETS = 5
MOST_COLUMNS = 5
MOST_POINTS = 100  # of a curve of losses
LINES = (5.8, 3.8)  # inches of a line plot


def violins(scores: Mapping[str, Mapping[str, Sequence[float]]], path: Path, title: str) -> Path:
    """ConPVP Figure 7: a panel per set with a violin per model over its scores, such as few-shot accuracies by seed.

    `scores`: set -> model -> values. Dots are the values, the dash is their mean. Each panel has its own scale.
    """
    models = list(dict.fromkeys(model for of_set in scores.values() for model in of_set))
    figure, panels = _panels(scores, title, (0.8 + 0.55 * len(models), 3.0))
    for axes, of_set in zip(panels, scores.values(), strict=True):
        for model, values in of_set.items():
            _violin(axes, models.index(model), values)
        axes.set_xticks(range(len(models)), labels=models, rotation=35, ha="right", parse_math=False)
        axes.grid(visible=False, axis="x")
    for axes in panels[::MOST_COLUMNS]:
        axes.set_ylabel("score")
    return _save(figure, path)


def _violin(axes: Axes, place: int, values: Sequence[float]) -> None:
    colour = COLOURS[place % len(COLOURS)]
    drawn: Any = axes.violinplot(values, [place], widths=0.8, showextrema=False)
    for body in drawn["bodies"]:
        body.set(facecolor=colour, edgecolor=colour, alpha=0.3)
    axes.scatter([place] * len(values), values, s=9, color=colour, zorder=3)
    axes.hlines(np.mean(values), place - 0.3, place + 0.3, color=INK, linewidth=1.4, zorder=4)


def similarity_by_grade(points: Mapping[str, Mapping[str, Sequence[float]]], path: Path, title: str) -> Path:
    """ConPVP Figure 4: a panel per model with each pair's cosine over its grade 0 to 5, and a box per bucket of grades.

    `points`: model -> `grades` and `cosines` (N each) of `grade_distribution`. Whiskers span 5 to 95 percent.
    """
    figure, panels = _panels(points, title, (3.2, 3.0), shared=True)
    ink: Any = {f"{part}props": {"color": INK, "linewidth": 1.1} for part in ("box", "whisker", "cap", "median")}
    for number, (axes, of_model) in enumerate(zip(panels, points.values(), strict=True)):
        grades, cosines = (np.asarray(of_model[key], float) for key in ("grades", "cosines"))
        axes.scatter(grades, cosines, s=5, color=COLOURS[number % len(COLOURS)], alpha=0.35, linewidths=0)
        places = np.minimum(grades.astype(int), BUCKETS - 1)
        boxes = {place + 0.5: cosines[places == place] for place in np.unique(places)}
        axes.boxplot([*boxes.values()], positions=[*boxes], whis=(5, 95), sym="", manage_ticks=False, **ink)
        axes.set(xlim=(-0.15, BUCKETS + 0.15), xticks=range(BUCKETS + 1), xlabel="human grade")
    panels[0].set_ylabel("cosine")
    return _save(figure, path)


def pair_maps(points: Mapping[str, Mapping[str, Sequence[float]]], path: Path, title: str) -> Path:
    """ConPVP Figure 6: a panel per model, each pair a line between its sentences, coloured by its grade.

    `points`: model -> `x` and `y` (2n, first sentences then second ones) and `grades` (n), as `pair_map` returns them.
    """
    figure, panels = _panels(points, title, (3.4, 3.2))
    for axes, of_model in zip(panels, points.values(), strict=True):
        ends = np.array([of_model["x"], of_model["y"]], float).reshape(2, 2, -1)  # axis, sentence, pair
        grades = np.asarray(of_model["grades"], float)
        for number, grade in enumerate(np.unique(grades)):
            look = {**_look(number), "linewidth": 0.9}
            lines = axes.plot(*ends[:, :, grades == grade], **look)
            lines[0].set_label(f"graded {grade:g}")
        axes.set(xticks=[], yticks=[])
    _legend(panels[0])
    return _save(figure, path)


def removal_curves(curves: Mapping[str, Mapping[str, Sequence[float]]], path: Path, title: str) -> Path:
    """ConPVP Figure 5: a line per model, from the `curve` of its `removal_curve`: `average` over tokens `removed`."""
    figure, (axes,) = _panels(curves, title, LINES, names=[""])
    for number, (model, curve) in enumerate(curves.items()):
        axes.plot(curve["removed"], curve["average"], label=model, **_look(number))
    axes.set(xlabel="most frequent tokens removed", ylabel="Spearman x 100, average")
    _legend(axes)
    return _save(figure, path)


def sweep(scores: Mapping[str, Mapping[int, Sequence[float]]], path: Path, title: str, *, varied: str) -> Path:
    """DCPCSE Figure 2: a line per model of the mean score by setting, with a band of one deviation over seeds.

    `scores`: model -> setting (such as prompt length) -> a score per seed, drawn as dots; `varied` names the setting.
    The deviation is the sample's (n - 1), 0 for one seed.
    """
    figure, (axes,) = _panels(scores, title, LINES, names=[""])
    for number, (model, of_setting) in enumerate(scores.items()):
        settings, colour = sorted(of_setting), COLOURS[number % len(COLOURS)]
        means = np.array([np.mean(of_setting[setting]) for setting in settings])
        spread = np.array([np.std(values, ddof=1) if len(values := of_setting[s]) > 1 else 0.0 for s in settings])
        axes.plot(settings, means, label=model, **_look(number))
        axes.fill_between(settings, means - spread, means + spread, color=colour, alpha=0.15, linewidth=0)
        x, y = zip(*((setting, value) for setting in settings for value in of_setting[setting]), strict=True)
        axes.scatter(x, y, s=8, color=colour, alpha=0.5, linewidths=0)
    axes.set(xticks=sorted({*chain(*scores.values())}), xlabel=varied, ylabel="Spearman x 100")
    _legend(axes)
    return _save(figure, path)


def template_bars(scores: Mapping[str, float], path: Path, title: str) -> Path:
    """PromptBERT Table 4: a bar per template with its dev score, the best on top."""
    ranked = dict(sorted(scores.items(), key=lambda item: item[1]))
    figure, (axes,) = _panels(scores, title, (7.0, 1.1 + 0.3 * len(ranked)), names=[""])
    bars = axes.barh(
        range(len(ranked)), [*ranked.values()], color=[*[FAINT] * (len(ranked) - 1), COLOURS[0]], height=0.7
    )
    axes.bar_label(bars, fmt="%.2f", padding=3, color=INK, fontsize=8)
    axes.set_yticks(range(len(ranked)), labels=list(ranked), parse_math=False)
    axes.set(xlabel="Spearman x 100", xmargin=0.12)
    axes.grid(visible=False, axis="y")
    return _save(figure, path)


def training_curves(
    logs: Mapping[str, Sequence[Mapping[str, Any]]], starts: Mapping[str, float], path: Path, title: str
) -> Path:
    """Two panels with a line per run: its loss and, if any run has dev pairs, its dev score by step.

    `logs`: run -> the entries of its steps (`step`, `loss` and at evaluations `dev`); `starts`: run -> dev score before
    the first step. Losses are means over equal parts of a run, at most `MOST_POINTS`. A .svg `path` gets an SVG.
    """
    lines: dict[str, dict[str, Any]] = {"loss": {}, "dev": {}}
    for run, entries in logs.items():
        losses = np.array([(entry["step"], entry["loss"]) for entry in entries])
        lines["loss"][run] = [part.mean(axis=0) for part in np.array_split(losses, min(len(losses), MOST_POINTS))]
        start = [(0, starts[run])] if run in starts else []
        scores = [(entry["step"], entry["dev"]) for entry in entries if entry.get("dev") is not None]
        if start + scores:
            lines["dev"][run] = start + scores
    named = {f"{name} by step": of_runs for name, of_runs in lines.items() if of_runs}
    figure, panels = _panels(named, title, LINES)
    for axes, of_runs in zip(panels, named.values(), strict=True):
        for run, points in of_runs.items():
            look = _look([*logs].index(run)) | {"ms": 3}
            axes.plot(*np.transpose(points), label=run, **look)
    _legend(panels[0])  # which has every run
    return _save(figure, path)


def token_picture(picture: Mapping[str, Any], path: Path, title: str) -> Path:
    """PromptBERT Figure 1: the same tokens in two dimensions, a panel per kind of group, coloured by group.

    `picture` is that of `token_bias.picture`. Tokens without a group are grey; small groups are drawn on top.
    """
    kinds = [kind for kind in picture if kind not in ("x", "y", "tokens", "explained")]
    figure, panels = _panels(picture, title, (3.6, 3.6), names=kinds, shared=True)
    x, y = np.asarray(picture["x"], float), np.asarray(picture["y"], float)
    for axes, kind in zip(panels, kinds, strict=True):
        names, sizes = np.array(picture[kind]), Counter(picture[kind])
        for number, group in enumerate(sorted({"", *sizes}), start=-1):
            if group in sizes:
                look = _look(number) if group else {"color": FAINT, "marker": "."}
                look |= {"ms": 2.7, "ls": "", "mew": 0, "alpha": 0.6, "zorder": 3 - sizes[group] / len(names)}
                axes.plot(x[names == group], y[names == group], label=group or "no group", **look)
        _legend(axes, markers=2.0)
        axes.set_xlabel(f"component 1 ({picture['explained'][0]:.1f} % of variance)")
    panels[0].set_ylabel(f"component 2 ({picture['explained'][1]:.1f} %)")
    return _save(figure, path)


def _panels(
    values: Mapping[str, Any], title: str, size: tuple[float, float], *, names: Sequence[str] = (), shared: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with a titled panel of `size` inches per name, by default per key of `values`; at most five in a row."""
    _check(values, title)
    from matplotlib.figure import Figure

    named = list(names or values)
    rows, columns = -(-len(named) // MOST_COLUMNS), min(len(named), MOST_COLUMNS)
    figure = Figure((size[0] * columns + 0.4, size[1] * rows + 0.4), dpi=DPI, facecolor="white", layout="constrained")
    wrapped = fill(title, int(12 * figure.get_figwidth()))  # about 12 letters per inch
    figure.suptitle(wrapped, fontsize=10, color=INK, parse_math=False)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=shared, sharey=shared).flatten()
    for axes in grid[len(named) :]:
        axes.remove()
    for axes, name in zip(grid, named, strict=False):
        _style(axes, name)
    return figure, list(grid[: len(named)])


def _style(axes: Axes, name: str) -> None:
    axes.set_title(name, fontsize=9, color=INK, parse_math=False)
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8, length=3, labelbottom=True)  # in every row, even with shared axes
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(fontsize=8.5, color=INK, parse_math=False)


def _look(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], "ms": 4.5}


def _legend(axes: Axes, markers: float = 1.0) -> None:
    legend = axes.legend(fontsize=8, labelcolor=INK, framealpha=0.85, edgecolor=GRID, markerscale=markers)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _check(values: Any, title: str) -> None:
    """Raise ValueError if a mapping, or anything in it, is empty."""
    inside = list(values.values()) if isinstance(values, Mapping) else []
    if not inside and (isinstance(values, Mapping) or np.size(values) == 0):
        raise ValueError(f"nothing to draw for {title!r}: an entry is empty; give numbers for each")
    for value in inside:
        _check(value, title)


def _save(figure: Figure, path: Path) -> Path:
    write_file(path, lambda fresh: save_figure(figure, fresh, path.suffix.lower().removeprefix(".") or "png"))
    return path
