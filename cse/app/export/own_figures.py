"""Figures with axes of their own: near-duplicates, votes, scores of labels, a training, times, attention, and maps."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.app.drawing.attention import LONGEST
from cse.app.drawing.palette import LIGHT, NO_LABEL
from cse.app.drawing.ranks import cut
from cse.app.drawing.terms import MEASURES
from cse.app.export.dots import Dot, dots, legend
from cse.app.export.look import RULE, Look, line, wrapped
from cse.app.export.plots import panels
from cse.app.models.naming import title
from cse.evaluation.figures import FAINT, MARKERS, handles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cse.app.export.taken import Taken

EVEN = 50.0  # percent of the votes
MOST_TOKENS = 40  # of a panel
MOST_VECTORS = 3000  # points of a map that are drawn one by one; more are one picture inside the vector file
OTHERS = "others"


def duplicates_figure(taken: Taken, look: Look) -> Figure:
    """Return the number of texts that would go by strictness, with lines at the chosen and the recommended place."""
    found, name = taken.answer, taken.inputs["model"]
    mark = look.marks([name])[name]
    figure = look.figure(look.high(15))
    axes = figure.subplots()
    nines = [place["nines"] for place in found["curve"]]
    axes.plot(nines, [found["texts"] - place["kept"] for place in found["curve"]], color=mark.colour, label=name)
    for label, place, style in (("chosen", found["nines"], "-"), ("recommended", found["advised"], "--")):
        axes.axvline(place, label=label, **{**RULE, "linestyle": style})
    axes.legend([axes.get_lines()[1], axes.get_lines()[2]], ["chosen", "recommended"], loc="best")
    axes.set_xlabel(wrapped("strictness: nines of the percentile of unrelated pairs", look.letters(0.8)))
    axes.set_ylabel(wrapped(f"texts of {found['texts']:,} that would go", look.letters(0.5)))
    axes.set_title(mark.name, loc="left", color=mark.colour)
    axes.set_ylim(bottom=0)
    return figure


def ballot_figure(taken: Taken, look: Look) -> Figure:
    """Return each model's share of the votes with its interval, and a line where neither is ahead."""
    rows = [
        (
            line(title(side["name"]), 40),
            {side["name"]: Dot(*(100 * side[value] for value in ("share", "low", "high")))},
        )
        for side in taken.answer["sides"]
    ]
    axis = f"share of {taken.answer['decided']} votes in percent, 95 % interval"
    return dots(look, rows, axis, {"even": EVEN}, named=False)


def labels_figure(taken: Taken, look: Look) -> Figure:
    """Return a row per score with a dot per model."""
    scores = dict.fromkeys(score for found in taken.answered.values() for score in found)
    rows = [
        (
            MEASURES.get(score, (score,))[0],
            {name: Dot(found[score]) for name, found in taken.answered.items() if score in found},
        )
        for score in scores
    ]
    return dots(look, rows, "score on the labels, × 100")


def times_figure(taken: Taken, look: Look) -> Figure:
    """Return the time of a sentence against the average score, a mark per model."""
    marks = look.marks(taken.answered)
    figure = look.figure(look.high(18))
    axes = figure.subplots()
    for name, mark in marks.items():
        at = taken.answered[name]["milliseconds"], taken.answered[name]["score"]
        axes.plot(*at, mark.marker, color=mark.colour, label=name)
    axes.set_xlabel(wrapped("milliseconds a sentence", look.letters(0.8)))
    axes.set_ylabel("average STS\n(Spearman × 100)")
    axes.margins(y=0.15)
    axes.set_xlim(left=0)
    legend(figure, look, marks)
    return figure


def training_figure(taken: Taken, look: Look) -> Figure:
    """Return the loss by step, and the guard's score by step with that of the start as a line."""
    found, name = taken.answer, taken.inputs["name"]
    colour = look.marks([name])[name].colour
    drawn = {label: found[key] for label, key in (("loss", "losses"), ("guard's score", "scores")) if found[key]}
    figure, grid = panels(look, len(drawn), look.high(13), 2)
    for axes, (label, points) in zip(grid, drawn.items(), strict=True):
        axes.plot(*zip(*points, strict=True), color=colour, label=label)
        if label != "loss" and found["start"] is not None:
            axes.axhline(found["start"], label="start", **RULE)
            axes.legend(loc="best")
        axes.set(xlabel="step", ylabel=label)
        axes.locator_params(axis="x", integer=True, nbins=5)
    return figure


def attention_figure(taken: Taken, look: Look) -> Figure:
    """Return two panels per model: the mean of a layer's heads on each token, and every head of every layer.

    Of a head its share on the prefix is drawn, without a prefix that on the token it looks at most.
    """
    figure, grid = panels(look, 2 * len(taken.answered), look.high(15), 2)
    for place, (name, found) in enumerate(taken.answered.items()):
        shares = 100 * np.array(found["shares"], float)
        tokens, heads = grid[2 * place : 2 * place + 2]
        by_token = shares.mean(1)[:, :MOST_TOKENS]
        every = shares[:, :, : found["prefix"]].sum(2) if found["prefix"] else shares.max(2)
        read = found["read"] or "all tokens"
        panel(tokens, look, by_token, f"{title(name)}: {read}", name)
        few = max(1, -(-by_token.shape[1] * 3 // max(1, look.letters(0.8 if look.narrow else 0.4))))
        shown = range(0, by_token.shape[1], few)
        tokens.set_xticks(shown, labels=[line(cut(found["tokens"][t], LONGEST)) for t in shown], rotation=90)
        panel(heads, look, every, "on the prefix" if found["prefix"] else "largest share of a head", name)
        heads.set_xticks(range(every.shape[1]), labels=[str(head + 1) for head in range(every.shape[1])])
        heads.set_xlabel("head")
    return figure


def panel(axes: Any, look: Look, values: np.ndarray, heading: str, name: str) -> None:
    """Draw (layers, n) percentages as shades."""
    image = axes.imshow(values, cmap="Blues", vmin=0, aspect="auto", label=name)
    axes.set_yticks(range(len(values)), labels=[str(layer + 1) for layer in range(len(values))])
    axes.set_ylabel("layer")
    axes.set_title(wrapped(heading, look.letters(0.4), 1), loc="left")
    axes.grid(visible=False)
    axes.figure.colorbar(image, ax=axes, label="%", pad=0.02)


def map_figure(taken: Taken, look: Look) -> Figure:
    """Return a panel per model with the same limits; points are coloured by label, without labels by group."""
    marks, labels = look.marks(taken.answered), taken.answer["labels"]
    side = look.width / min(len(marks), 2 if look.narrow else 4)
    figure, grid = panels(look, len(marks), side + look.high(2.8), 4)
    first = next(iter(taken.answered.values()))
    topics = labels or [f"group {group + 1}" for group in first["groups"]["of"]]
    names, of = legend_of(topics)
    for axes, (name, mark), found in zip(grid, marks.items(), taken.answered.values(), strict=True):
        points, area = np.array(found["xy"], float), max(1.0, min(9.0, 2500 / len(topics) * look.width / 6))
        for place, label in enumerate(names):
            chosen = points[of == place]
            axes.scatter(
                chosen[:, 0], chosen[:, 1], s=area, color=shade(place, label), marker=MARKERS[place % len(MARKERS)],
                linewidths=0, alpha=0.85, label=label, gid=f"{name} {label}", rasterized=len(points) > MOST_VECTORS,
            )  # fmt: skip
        scored = "" if found["trustworthiness"] is None else f" ({found['trustworthiness']:.2f})"
        axes.set(xlim=(-0.02, 1.02), ylim=(1.02, -0.02), xticks=[], yticks=[], aspect="equal")
        axes.set_title(wrapped(f"{mark.name}{scored}", look.letters(side / look.width - 0.04)))
        axes.spines[["top", "right"]].set_visible(True)
    shown = handles((shade(place, label), MARKERS[place % len(MARKERS)]) for place, label in enumerate(names))
    columns = max(1, int(look.letters(1.0) // (max(map(len, names)) + 4)))
    shortened = [wrapped(name, look.letters(0.7), 1) for name in names]
    figure.legend(
        shown, shortened, loc="outside lower left", ncols=min(columns, len(names)), handletextpad=0.1,
        columnspacing=1.0,
    )  # fmt: skip
    return figure


def legend_of(labels: list[str]) -> tuple[list[str], np.ndarray]:
    """Return at most as many names as there are colours, and the (N,) index of each label's name.

    The label "" is none; its name, `NO_LABEL`, is one more.
    """
    known = [label for label, _ in Counter(filter(None, labels)).most_common()]
    kept = sorted(known if len(known) <= len(LIGHT) else known[: len(LIGHT) - 1], key=str)
    names = [line(label, 24) for label in kept] + ([OTHERS] if len(kept) < len(known) else [])
    places = {label: place for place, label in enumerate(kept)}
    of = np.array([places.get(label, len(kept)) if label else len(names) for label in labels])
    return [*names, *([NO_LABEL] if "" in labels else [])], of


def shade(place: int, label: str) -> str:
    """Return a label's colour; the rest of many labels is grey, and so are texts without one."""
    return FAINT if label in (OTHERS, NO_LABEL) else LIGHT[place % len(LIGHT)]
