"""The verdict of a vote as HTML: one sentence, votes with intervals, scores of labels, costs, and the guard."""

from __future__ import annotations

from cse.analysis.votes import RESULT, SAME, SKIP, START, p_value
from cse.app.choice.ballot_html import interval
from cse.app.choice.record import Record
from cse.app.drawing import html
from cse.app.drawing.glossary import score_term
from cse.app.models.naming import title

GUARD = (
    "Check for a collapse: {}. A low share means that a model is broken; it does not tell which of two working ones is "
    "better."
)


def verdict_html(record: Record, linked: bool = False) -> str:
    """Return the page of a verdict; `linked` says that it comes from a link, which anyone can write."""
    found = record.verdict
    origin = "This verdict comes from a link; the page only draws what the link says. " if linked else ""
    about = (
        f"{origin}{html.escape(record.corpus)}: {record.compared:,} different texts were compared; the five "
        f"nearest differ for {100 * record.differing:.0f} % of them. Votes for the same: {record.counts[SAME]}, "
        f"skipped: {record.counts[SKIP]}. Sign test of the {found.decided} other votes: {p_value(found.p)}."
    )
    return (
        f'<h3 class="cse-verdict">{html.escape(_capital(record.sentence))}</h3><p class="cse-note">{about}</p>'
        f"{facts_table(record)}{notes(record)}"
    )


def facts_table(record: Record) -> str:
    """Return a table with a row per measure and a column per model."""
    measures = {"Votes": [votes_cell(record, side) for side in (START, RESULT)]}
    if record.scores:
        measures |= {
            score_term(name): [f"{record.scores[side].get(name, 0):.2f}" for side in (START, RESULT)]
            for name in record.scores[START]
        }
    measures["Milliseconds per text"] = [f"{facts.milliseconds:.3g}" for facts in record.models]
    measures["Weights, MB as float32"] = [f"{facts.megabytes:,.1f}" for facts in record.models]
    heads = [None, *(html.model(facts.name) for facts in record.models)]
    rows = (html.row(cells, name) for name, cells in measures.items())
    return html.headed(heads, rows, "Both models, by votes, labels and cost", "cse-table cse-facts")


def votes_cell(record: Record, side: str) -> str:
    """Return a model's votes, their share and its interval."""
    found = record.verdict
    share, low, high = found.interval(side) if found.decided else (0.0, 0.0, 1.0)
    percentages = f"{100 * share:.0f} %, interval {100 * low:.0f} to {100 * high:.0f} %"
    return f"<b>{record.counts[side]}</b> of {found.decided} <small>{percentages}</small>{interval(share, low, high)}"


def notes(record: Record) -> str:
    """Return why there are no scores of labels, and the guard."""
    known = [f"{title(facts.name)} {facts.found:.0f} %" for facts in record.models if facts.found is not None]
    lines = [record.note, GUARD.format("shortened texts found again: " + ", ".join(known)) if known else ""]
    return "".join(f'<p class="cse-note">{html.escape(line)}</p>' for line in lines if line)


def _capital(sentence: str) -> str:
    """A sentence that begins with "not distinguishable" begins with a capital; a model's name stays as it is."""
    return f"Not{sentence[3:]}" if sentence.startswith("not distinguishable") else sentence
