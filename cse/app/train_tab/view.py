"""A training as HTML: its state, curves, the texts whose neighbours change, and what to conclude at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cse.app.drawing import html
from cse.app.drawing.curve import curve_svg
from cse.app.models import naming
from cse.app.training.archive import opened_by
from cse.app.training.estimate import in_words
from cse.app.training.outcome import Outcome
from cse.app.training.request import ADAPT
from cse.app.training.training import State, Training

EMPTY = "Choose a corpus above and a method, and press Train. The curves and the result are shown here."
GUARD = (
    "The guard's score is measured on texts that are held out. If it falls far, the model is collapsing: all texts get "
    "alike vectors. It does not tell which of two working models is better."
)
UNGUARDED = (
    "No text is held out, since that needs 100 different texts of six words or more: only the loss shows how it goes."
)
SHOWN_NEIGHBOURS = 3


def training_html(training: Training) -> str:
    """Return the state, the curves and the outcome of a training."""
    parts = [state_html(training), curves_html(training)]
    if training.outcome is not None:
        parts.insert(0, outcome_html(training.outcome))
    return f'<div class="cse-training">{"".join(parts)}{lines_html(training.lines)}</div>'


def state_html(training: Training) -> str:
    """Return a line on the state, and a bar of the steps."""
    progress, request = training.progress, training.request
    method = "Adapt" if request.method == ADAPT else naming.title(request.method)
    title = html.escape(f"{request.name}: {method} on {request.corpus}")
    share = progress.step / progress.steps if progress.steps else 0.0
    bar = html.bar(share) if training.state is not State.FINISHED else ""
    failed = html.alert(training.failure) if training.failure else ""
    status = html.escape(state_words(training))
    return f'<h3>{title}</h3><p role="status">{status}</p>{failed}{bar}'


def state_words(training: Training) -> str:
    """Return the state in words."""
    progress = training.progress
    steps = f"step {progress.step:,} of {progress.steps:,}" if progress.steps else "no step yet"
    match training.state:
        case State.RUNNING:
            return f"Training: {steps}{left_words(training)}."
        case State.STOPPED:
            return f"Stopped at {steps}. Resume goes on from the last evaluation."
        case State.FAILED:
            return f"Failed at {steps}."
    return f"Finished: {progress.step:,} steps, {minutes(training.seconds)} in all."


def left_words(training: Training) -> str:
    """Return the time that is left, by the measured steps if there are enough, else by the estimate."""
    progress = training.progress
    if progress.step >= 3 and progress.seconds_left is not None and training.request.method != ADAPT:
        return f", {in_words(progress.seconds_left)} left by the steps so far"
    if training.expected is None:
        return ""
    left = training.expected - training.seconds
    return f", {in_words(left)} left by the estimate" if left > 0 else ", longer than estimated"


def minutes(seconds: float) -> str:
    """Return a measured duration."""
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.1f} minutes"


def curves_html(training: Training) -> str:
    """Return the curves of the loss, and of the guard's score with the score of its start as a line."""
    progress = training.progress
    if not progress.losses:
        return ""
    curves = [curve_svg("Loss", progress.losses, progress.steps)]
    if progress.scores:
        level = None if progress.start is None else ("start", progress.start)
        curves.append(curve_svg("Guard's score", progress.scores, progress.steps, level))
    note = html.hint(GUARD if training.request.guarded else UNGUARDED)
    return f'<div class="cse-courses">{"".join(curves)}</div>{note}'


def lines_html(lines: Sequence[str]) -> str:
    """Return the messages of the command, folded."""
    if not lines:
        return ""
    inside = html.escape("\n".join(lines))
    return f'<details class="cse-messages"><summary>Messages of the command</summary><pre>{inside}</pre></details>'


def outcome_html(outcome: Outcome) -> str:
    """Return what was measured, as large whether it is good or not, what to conclude, and an adaptation's scores."""
    names = " and ".join(f"“{made.name}”" for made in outcome.models)
    be = "is a column" if len(outcome.models) == 1 else "are columns"
    added = f"{names} {be} of your page now." if names else ""
    opens = html.hint(f"Download: {opened_by(outcome.models[0].folder)}") if outcome.models else ""
    scores = scores_html(outcome.table, outcome.explained) if outcome.table else ""
    lead, _, rest = map(html.escape, outcome.sentence.partition(". "))
    return (
        f'<div class="cse-card cse-outcome"><h2>{lead}</h2><p>{rest}</p>'
        f"<p>{html.escape(added)}</p>{opens}{scores}</div>"
    )


def scores_html(rows: Sequence[Sequence[str]], explained: str) -> str:
    """Return the table of scores under its header."""
    header, *others = rows
    body = (html.row(map(html.escape, row)) for row in others)
    return html.headed(map(html.escape, header), body, "Scores of the candidates") + html.hint(explained)


def changes_html(training: Training) -> str:
    """Return the texts whose nearest ones differ most between the start and the newest model."""
    changes = training.changes
    if not changes.compared:
        return ""
    newest = "the result" if training.outcome else "the best evaluation so far"
    shares = changes.neighbours
    labels = (
        f" Nearest texts with the same label: {shares[0]:.1f} % at the start, {shares[1]:.1f} % now." if shares else ""
    )
    note = f"{changes.compared:,} texts of the corpus by the start and by {newest}.{labels}"
    if not changes.texts:
        return html.hint(f"No text has other neighbours: {note}")
    heads, rows = ("Text", "Before", "Now (new ones bold)"), map(change_row, changes.texts)
    table = html.headed(heads, rows, "Texts whose neighbours change", "cse-table cse-changed")
    return f'<h3 class="cse-heading">Texts whose neighbours change most</h3>{html.hint(note)}{table}'


def change_row(change: dict[str, Any]) -> str:
    """Return a text with its nearest ones before and now; those that are new are marked."""
    lists = (neighbours(change[when], change["before"]) for when in ("before", "after"))
    return html.row(lists, html.shortened(change["text"]))


def neighbours(shown: Sequence[str], known: Sequence[str]) -> str:
    """Return the nearest texts as a list, the first few of them; those that are not `known` in bold."""
    marked = [
        html.shortened(text) if text in known else f"<b>{html.shortened(text)}</b>" for text in shown[:SHOWN_NEIGHBOURS]
    ]
    return f"<ol>{''.join(f'<li>{text}</li>' for text in marked)}</ol>"
