"""Groups of near-duplicates as HTML: numbers at the slider's place, a curve, and texts with marked differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cse.analysis.attribution import MAX_COMPARED_WORDS, Change, changes, compared
from cse.analysis.duplicates import COPY_COSINE, SAMPLED_TEXTS, NearDuplicates, Place
from cse.app.drawing import html
from cse.app.drawing.glossary import term
from cse.app.duplicates.near_duplicates import LEAST, MOST, PER_PAGE, Page, advised_place
from cse.app.models.naming import title
from cse.app.validation import counted

if TYPE_CHECKING:
    from cse.analysis.duplicates import Member

SHOWN = 8  # members of a group
WIDTH, HEIGHT = 600, 70  # of the curve
MARKS = {"both": "{}", "first": "<del>{}</del>", "second": "<ins>{}</ins>"}
READING = (
    "The curve shows how many texts would go at each strictness: at most {} (left end). {}: there at most one text in "
    "ten has an unrelated text that is as near."
)
NONE = "No text would go, not even at the loosest strictness (left end)."
ADVISED = ("The dashed line is the recommended strictness", "The chosen strictness is the recommended one")


def numbers_html(found: NearDuplicates, nines: float, name: str) -> str:
    """Return the numbers at a place of the slider in words, and the curve over all places."""
    place, count = found.at(nines), found.forest.count
    least = found.places[0].nines
    note = (
        "" if nines >= least - 0.05 else f" With so many texts {least:g} is the minimum: below it all form one group."
    )
    return (
        f'<p class="cse-count" role="status"><b>{count - place.kept:,}</b> of {count:,} texts would go, in '
        f"<b>{place.groups:,}</b> {'group' if place.groups == 1 else 'groups'}; {place.kept:,} are kept."
        f"{largest(place)}</p>"
        f'<p class="cse-note">{term("percentile", "Percentile")} {place.percentile:.7g} of random pairs: a cosine of '
        f"{place.cosine:.3f} or more in {html.escape(title(name))}{estimated(found, place)}.{note}</p>"
        f"{curve(found, place)}"
    )


def estimated(found: NearDuplicates, place: Place) -> str:
    """Return that the place's cosine is an estimate; empty if the compared pairs tell it."""
    texts = min(SAMPLED_TEXTS, found.forest.count)
    pairs = texts * (texts - 1) // 2
    rare = pairs * (1 - place.percentile / 100) < 1 and place.cosine < COPY_COSINE
    return ", an estimate: rarer than one of all compared pairs" if rare else ""


def largest(place: Place) -> str:
    """Return a sentence about the largest group, empty without one."""
    return f" The largest group has {place.largest:,}." if place.groups else ""


def curve(found: NearDuplicates, place: Place) -> str:
    """Return an SVG of the share of texts that would go by nines, with the slider's and the advised place.

    If none would go anywhere, a sentence says so.
    """
    going = max(found.forest.count - each.kept for each in found.places)
    if not going:
        return html.hint(NONE)
    dropped = found.forest.count - place.kept
    points = " ".join(
        f"{across(each.nines):.1f},{HEIGHT - (HEIGHT - 8) * (found.forest.count - each.kept) / going:.1f}"
        for each in found.places
    )
    at, advised = across(place.nines), across(min(max(found.advised, LEAST), MOST))
    spoken = f"{counted(going, 'text')} would go at the loosest place, {dropped:,} at the chosen one"
    reading = READING.format(counted(going, "text"), ADVISED[place.nines == advised_place(found)])
    return (
        f'<svg class="cse-curve" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{spoken}"><polyline points="{points}"/>'
        f'<line class="cse-advised" x1="{advised:.1f}" x2="{advised:.1f}" y1="0" y2="{HEIGHT}"/>'
        f'<line class="cse-at" x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{HEIGHT}"/></svg>{ticks()}'
        f'<p class="cse-note">{reading}</p>'
    )


def ticks() -> str:
    """Return the labels below the curve: the percentiles of 3, 5 and 7 nines."""
    return html.axis(
        {100 * across(nines) / WIDTH: f"99.{'9' * (nines - 2)} %" for nines in range(int(LEAST), int(MOST) + 1, 2)}
    )


def across(nines: float) -> float:
    """Return the position of nines on the curve."""
    return WIDTH * (nines - LEAST) / (MOST - LEAST)


def groups_html(page: Page, texts: Sequence[str], numbers: Sequence[int]) -> str:
    """Return a page of groups with the row that is kept, why, and the words in which the others differ.

    `numbers` are those that the texts' rows have for the visitor.
    """
    if not page.total:
        return html.hint("No near-duplicates at this strictness.")
    last = page.first + len(page.groups)
    cards = "".join(
        group_html(number, group, texts, numbers) for number, group in enumerate(page.groups, start=page.first + 1)
    )
    return f'<p class="cse-note">Groups {page.first + 1:,} to {last:,} of {page.total:,}</p>{cards}'


def group_html(number: int, group: Sequence[Member], texts: Sequence[str], numbers: Sequence[int]) -> str:
    """Return a group as a card: the kept text first, then at most `SHOWN` - 1 others."""
    keeper = next(member for member in group if member.kept)
    others = [member for member in group if not member.kept]
    lines = "".join(
        other_html(member, texts[keeper.row], texts[member.row], numbers[member.row]) for member in others[: SHOWN - 1]
    )
    more = len(others) - (SHOWN - 1)
    rest = f'<li class="cse-note">{more:,} more; Groups CSV has them all.</li>' if more > 0 else ""
    kept = (
        f'<li><span class="cse-badge cse-keep">kept</span> {html.folded(texts[keeper.row])} '
        f'<small class="cse-score">row {numbers[keeper.row]:,} · {html.escape(keeper.reason)}</small></li>'
    )
    return (
        f'<section class="cse-card cse-group"><h3>Group {number:,} <small>{len(group):,} texts</small></h3>'
        f"<ul>{kept}{lines}{rest}</ul></section>"
    )


def other_html(member: Member, kept: str, text: str, number: int) -> str:
    """Return a text that would go, its differences from the kept one marked if the two share half of their words."""
    found = changes(kept, text)
    shared, others = (sum(len(each.words) for each in found if (each.kind == "both") is both) for both in (True, False))
    cut = " …" if len(compared(text)) > MAX_COMPARED_WORDS else ""
    marked = html.folding(" ".join(map(marked_html, found)) + cut, len(text))
    shown = marked if shared >= others / 2 else html.folded(text)
    return (
        f"<li>{shown} "
        f'<small class="cse-score">row {number:,} · cosine {member.cosine:.3f}, {member.reason}</small></li>'
    )


def marked_html(change: Change) -> str:
    """Return a run of words: struck through if only the kept text has it, underlined if only this one has."""
    return MARKS[change.kind].format(html.escape(change.words))


def pages(total: int) -> int:
    """Return the number of pages of so many groups, at least one."""
    return max(1, -(-total // PER_PAGE))
