"""The figure of each result, drawn from the answer of its endpoint, the same values that the page shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.analysis.calibration import BINS, HIGHEST, LOWEST
from cse.app.drawing.distribution import in_words
from cse.app.export.dots import Dot, add_dots, dots, legend, rows_height
from cse.app.export.look import Look, Mark, line, wrapped
from cse.app.export.own_figures import (
    attention_figure,
    ballot_figure,
    duplicates_figure,
    labels_figure,
    map_figure,
    times_figure,
    training_figure,
)
from cse.app.export.plots import bars, curves, matrices, panels, ranks
from cse.app.export.results_figure import ledger_figure, results_figure
from cse.app.export.tidy import STAGES
from cse.evaluation.figures import FAINT, figure_bytes, paper_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cse.app.export.taken import Taken

KINDS = {**STAGES, "before": "sentence"}
MOST_ROWS = 40  # of a list of pairs


def similarity_figure(taken: Taken, look: Look) -> Figure:
    """Return a panel per model: the cosines of random pairs, and a line at the pair's cosine."""
    marks, edges = look.marks(taken.answered), np.linspace(LOWEST, HIGHEST, BINS + 1)
    figure = look.figure(len(marks) * look.high(4.4 if look.narrow else 3.4) + look.high(4))
    grid: Any = figure.subplots(len(marks), 1, squeeze=False, sharex=True)
    for axes, (name, mark), cosine in zip(grid[:, 0], marks.items(), taken.answered.values(), strict=True):
        if name in taken.histograms:
            axes.stairs(taken.histograms[name], edges, fill=True, color=FAINT, label="random pairs")
        axes.axvline(cosine, color=mark.colour, linewidth=2, label=name)
        place = f" ({in_words(taken.percentiles[name])})" if name in taken.percentiles else ""
        heading = wrapped(f"{mark.name}: {cosine:.3f}{place}", look.letters(0.9))
        axes.set_title(heading, loc="left", color=mark.colour)
        axes.set(yticks=[], xlim=(LOWEST, HIGHEST))
        axes.spines["left"].set_visible(False)
    grid[-1, 0].set_xlabel(wrapped("cosine (percentile among random pairs)", look.letters(0.9)))
    return figure


def words_figure(taken: Taken, look: Look) -> Figure:
    """Return a panel per sentence with a row per word: how much the cosine falls without it, by model."""
    sides: list[list[tuple[str, dict[str, Dot]]]] = []
    for side in (0, 1):
        first = next(iter(taken.answered.values()))["words"][side]
        values = {name: found["words"][side] for name, found in taken.answered.items()}
        sides.append([
            (word, {name: Dot(words[place][1]) for name, words in values.items()})
            for place, (word, _) in enumerate(first)
        ])  # fmt: skip
    share = 0.2
    figure, grid = panels(look, 2, max(rows_height(look, rows, share) for rows in sides) + look.high(2), 2)
    for axes, rows, name in zip(grid, sides, ("Sentence A", "Sentence B"), strict=True):
        part = 1.0 if look.narrow else 0.5
        add_dots(axes, look, rows, "fall of the cosine without the word", {"": 0.0}, share / part, part)
        axes.set_title(name)
    legend(figure, look, look.marks(taken.answered))
    return figure


def pairs_figure(taken: Taken, look: Look) -> Figure:
    """Return a matrix of cosines per model."""
    found = {name: np.array(each["cosines"], float) for name, each in taken.answered.items()}
    return matrices(look, found, taken.answer["sentences"])


def search_figure(taken: Taken, look: Look) -> Figure:
    """Return the ranks of the sentences found, joined by lines."""
    return ranks(look, {name: [hit["text"] for hit in hits] for name, hits in taken.answered.items() if hits})


def tokens_figure(taken: Taken, look: Look) -> Figure:
    """Return the likeliest words of each model and stage as bars."""
    lists = {
        name: {stage: [(word, 100 * share) for word, share in found[key]] for key, stage in KINDS.items()}
        for name, found in taken.answered.items()
    }
    return bars(look, lists, "probability in percent")


def template_figure(taken: Taken, look: Look) -> Figure:
    """Return each model's score under its own template, a ring, and under the other one."""
    rows = [
        (look.marks([name])[name].name, {name: Dot(found["other"]["score"], began=found["own"]["score"])})
        for name, found in taken.answered.items()
    ]
    other = line(next(iter(taken.answered.values()))["other"]["template"], 60)
    return dots(look, rows, f"Spearman × 100: own template (ring), {other}", named=False)


def changes_figure(taken: Taken, look: Look) -> Figure:
    """Return a row per change: how far each model moves, on the scale of the data."""
    rows = [
        (
            change_name(change, look),
            {name: Dot(100 * share) for name, share in change["moved"].items()},
        )
        for change in taken.answer["changes"]
    ]
    return dots(look, rows, "displacement in percent of that of an unrelated sentence", {"no change": 0.0})


def change_name(change: Mapping[str, Any], look: Look) -> str:
    """Return a change's name, and its sentence where there is room; a visitor's variant is its sentence."""
    if change["keeps"] is None:
        return str(change["changed"])
    return str(change["name"]) if look.narrow else f"{change['name']}: {change['changed']}"


def disagreements_figure(taken: Taken, look: Look) -> Figure:
    """Return a row per pair, the first ones: its rank by similarity in each model, 0 to 100."""
    rows = [
        (f"{pair['s1']} | {pair['s2']}", {name: Dot(100 * place) for name, place in pair["places"].items()})
        for pair in taken.answer["pairs"][:MOST_ROWS]
    ]
    return dots(look, rows, "rank among the pairs: 0 least alike, 100 most alike")


def xray_figure(taken: Taken, look: Look) -> Figure:
    """Return attention on a prefix and displacement without it by layer, and the cosines of prototypes."""
    prefixes = {name: found for name, found in taken.answered.items() if "attention" in found}
    prototypes = {name: found["prototypes"] for name, found in taken.answered.items() if found.get("prototypes")}
    if not prefixes and not prototypes:
        raise ValueError("No model here has a prefix or prototypes, so there is no figure; add one with + model.")
    columns = 1 if look.narrow else 2
    heights = [look.high(13)] * len(prefixes) * (3 - columns) + [
        look.high(1.25 * len(found) + 6) for found in prototypes.values()
    ]
    figure = look.figure(sum(heights))
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    for place, (name, found) in enumerate(prefixes.items()):
        attention, moved = (figure.add_subplot(grid[each]) for each in (2 * place, 2 * place + 1))
        prefix_panels(attention, moved, look.marks([name])[name], found)
    for row, (name, found) in enumerate(prototypes.items(), len(heights) - len(prototypes)):
        prototype_panel(figure.add_subplot(grid[row, :]), look, name, found)
    return figure


def prototype_panel(axes: Any, look: Look, name: str, found: list[dict[str, Any]]) -> None:
    """Draw the cosine of a sentence with each prototype of a model."""
    mark = look.marks([name])[name]
    colours = [mark.colour if each["positive"] else FAINT for each in found]
    axes.barh(range(len(found)), [each["cosine"] for each in found], color=colours, height=0.6, label=name)
    axes.set_yticks(range(len(found)), labels=[wrapped(each["template"], look.letters(0.38), 1) for each in found])
    axes.set(ylim=(len(found) - 0.5, -0.5), xlabel="cosine\n(grey: negative)")
    axes.set_title(f"{mark.name}: prototypes")
    axes.grid(visible=False, axis="y")


def prefix_panels(attention: Any, moved: Any, mark: Mark, found: dict[str, Any]) -> None:
    """Draw the attention on a model's prefix, and the displacement without it, by layer, in percent."""
    shares = found["attention"]
    own: dict[str, Any] = {"color": mark.colour, "marker": mark.marker}
    read, mean = (np.multiply(100, shares[key]).tolist() for key in ("read", "mean"))
    lines = {"token read": (read, own), "all tokens": (mean, {**own, "mfc": "white", "ls": "--"})}
    curves(attention, lines, "evenly spread", 100 * shares["even"])
    attention.set_title(mark.name)
    attention.set_ylabel("attention on\nthe prefix in %")
    single = [100 * each["moved"] for each in found["ablations"] if len(each["layers"]) == 1][: len(read)]
    every = next(100 * each["moved"] for each in found["ablations"] if len(each["layers"]) == len(read))
    curves(moved, {"off in one layer": (single, own)}, "off in all layers", every)
    moved.set_title(mark.name)
    moved.set_ylabel("displacement\nwithout it in %")


Draw = Callable[["Taken", Look], "Figure"]
FIGURES: dict[str, Draw] = {
    "similarity": similarity_figure, "words": words_figure, "pairs": pairs_figure, "search": search_figure,
    "tokens": tokens_figure, "template": template_figure, "map": map_figure, "changes": changes_figure,
    "disagreements": disagreements_figure, "xray": xray_figure, "attention": attention_figure,
    "duplicates": duplicates_figure, "ballot": ballot_figure, "labels": labels_figure, "training": training_figure,
    "times": times_figure,
    "results": results_figure, "ledger": ledger_figure,
}  # fmt: skip


def draw(taken: Taken, look: Look) -> Figure:
    """Return the figure of a result; call it within `paper_style`. Raises ValueError if there is nothing to draw."""
    if taken.endpoint not in FIGURES:
        raise ValueError("This result has no figure; take its table.")
    if not taken.answer or (not taken.answered and taken.missing):
        raise ValueError("No model has a result to draw; see the reasons on the page.")
    return FIGURES[taken.endpoint](taken, look)


def figure_file(taken: Taken, kind: str, look: Look, facts: dict[str, str]) -> tuple[bytes, bool]:
    """Return a result's figure as a file of `kind`, and True if its font lacks characters of the texts."""
    with paper_style(look.size):
        return figure_bytes(draw(taken, look), kind, facts)
