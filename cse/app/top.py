"""The one row above the places: the corpus, the models, lessons, and what can be shared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from cse.app.corpus.bar import corpus_bar
from cse.app.models.naming import choices
from cse.app.state.app_state import AppState


class Top(NamedTuple):
    """What every place reads: the chosen corpus, the chosen models, the visitor's key.

    `changed` is a number that changes when texts, vectors or models of the choice changed. The address is written after
    the events `steps`, too; `resume` shows an opened page the visitor's corpus.
    """

    corpus: gr.Dropdown
    models: gr.CheckboxGroup
    key: gr.Textbox
    changed: gr.State
    steps: Sequence[Any] = ()
    resume: Any = None


def top_row(state: AppState, key: gr.Textbox) -> Top:
    """Add the row."""
    bar = corpus_bar(state, key)
    names = [column.name for column in state.models.own]
    with bar.row:
        models = gr.CheckboxGroup(choices(names), value=names, label="Models", elem_id="chosen-models")
    number = gr.State(0)
    bumped = gr.Number(0, precision=0, visible="hidden")
    models.input(lambda number: number + 1, bumped, bumped, queue=False, api_visibility="private")
    for event in (bar.changed.change, bumped.change):
        event(
            lambda one, other: (one, other),
            [bar.changed, bumped],
            number,
            api_visibility="private",
            show_progress="hidden",
        )
    return Top(bar.corpus, models, key, number, bar.steps, bar.resume)
