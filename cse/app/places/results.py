"""Results: what the models reach, with intervals and the papers' numbers; the labels of the corpus; speed."""

from __future__ import annotations

from cse.app.results.labels import Labels, Speed
from cse.app.results.scores import Ledger, Scores
from cse.app.session import open_session
from cse.app.show import Shown, answer, section
from cse.app.state.app_state import AppState
from cse.app.top import Top


def results_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. The shipped scores are there at once, as they need no model. Returns its results."""
    session = open_session(state)
    shown = [section(state, Scores, top, answer(Scores(), session))]
    shown += [section(state, Labels, top), section(state, Speed, top)]
    return [*shown, section(state, Ledger, top, answer(Ledger(), session))]
