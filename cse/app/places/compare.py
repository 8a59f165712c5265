"""Similarity, Search, Tokens and Results: the places that stack results, each a part with its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gradio as gr

from cse.app.results.inside import Attention, Prefix, Prototypes
from cse.app.results.scores import Labels, Ledger, Scores
from cse.app.results.search import Search
from cse.app.results.similarity import Disagreements, Pairs, Similarity
from cse.app.results.tokens import Template, Tokens
from cse.app.results.words import Changes, Words
from cse.app.session import open_session
from cse.app.show import Shown, answer, read_first, section

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.app.top import Top


def similarity_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. Returns its results."""

    def folded(kind: Any, shared: Shown | None = None) -> Shown:
        with gr.Accordion(kind.title, open=False, elem_classes="cse-folded"):
            return section(state, kind, top, read_first(state, kind), shared=shared, headed=False)

    pair = section(state, Similarity, top, read_first(state, Similarity), headed=False)
    words = folded(Words, pair)
    pairs = section(state, Pairs, top, read_first(state, Pairs))
    return [pair, words, pairs, folded(Changes), folded(Disagreements)]


def search_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. Returns its results."""
    return [section(state, Search, top, read_first(state, Search), headed=False)]


def tokens_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place, whose results read one sentence. Returns them."""
    tokens = section(state, Tokens, top, read_first(state, Tokens), headed=False)
    template = section(state, Template, top, read_first(state, Template), shared=tokens)
    with gr.Accordion("Inside: attention, prefix and prototypes", open=False, elem_id="inside"):
        kinds = (Attention, Prefix, Prototypes)
        inside = [section(state, kind, top, read_first(state, kind), shared=tokens) for kind in kinds]
    return [tokens, template, *inside]


def results_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. The shipped scores are there at once, as they need no model. Returns its results."""
    session = open_session(state)
    scores = section(state, Scores, top, answer(Scores(), session))
    return [scores, section(state, Labels, top), section(state, Ledger, top, answer(Ledger(), session))]
