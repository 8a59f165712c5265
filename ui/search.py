"""The sentences of a corpus nearest to a query: a row per sentence, and its rank in each model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import gradio as gr

from cse.progress import Report, silent
from cse.rankings import overlap, rank_biased_overlap
from ui import html, validation
from ui.components import heading, result, submit
from ui.corpora import DEMO_KEY
from ui.events import PROGRESS, private, reporter
from ui.links import Linked
from ui.models import Column, Failure, divided
from ui.refusals import refusing
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
FIRST_TIME = "Press Enter or Search. A model that is not bundled encodes the demo corpus first, which takes longer."
READING = (
    f"A number is the sentence's rank in a model, grey where it is beyond the results asked for, a dot beyond {MOST}. "
    "Agreement: how many of the results two models share, and their rank-biased overlap, which counts early ranks more "
    "(1: the same list)."
)


class Found(NamedTuple):
    """A model's best sentences, more than are shown, the type of its index, and how long it took here."""

    hits: list[Hit]
    factory: str
    milliseconds: float | None = None


def find_all(
    state: AppState, query: str, k: int, corpus: str, report: Report = silent
) -> tuple[int, dict[str, Found | Failure]]:
    """The number of results asked for, and each model's `MOST` best sentences of the corpus, best first."""
    wanted = validation.sentence(query, "The query")
    count = validation.whole(k, "k", 1, MOST)
    chosen = state.corpora[validation.one_of(corpus, "The corpus", state.corpora)]

    def hits(column: Column, encoder: Encoder) -> Found:
        index = chosen.index(column, encoder)
        started = time.perf_counter()
        found = index.hits(encoder.encode(wanted), MOST)
        return Found(found, index.manifest.factory, 1000 * (time.perf_counter() - started))

    return count, state.models.apply(hits, chosen.columns, report)


def search(state: AppState, query: str, k: int, corpus: str) -> dict[str, list[Hit] | Failure]:
    """Each model's `k` best sentences of the corpus, best first."""
    count, answers = find_all(state, query, k, corpus)
    return {name: found if isinstance(found, Failure) else found.hits[:count] for name, found in answers.items()}


def search_html(count: int, answers: Mapping[str, Found | Failure]) -> str:
    """The union of the models' first `count` results in a table of ranks, and how far the models agree."""
    found, failed = divided(answers)
    failures = html.failures(failed)
    if not found:
        return failures
    ranks = {name: {hit.row: hit for hit in answer.hits} for name, answer in found.items()}
    heads = "".join(head(name, answer) for name, answer in found.items())
    rows = "".join(row_html(row, ranks, count) for row in union(ranks, count))
    inside = f'<thead><tr><th scope="col">Sentence</th>{heads}</tr></thead><tbody>{rows}</tbody>'
    return (
        f"{failures}{html.table(inside, 'Ranks of the sentences found', 'cse-table cse-ranks')}"
        f'{agreement_html(count, found)}<p class="cse-note">{READING}</p>'
    )


def union(ranks: Mapping[str, Mapping[int, Hit]], count: int) -> list[int]:
    """The rows of the corpus among the first `count` of any model, the smallest mean rank first."""
    rows = {hit.row for places in ranks.values() for hit in places.values() if hit.rank <= count}

    def mean_rank(row: int) -> tuple[float, int]:
        return sum(places[row].rank if row in places else MOST + 1 for places in ranks.values()), row

    return sorted(rows, key=mean_rank)


def head(name: str, found: Found) -> str:
    """A model's column: its name, the type of its index and the time it took."""
    exact = " (exact)" if found.factory == "Flat" else ""
    took = "" if found.milliseconds is None else f", {found.milliseconds:.0f} ms"
    return f'<th scope="col">{html.escape(name)}<small>{html.escape(found.factory)}{exact}{took}</small></th>'


def row_html(row: int, ranks: Mapping[str, Mapping[int, Hit]], count: int) -> str:
    """A sentence and its rank in every model; a badge where one of several models alone has it in its results."""
    hits = {name: places.get(row) for name, places in ranks.items()}
    finders = [name for name, hit in hits.items() if hit and hit.rank <= count]
    alone = len(finders) == 1 and len(ranks) > 1
    badge = f' <span class="cse-badge">only {html.escape(finders[0])}</span>' if alone else ""
    cells = "".join(f"<td>{rank_html(hit, count)}</td>" for hit in hits.values())
    text = next(hit.text for hit in hits.values() if hit)
    return f'<tr><th scope="row">{html.escape(text)}{badge}</th>{cells}</tr>'


def rank_html(hit: Hit | None, count: int) -> str:
    """A rank with its cosine, or a dot."""
    if hit is None:
        return f'<span class="cse-rank" aria-hidden="true">·</span><span class="cse-hidden">not in {MOST}</span>'
    kind = "cse-rank cse-found" if hit.rank <= count else "cse-rank"
    return f'<span class="{kind}">{hit.rank}</span><span class="cse-score">{hit.score:.3f}</span>'


def agreement_html(count: int, found: Mapping[str, Found]) -> str:
    """What each two models share of their first `count` results, and their rank-biased overlap."""
    if len(found) < 2:
        return ""
    lists = {name: [hit.row for hit in answer.hits[:count]] for name, answer in found.items()}
    items = "".join(
        f"<li><b>{html.escape(one)}</b> and <b>{html.escape(other)}</b>: {overlap(lists[one], lists[other])} of "
        f"{max(len(lists[one]), len(lists[other]))}, {rank_biased_overlap(lists[one], lists[other]):.2f}</li>"
        for one, other in combinations(lists, 2)
    )
    return f'<h2 class="cse-heading">Agreement</h2><ul class="cse-agreement">{items}</ul>'


def search_tab(state: AppState, first: dict[str, Found] | None = None) -> Linked:
    """The tab's content with its first results, where there are some; what belongs into the address comes back."""
    heading("The nearest sentences of a corpus")
    with gr.Row(equal_height=True):
        query = gr.Textbox(QUERIES[0], label="Query", scale=3, min_width=240)
        choices = [(corpus.label, corpus.key) for corpus in state.corpora.values()]
        corpus = gr.Dropdown(choices, value=DEMO_KEY, label="Corpus", scale=3, min_width=280)
        k = gr.Slider(1, MOST, DEFAULT, step=1, label="Results", scale=2, min_width=160)
        button = submit("Search")
    examples = gr.Examples([[text] for text in QUERIES], [query], label="Try", api_visibility="private")
    output = result("hits", search_html(DEFAULT, first) if first else html.hint(FIRST_TIME))

    def find(query: str, k: int, corpus: str, progress: gr.Progress = PROGRESS) -> str:
        return search_html(*find_all(state, query, k, corpus, reporter(progress)))

    run = refusing(find, [query, k, corpus], [output])
    triggers = (button.click, query.submit)
    private(triggers, run, examples)
    return Linked(("q", "k", "corpus"), run, triggers)
