"""Tokens: what the vectors say in words, and what is inside the models. All results read one sentence."""

from __future__ import annotations

import gradio as gr

from cse.app.results.attention import Attention
from cse.app.results.prefix import Prefix
from cse.app.results.prototypes import Prototypes
from cse.app.results.template import Template
from cse.app.results.tokens import Tokens
from cse.app.show import Shown, read_first, section
from cse.app.state.app_state import AppState
from cse.app.top import Top


def tokens_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. Returns its results."""
    tokens = section(state, Tokens, top, read_first(state, Tokens), headed=False)
    template = section(state, Template, top, read_first(state, Template), shared=tokens)
    with gr.Accordion("Inside: attention, prefix and prototypes", open=False, elem_id="inside"):
        inside = [
            section(state, kind, top, read_first(state, kind), shared=tokens)
            for kind in (Attention, Prefix, Prototypes)
        ]
    return [tokens, template, *inside]
