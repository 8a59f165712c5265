"""The sentences of a corpus nearest to a query, one ranked list per model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import gradio as gr

from cse.progress import Report, silent
from ui import html, validation
from ui.components import heading, result, submit
from ui.corpora import DEMO_KEY
from ui.events import PROGRESS, Run, guarded, private, reporter
from ui.models import Column, Failure
from ui.state import AppState

if TYPE_CHECKING:
    from cse.encoder import Encoder
    from index.store import Hit

MOST, DEFAULT = 50, 5
QUERIES = [
    "The orchestra played a slow symphony.",
    "I want to save more money every month.",
    "The flight was delayed for three hours.",
    "The teacher gave us too much homework.",
]
FIRST_TIME = "Press Enter or Search. The first search takes longer: every model first encodes the demo corpus."
BADGE = ' <span class="cse-badge" title="no other model found it">only here</span>'


def search(state: AppState, query: str, k: int, corpus: str, report: Report = silent) -> dict[str, list[Hit] | Failure]:
    """Each model's `k` best sentences of the corpus, best first."""
    wanted = validation.sentence(query, "The query")
    count = validation.whole(k, "k", 1, MOST)
    chosen = state.corpora[validation.one_of(corpus, "The corpus", state.corpora)]

    def hits(column: Column, encoder: Encoder) -> list[Hit]:
        return chosen.index(column, encoder).hits(encoder.encode(wanted), count)

    return state.models.apply(hits, chosen.columns, report)


def search_html(answers: Mapping[str, list[Hit] | Failure]) -> str:
    """Ranked lists side by side; what only one of several models found is marked."""
    lists = [answer for answer in answers.values() if not isinstance(answer, Failure)]
    finders = Counter(text for found in lists for text in {hit.text for hit in found})
    alone = {text for text, count in finders.items() if count == 1} if len(lists) > 1 else set()
    return html.columns(answers, lambda found: hits_html(found, alone))


def hits_html(found: list[Hit], alone: set[str]) -> str:
    """One ranked list; the sentences in `alone` get a badge."""
    items = []
    for hit in found:
        text = html.escape(hit.text) + (BADGE if hit.text in alone else "")
        items.append(
            f'<li><span class="cse-rank">{hit.rank}</span><span class="cse-text">{text}</span>'
            f'<span class="cse-score">{hit.score:.3f}</span></li>'
        )
    return f'<ol class="cse-hits">{"".join(items)}</ol>'


def search_tab(state: AppState, first: dict[str, list[Hit]] | None = None) -> None:
    """The tab's content with its first results, where there are some."""
    heading("The nearest sentences of a corpus")
    with gr.Row(equal_height=True):
        query = gr.Textbox(QUERIES[0], label="Query", scale=3, min_width=240)
        choices = [(corpus.label, corpus.key) for corpus in state.corpora.values()]
        corpus = gr.Dropdown(choices, value=DEMO_KEY, label="Corpus", scale=3, min_width=280)
        k = gr.Slider(1, MOST, DEFAULT, step=1, label="Results", scale=2, min_width=160)
        button = submit("Search")
    examples = gr.Examples([[text] for text in QUERIES], [query], label="Try", api_visibility="private")
    output = result("hits", search_html(first) if first else html.hint(FIRST_TIME))

    def find(query: str, k: int, corpus: str, progress: gr.Progress = PROGRESS) -> str:
        return search_html(search(state, query, k, corpus, reporter(progress)))

    run = Run(guarded(find), [query, k, corpus], [output])
    private([button.click, query.submit], run, examples)
