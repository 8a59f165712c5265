"""Search: the rows of a corpus nearest to a query."""

from __future__ import annotations

from cse.app.results.search import Search
from cse.app.show import Shown, read_first, section
from cse.app.state.app_state import AppState
from cse.app.top import Top


def search_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. Returns its results."""
    return [section(state, Search, top, read_first(state, Search), headed=False)]
