"""The state of the chosen corpus in words: the models that have encoded it, and the time that others take."""

from __future__ import annotations

from cse.app.drawing import html
from cse.app.models.naming import title
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO_KEY, OWN_KEY
from cse.app.state.encodings import Encoding
from cse.app.state.own_corpora import GONE, OwnCorpus

STEPS = 1000  # more than the encodings of one corpus


def version(state: AppState, corpus: str, own: OwnCorpus | None) -> int:
    """Return a number that differs if another corpus is chosen, or if the visitor's `own` one has other vectors."""
    if corpus == OWN_KEY:
        return 0 if own is None else own.number * STEPS + own.complete
    return -1 - [DEMO_KEY, *state.corpora].index(corpus)


def status_html(corpus: str, own: OwnCorpus | None) -> str:
    """Return the models' progress with a visitor's own corpus, empty for other corpora."""
    if corpus != OWN_KEY:
        return ""
    if own is None:
        return html.alert(GONE)
    encodings, current = own.encodings.values(), own.current
    failed = "".join(html.alert(f"{title(each.column.name)}: {each.failure}") for each in encodings if each.failure)
    if current is None:
        return failed
    ready = ", ".join(html.escape(title(each.column.name)) for each in encodings if each.complete)
    waiting = sum(not each.ended for each in encodings) - 1
    parts = (f"{ready} ready" if ready else "", progress(current), f"{waiting} more to come" if waiting else "")
    return failed + f'<p class="cse-note" role="status">{" · ".join(filter(None, parts))}</p>'


def progress(encoding: Encoding) -> str:
    """Return a model's progress as a bar and in words."""
    left, name = encoding.seconds_left(), html.escape(title(encoding.column.name))
    when = "" if left is None else f", {duration(left)} to go"
    return f"{name} {html.bar(encoding.done / encoding.total)} {encoding.done:,} of {encoding.total:,}{when}"


def duration(seconds: float) -> str:
    """Return a time in words."""
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"
