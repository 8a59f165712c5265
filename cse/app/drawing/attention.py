"""Attention as HTML: from the token that is read to the others, by head, and every head of every layer at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse.app.drawing import html
from cse.app.drawing.ramps import COSINES, tint
from cse.app.drawing.ranks import cut
from cse.app.drawing.verdicts import percent
from cse.app.models.naming import title

if TYPE_CHECKING:
    import numpy as np

    from cse.analysis.prefix_analysis import HeadAttention

MEAN = "mean of all tokens"
LINE, SIDE, FAN, WORD, CELL, HEAD = 19, 120, 90, 150, 15, 22  # of the picture, in pixels
LONGEST = 14  # characters of a token


def head_view(found: HeadAttention, layer: int, head: int, name: str) -> str:
    """Return an SVG of one head (0: the mean of all) of a layer, counted from 0, in the colour of the model `name`.

    Lines go from the token that is read to the others, the wider the more attention; beside each token is a square for
    every head of the layer.
    """
    heads = found.shares[layer]
    shares, largest = shares_of(found, layer, head), float(heads.max())
    middle, height = HEAD + LINE * len(shares) / 2, HEAD + LINE * len(shares)
    left, right = SIDE, SIDE + FAN
    rows = []
    for place, share in enumerate(shares):
        y = HEAD + LINE * (place + 0.5)
        squares = "".join(
            f'<rect x="{right + WORD + CELL * number}" y="{y - 6}" width="{CELL - 3}" height="12" '
            f'fill-opacity="{each[place] / largest:.2f}"/>'
            for number, each in enumerate(heads)
        )
        width = 0.4 + 7 * share / float(shares.max())
        rows.append(
            f'<path d="M{left} {middle:.0f}L{right} {y:.0f}" stroke-width="{width:.1f}" '
            f'stroke-opacity="{0.15 + 0.85 * share / float(shares.max()):.2f}"/>'
            f'<text x="{right + 6}" y="{y + 4:.0f}">{html.escape(cut(found.tokens[place], LONGEST))}</text>'
            f'<text x="{right + WORD - 8}" y="{y + 4:.0f}" text-anchor="end">{percent(share)}</text>{squares}'
        )
    numbers = "".join(
        f'<text x="{right + WORD + CELL * number + 6}" y="14" text-anchor="middle" class="cse-note">{number + 1}</text>'
        for number in range(len(heads))
    )
    edge = right + WORD + CELL * len(heads)
    return (
        f'<div class="cse-scroll" role="group" tabindex="0" aria-label="Attention of {html.escape(title(name))}">'
        f'<svg class="cse-heads" {html.painted(name)} viewBox="0 0 {edge} {height}" width="{edge}" '
        f'height="{height}" role="img" aria-label="{html.escape(in_words(found, shares))}">{numbers}'
        f'<text x="{left - 6}" y="{middle + 4:.0f}" text-anchor="end">{html.escape(cut(found.read or MEAN, 20))}</text>'
        f"{''.join(rows)}</svg></div>"
    )


def shares_of(found: HeadAttention, layer: int, head: int) -> np.ndarray:
    """Return the shares (T,) of a head; head 0 is the mean of all of the layer."""
    heads = found.shares[layer]
    shares: np.ndarray = heads.mean(0) if head == 0 else heads[head - 1]
    return shares


def in_words(found: HeadAttention, shares: np.ndarray) -> str:
    """Return where the shares (T,) are largest, and how much of them is at the prefix."""
    most, who = found.tokens[int(shares.argmax())], found.read or "The mean of all tokens"
    on_prefix = f", {percent(float(shares[: found.prefix].sum()))} at the prefix" if found.prefix else ""
    return f"{who} looks most at {most} ({percent(float(shares.max()))}){on_prefix}."


def every_head(found: HeadAttention) -> np.ndarray:
    """Return (layers, heads): the share of a head on the prefix, or on its most looked-at token without a prefix."""
    shares = found.shares
    summary: np.ndarray = shares[:, :, : found.prefix].sum(2) if found.prefix else shares.max(2)
    return summary


def model_view(found: HeadAttention, layer: int, head: int, name: str) -> str:
    """Return a table of every head by layer (`every_head`), in which the chosen one, or the chosen layer, is marked."""
    values = every_head(found)
    what = "on the prefix" if found.prefix else "on the token it looks at most"
    heads = ["Layer", *(str(number + 1) for number in range(values.shape[1]))]
    rows = []
    for number, row in enumerate(values):
        cells = "".join(
            f'<td class="cse-tint{" cse-chosen" if number == layer and head in (0, place + 1) else ""}" '
            f'style="{tint(float(value), COSINES)}">{100 * value:.0f}</td>'
            for place, value in enumerate(row)
        )
        rows.append(f'<tr><th scope="row">{number + 1}</th>{cells}</tr>')
    caption = f"{title(name)}: percent of each head's attention {what}"
    table = html.headed(heads, rows, caption, "cse-table cse-layers")
    return f'<p class="cse-note">Percent of each head\'s attention {what}</p>{table}'
