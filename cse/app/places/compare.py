"""Similarity, Search, Tokens and Results: the places that stack results, each a part with its fields."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import gradio as gr
import numpy as np

from cse.app import validation
from cse.app.forms.events import PRIVATE, refusing
from cse.app.results.inside import Attention, Prefix, Prototypes
from cse.app.results.scores import Labels, Ledger, Scores
from cse.app.results.search import Search
from cse.app.results.similarity import Disagreements, Pairs, Similarity
from cse.app.results.tokens import Template, Tokens
from cse.app.results.words import Changes, Words
from cse.app.session import Session, open_session
from cse.app.show import Shown, answer, read_first, section

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.app.top import Top

DRAWN = {"random": "random pair", "near": "near pair", "far": "far pair"}


def similarity_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. Returns its results."""

    def draw_buttons(fields: dict[str, gr.components.Component]) -> Sequence[Any]:
        """Add a button for each kind of pair that is drawn from the corpus. Returns the events that fill the fields."""
        pair, events = [fields["s1"], fields["s2"]], []
        with gr.Row(elem_classes="cse-draw"):
            gr.HTML('<span class="cse-note">From the corpus:</span>', apply_default_css=False)
            for kind, label in DRAWN.items():
                button = gr.Button(label, size="sm", scale=0, min_width=80)

                def draw(corpus: str, models: list[str], key: str, kind: str = kind) -> tuple[str, str]:
                    return drawn_pair(open_session(state, corpus, key, models or None), kind, Random())

                choice = {"The corpus": top.corpus, "The models": top.models, "The key": top.key}
                run = refusing(draw, choice, pair)
                events.append(button.click(run.fn, list(run.inputs), list(run.outputs), **PRIVATE))
        return events

    def folded(kind: Any, shared: Shown | None = None) -> Shown:
        with gr.Accordion(kind.title, open=False, elem_classes="cse-folded"):
            return section(state, kind, top, read_first(state, kind), shared=shared, headed=False)

    pair = section(state, Similarity, top, read_first(state, Similarity), draw_buttons, headed=False)
    words = folded(Words, pair)
    pairs = section(state, Pairs, top, read_first(state, Pairs))
    return [pair, words, pairs, folded(Changes), folded(Disagreements)]


def drawn_pair(session: Session, kind: str, chance: Random) -> tuple[str, str]:
    """Return a random text of the corpus, and a random other, or its nearest or farthest in the first model.

    That is the first that has the vectors. Raises FieldError for fewer than two texts, ValueError without vectors.
    """
    from cse.vectors import cosines_to_others

    texts = session.corpus.texts
    if len(texts) < 2:
        raise validation.FieldError("The corpus", f"{session.corpus.label} has one text; a pair needs two.")
    first, other = chance.sample(range(len(texts)), 2)
    if validation.one_of(kind, "The pair", DRAWN) != "random":
        columns = (session.corpus.ready(session.columns) or session.columns)[:1]
        vectors = next(iter(session.each(session.vectors, columns).values()), None)
        if vectors is None:
            raise ValueError(next(iter(session.failed.values()), "Choose a model."))
        cosines = cosines_to_others(vectors, np.array([first]))[0]
        other = int(np.nanargmax(cosines) if kind == "near" else np.nanargmin(cosines))
    return texts[first], texts[other]


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
