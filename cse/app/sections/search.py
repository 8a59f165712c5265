"""The Search tab: the sentences of a corpus nearest to a query, in every model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gradio as gr

from cse.app import validation
from cse.app.corpus.bar import CorpusBar
from cse.app.corpus.chosen import ChosenCorpus, chosen_corpus
from cse.app.drawing import html
from cse.app.drawing.components import heading, result, script, settings, submit
from cse.app.drawing.glossary import terms
from cse.app.drawing.ranks import EVERYTHING, MOST, Found, search_html
from cse.app.forms.events import PRIVATE, PROGRESS, QUICK, private, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.columns import Column
from cse.app.models.models import Failure, divided
from cse.app.models.naming import title
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO_KEY
from cse.training.records import Report, silent

if TYPE_CHECKING:
    import numpy as np

    from cse.encoder.encoder import Encoder
    from index.stores import Hit

DEFAULT = 5
QUERIES = [
    "The orchestra played a slow symphony.",
    "I want to save more money every month.",
    "The flight was delayed for three hours.",
]
FIRST_TIME = "Press Search. A model that you added reads the demo corpus first, which takes longer."


def find_all(
    state: AppState,
    query: str,
    k: int,
    corpus: ChosenCorpus,
    threshold: float = 0.0,
    depth: int = MOST,
    report: Report = silent,
    columns: Sequence[Column] | None = None,
) -> dict[str, Found | Failure]:
    """Return each model's max(depth, k) best sentences of the corpus, best first, by default of all its models.

    `threshold` is the minimum percentile of a result among the model's random pairs, 0 to 100.
    """
    from cse.analysis.calibration import cosine_at

    wanted = validation.sentence(query, "The query")
    count = validation.whole(k, "k", 1, MOST)
    place = validation.between(threshold, "The minimum percentile", 0.0, 100.0)

    def hits(column: Column, encoder: Encoder, vectors: np.ndarray) -> Found:
        started = time.perf_counter()
        found = corpus.nearest(column, encoder, vectors[0], max(count, depth))
        took = 1000 * (time.perf_counter() - started)
        least = cosine_at(place, state.demo.random_cosines(encoder)) if place else EVERYTHING
        return Found(*found, took, least, corpus.shortfall(column, encoder, len(found.hits), count))

    searching = corpus.columns if columns is None else columns
    return state.models.apply_to([wanted], hits, searching, report, corpus.query_prompt)


def search(
    state: AppState, query: str, k: int, corpus: str, threshold: float = 0.0, key: str | None = None
) -> dict[str, list[Hit] | Failure]:
    """Return each model's `k` best sentences of the corpus above the threshold, best first; `key` is the visitor's."""
    answers = find_all(state, query, k, chosen_corpus(state, corpus, key), threshold, depth=1)
    return {name: found if isinstance(found, Failure) else found.results(int(k)) for name, found in answers.items()}


def ranking(hits: list[Hit]) -> list[dict[str, Any]]:
    """Return ranked hits as JSON values."""
    return [{"rank": hit.rank, "score": hit.score, "text": hit.text} for hit in hits]


def search_tab(state: AppState, bar: CorpusBar, first: dict[str, Found] | None = None) -> Linked:
    """Add the tab's content, with first results if given. Returns its part of the address."""
    heading("The nearest sentences of the corpus")
    with gr.Row(equal_height=True, elem_classes="cse-fields"):
        query = gr.Textbox(QUERIES[0], label="Query", scale=4, min_width=200)
        button = submit("Search")
    with gr.Row(elem_classes="cse-tries"):
        with settings():
            with gr.Row():
                k = gr.Slider(1, MOST, DEFAULT, step=1, label="Results per model", min_width=160)
                threshold = gr.Slider(
                    0, 100, 0, step=0.5, label="Minimum percentile (of random pairs of the demo corpus)", min_width=160
                )
            gr.HTML(terms("percentile"), apply_default_css=False)
        examples = gr.Examples([[text] for text in QUERIES], [query], label="Try", api_visibility="private")
    opened = search_html(DEFAULT, first, findable=True) if first else html.hint(FIRST_TIME)
    output = result("hits", opened, script("ranks"))

    def find(query: str, k: int, threshold: float, corpus: str, key: str, progress: gr.Progress = PROGRESS) -> str:
        chosen = chosen_corpus(state, corpus, key)
        columns = chosen.answering(chosen.columns or state.models.columns)  # others follow when they are ready
        answers = find_all(state, query, k, chosen, threshold, report=reporter(progress), columns=columns)
        few = (f"{title(name)}: {found.note}." for name, found in divided(answers)[0].items() if found.note)
        return "".join(map(html.hint, filter(None, [chosen.note, *few]))) + search_html(
            int(k), answers, findable=chosen.key == DEMO_KEY
        )

    fields = {
        "The query": query, "k": k, "The minimum percentile": threshold, "The corpus": bar.corpus, "The key": bar.key
    }  # fmt: skip
    run = refusing(find, fields, [output])

    def find_again(number: int, *shown: Any) -> Any:
        """Repeat the search in another corpus, or with further vectors; an opened page reports a change of 0."""
        return run.fn(*shown) if number else [gr.skip()] * len(run.outputs)

    asking = [button.click, query.submit, threshold.release]
    private(asking, run, examples)
    bar.corpus.change(lambda corpus: gr.update(visible=corpus == DEMO_KEY), bar.corpus, examples.dataset, **QUICK)
    bar.changed.change(find_again, [bar.changed, *run.inputs], list(run.outputs), **PRIVATE)
    hits = Result("The sentences found", "search", ("query", "k", "threshold", "corpus", "key"))
    return Linked(("q", "k", "threshold"), run, asking, examples=examples, results=[hits])
