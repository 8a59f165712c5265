"""A blind question and the interval so far as HTML. Neither says which model a list, or the lead, belongs to."""

from __future__ import annotations

from cse.analysis.votes import RESULT, Verdict
from cse.app.drawing import html
from cse.app.state.ballots import Ballot

WIDE, HIGH = 600, 26  # of an interval's drawing
TICKS = {0.0: "0 %", 50.0: "50 %", 100.0: "100 %"}


def ballot_html(ballot: Ballot) -> str:
    """Return the next question of a ballot, and the interval of the votes so far; empty without a question."""
    question = ballot.question
    if question is None:
        return ""
    judgement, texts = ballot.judgement, ballot.texts
    place = f"Vote {judgement.counted + 1} of {judgement.target}"
    lists = "".join(
        f'<section class="cse-card"><h3>{name}</h3><ol>'
        f"{''.join(f'<li>{html.folded(texts[row])}</li>' for row in rows)}</ol></section>"
        for name, rows in zip("AB", question.lists, strict=True)
    )
    return (
        f'<div class="cse-question" role="status"><p class="cse-note">{place}. Which five texts are closer to this '
        f'one?</p><p class="cse-asked">{html.folded(texts[question.row])}</p></div>'
        f'<div class="cse-columns" style="--cse-column:18rem">{lists}</div>{so_far(judgement.verdict)}'
    )


def so_far(found: Verdict) -> str:
    """Return the share of the model that is ahead with its interval; which model it is stays hidden."""
    if not found.decided:
        return f'<p class="cse-note">No vote for either list yet; {found.same} for the same.</p>{interval(0.5, 0, 1)}'
    share, low, high = found.interval(found.ahead or RESULT)
    votes = max(found.start, found.result)
    standing = f"The model ahead has {votes} of {found.decided} votes" if found.ahead else f"Even: {votes} votes each"
    return (
        f'<p class="cse-note">{standing}; 95 % interval of its share: {100 * low:.0f} to {100 * high:.0f} %. '
        f"Same: {found.same}. Names are shown with the verdict.</p>{interval(share, low, high)}"
    )


def interval(share: float, low: float, high: float) -> str:
    """Return an SVG of a share and its interval, on an axis from 0 to 1 with a mark at one half."""
    middle, at, left, right = (WIDE * value for value in (0.5, share, low, high))
    spoken = f"{100 * share:.0f} %, interval from {100 * low:.0f} to {100 * high:.0f} %"
    return (
        f'<svg class="cse-interval" viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none" role="img" '
        f'aria-label="{spoken}"><line class="cse-axis" x1="0" x2="{WIDE}" y1="13" y2="13"/>'
        f'<line class="cse-half" x1="{middle:.0f}" x2="{middle:.0f}" y1="0" y2="{HIGH}"/>'
        f'<rect x="{left:.1f}" y="8" width="{max(2.0, right - left):.1f}" height="10" rx="3"/>'
        f'<line class="cse-at" x1="{at:.1f}" x2="{at:.1f}" y1="2" y2="24"/></svg>{html.axis(TICKS)}'
    )
