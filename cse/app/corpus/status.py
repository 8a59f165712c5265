"""The state of the chosen corpus in words: the models that have encoded it, and the time that others take."""

from __future__ import annotations

from cse.app.drawing import html
from cse.app.models.corpora import DEMO_KEY, OWN_KEY
from cse.app.models.encodings import Encoding
from cse.app.models.own_corpora import GONE, OwnCorpus
from cse.app.models.state import AppState

STEPS = 1000  # more than the encodings of one corpus


def version(state: AppState, corpus: str, own: OwnCorpus | None) -> int:
    """Return a number that differs if another corpus is chosen, or if the visitor's `own` one has other vectors."""
    if corpus == OWN_KEY:
        return 0 if own is None else own.number * STEPS + own.complete
    return -1 - [DEMO_KEY, *state.corpora].index(corpus)


def status_html(corpus: str, own: OwnCorpus | None) -> str:
    """Return a line for a visitor's own corpus, empty for others."""
    if corpus != OWN_KEY:
        return ""
    if own is None:
        return html.alert(GONE)
    said = [each for each in map(in_words, own.encodings.values()) if each]
    return f'<p class="cse-note" role="status">{html.escape(" · ".join(said) or "All models have encoded them.")}</p>'


def in_words(encoding: Encoding) -> str:
    """Return a model's progress; empty if it is complete."""
    name = encoding.column.name
    if encoding.failure:
        return f"{name}: {encoding.failure}"
    if encoding.complete:
        return ""
    left = encoding.seconds_left()
    if left is None:
        return f"{name} waits"
    return f"{name} {encoding.done:,} of {encoding.total:,}, {max(1, round(left))} s to go"
