"""The cosine of a pair in several models, on one axis with the distribution of random pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cse.analysis.calibration import BINS, HIGHEST, LOWEST
from cse.app.drawing import html
from cse.app.drawing.glossary import term
from cse.app.drawing.verdicts import DEMO, scales
from cse.app.models.models import Failure, divided
from cse.app.models.naming import title

TICKS = (0.0, 0.5, 1.0)
EXPLANATION = (  # HTML
    "Grey: the cosines of random pairs of {}. The percentile is the share of them that this pair is "
    "closer than. Compare models by percentiles: each model has its own scale of "
    f"cosines ({term('anisotropy')})."
)


class Placed(NamedTuple):
    """A cosine among those of random pairs: its percentile, 0 to 100, and their histogram."""

    cosine: float
    percentile: float
    histogram: list[float]


def placed_html(
    answers: Mapping[str, Placed | Failure], notes: Mapping[str, list[str]], lesson: str = "", corpus: str = DEMO
) -> str:
    """Return a row per model and a summary; `notes` are warnings about each sentence, the random pairs `corpus`'s."""
    rows = (f'<tr><th scope="row">{html.model(name)}</th>{cells(answer)}</tr>' for name, answer in answers.items())
    table = html.headed(HEADINGS, rows, "Cosine of the pair in every model", "cse-table cse-placed")
    warnings = "".join(
        f'<p class="cse-note cse-warning"><b>{html.escape(what)}</b>: {html.escape("; ".join(about))}.</p>'
        for what, about in notes.items()
        if about
    )
    anisotropy = scales({name: answer.histogram for name, answer in divided(answers)[0].items()}, corpus)
    explained = f'<p class="cse-note">{EXPLANATION.format(html.escape(corpus))}</p>'
    seen = " ".join(part for part in (lesson, in_short(answers)) if part)
    return f"{warnings}{table}{html.verdict(seen)}{html.verdict(anisotropy)}{explained}"


def in_short(answers: Mapping[str, Placed | Failure]) -> str:
    """Return a sentence with the range of the percentiles; empty without results."""
    found = {name: answer.percentile for name, answer in divided(answers)[0].items()}
    if not found:
        return ""
    least, most = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    if in_words(found[least]) == in_words(found[most]):
        return f"Seen: {in_words(found[least])} in every model."
    return f"Seen: from {in_words(found[least])} in {title(least)} to {in_words(found[most])} in {title(most)}."


def cells(found: Placed | Failure) -> str:
    """Return a model's distribution, cosine and percentile, or the reason it has none."""
    if isinstance(found, Failure):
        return f'<td colspan="{len(HEADINGS) - 1}">{html.failure(found)}</td>'
    return (
        f'<td class="cse-strip">{strip(found)}</td><td class="cse-number">{found.cosine:.3f}</td>'
        f"<td>{in_words(found.percentile)}</td>"
    )


def in_words(percentile: float) -> str:
    """Return a percentile to the precision that a sample of random pairs allows."""
    if percentile in (0, 100):
        return "above all random pairs" if percentile else "below all random pairs"
    if not 0.05 <= percentile < 99.95:
        return "above 99.9 %" if percentile > 50 else "below 0.1 %"
    return f"{percentile:.1f} %"


def strip(found: Placed) -> str:
    """Return an SVG of the histogram, the axis and a marker at the cosine."""
    tallest = max(found.histogram) or 1.0
    corners = [
        f"{edge * 100 / BINS:.2f},{30 - 26 * share / tallest:.2f}"
        for place, share in enumerate(found.histogram)
        for edge in (place, place + 1)
    ]
    ticks = "".join(f'<line x1="{x:.2f}" x2="{x:.2f}" y1="30" y2="33"/>' for x in map(across, TICKS))
    marker = across(found.cosine)
    spoken = f"cosine {found.cosine:.3f}, {in_words(found.percentile)}"
    return (
        f'<svg viewBox="0 0 100 34" preserveAspectRatio="none" role="img" aria-label="{spoken}">'
        f'<polygon points="0,30 {" ".join(corners)} 100,30"/><line x1="0" x2="100" y1="30" y2="30"/>'
        f'{ticks}<line class="cse-marker" x1="{marker:.2f}" x2="{marker:.2f}" y1="0" y2="30"/></svg>'
    )


def axis() -> str:
    """Return the labels of the axis's ticks."""
    return "".join(f'<span style="left:{across(tick):.0f}%">{tick:g}</span>' for tick in TICKS)


def across(cosine: float) -> float:
    """Return the position of a cosine on the axis, 0 to 100."""
    return 100 * (min(max(cosine, LOWEST), HIGHEST) - LOWEST) / (HIGHEST - LOWEST)


AXIS = f'<div class="cse-axis" aria-hidden="true">{axis()}</div>'
HEADINGS = ("Model", f"Among random pairs{AXIS}", "Cosine", term("percentile", "Percentile"))
