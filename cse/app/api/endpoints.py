"""The endpoints for programs: the functions of the tabs with JSON input and output.

A model that fails has `{"error": reason}` in place of its result.
"""

# No postponed annotations here: Gradio builds the endpoints' schema from the annotations themselves.

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import gradio as gr

from cse.app import validation
from cse.app.api.corpus_api import corpus_endpoints
from cse.app.api.encode import encode_of
from cse.app.api.map_api import maps_of, selection_of
from cse.app.api.own_text import own_text_endpoints
from cse.app.api.probe import probe_endpoints
from cse.app.forms.events import COMPARISONS, ENCODE, LINKS, MAPS, guarded
from cse.app.models.models import plain
from cse.app.scoreboard.ledger import ledger_entries
from cse.app.scoreboard.scores import board_of, names_of, plain_board
from cse.app.sections.all_pairs import all_pairs, plain_pairs
from cse.app.sections.search import DEFAULT as DEFAULT_HITS
from cse.app.sections.search import ranking, search
from cse.app.sections.similarity import similarity
from cse.app.sections.template_lab import WORDS as DEFAULT_TRIED
from cse.app.sections.template_lab import try_template
from cse.app.sections.tokens import DEFAULT as DEFAULT_TOKENS
from cse.app.sections.tokens import FULL, Reading, tokens
from cse.app.sections.words import attributions, plain_words
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO_KEY

LANES: dict[str, dict[str, Any]] = {
    "map": MAPS, "duplicates": LINKS, "judge": COMPARISONS, "results": {}, "ledger": {}
}  # fmt: skip


def add_endpoints(state: AppState) -> dict[str, Callable[..., Any]]:
    """Add the endpoints to the surrounding app and return them by name, the function's name without "_endpoint"."""

    def similarity_endpoint(s1: str, s2: str) -> dict[str, Any]:
        """Cosine of two sentences by every model, 1 for the same direction: {"simcse": 0.83, ...}.

        Args:
            s1: a sentence.
            s2: the sentence to compare it with.
        """
        return plain(similarity(state.models, s1, s2))

    def words_endpoint(s1: str, s2: str) -> dict[str, Any]:
        """Cosine attribution to words: {"simcse": {"cosine": 0.8, "words": [[["cat", 0.1]], ...], "errors": [0, 0]}}.

        A word's number is the cosine minus the cosine without it. An error is the sum of a sentence's numbers minus
        what leaving out all of its words at once takes away.

        Args:
            s1: a sentence of 1 to 64 words.
            s2: the sentence to compare it with, of 1 to 64 words.
        """
        pair = validation.pair(s1, s2)
        found = attributions(state.models, s1, s2)
        return plain(found, lambda answer: plain_words(pair, answer))

    def pairs_endpoint(lines: str) -> dict[str, Any]:
        """All pairs of a list: {"sentences": [...], "models": {"simcse": {"cosines": [[1, ...]], "percentiles": ...}}}.

        A percentile, 0 to 100, is among the model's random pairs.

        Args:
            lines: 2 to 40 sentences, separated by newlines.
        """
        sentences, answers = all_pairs(state, lines)
        return {"sentences": sentences, "models": plain(answers, plain_pairs)}

    def search_endpoint(
        query: str, k: int = DEFAULT_HITS, corpus: str = DEMO_KEY, threshold: float = 0.0, key: str = ""
    ) -> dict[str, Any]:
        """The k sentences of a corpus nearest to a query: {"simcse": [{"rank": 1, "score": 0.7, "text": "..."}]}.

        Args:
            query: what to look for.
            k: how many sentences, 1 to 50.
            corpus: "demo", the name of a corpus the app was started with, or "own" for the texts under the key.
            threshold: the percentile among random pairs of the model, 0 to 100, that a sentence has to reach.
            key: for "own" the key that /texts answers.
        """
        return plain(search(state, query, k, corpus, threshold, key), ranking)

    def tokens_endpoint(sentence: str, k: int = DEFAULT_TOKENS, share: float = FULL) -> dict[str, Any]:
        """The k likeliest tokens at [MASK]: {"simcse": {"before": [["cat", 0.1], ...], "alone": [], "after": []}}.

        "before" is for the sentence in the template, "alone" for the template, "after" for their difference.

        Args:
            sentence: what the models read.
            k: how many tokens, 1 to 30.
            share: the share of the template's logits that is subtracted, 0 to 1.
        """
        return plain(tokens(state.models, sentence, k, share), lists)

    def template_endpoint(sentence: str, template: str, k: int = DEFAULT_TRIED) -> dict[str, Any]:
        """Another template and each model's own: {"promptbert": {"own": {...}, "other": {...}, "gain": {...}}}.

        Each template is {"template": "...", "score": 71.2, "words": [["cat", 0.1], ...]}: Spearman x 100 of the demo's
        graded pairs, and the k likeliest denoised tokens. "gain" has the bounds, "low" and "high", of
        its 95 % bootstrap interval.

        Args:
            sentence: the text that replaces [X].
            template: a text with one [X], for the sentence, and one [MASK].
            k: how many tokens, 1 to 30.
        """
        return plain(try_template(state, sentence, template, k), asdict)

    def results_endpoint(task: str = "sts") -> dict[str, Any]:
        """The models' scores on a task: {"task", "summary", "protocol", "columns": [...], "models": {...}}.

        A model has a figure for each column: {"value": 66.47, "deviation": 0.06, "runs": 3}, and
        "trained_parameters". The scores are the shipped ones; no model is run.

        Args:
            task: sts, transfer, few-shot, clustering, retrieval or geometry.
        """
        board = board_of(state, task)
        return plain_board(board, names_of(board, state.models.columns))

    def ledger_endpoint() -> list[dict[str, Any]]:
        """Published scores and those of the bundled models, from the shipped results; no model is run."""
        return [entry.to_json() for entry in ledger_entries(state)]

    functions: list[Callable[..., Any]] = [
        encode_of(state),
        similarity_endpoint,
        words_endpoint,
        pairs_endpoint,
        search_endpoint,
        tokens_endpoint,
        template_endpoint,
        *probe_endpoints(state),
        *corpus_endpoints(state),
        *own_text_endpoints(state),
        selection_of(state),
        maps_of(state),
        results_endpoint,
        ledger_endpoint,
    ]
    found = {function.__name__.removesuffix("_endpoint"): function for function in functions}
    for name, function in found.items():
        gr.api(called(name, function), api_name=name, **LANES.get(name, ENCODE))
    return found


def called(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a guarded function named `name`, the name of its MCP tool."""
    given = guarded(function)
    given.__name__ = name
    return given


def lists(reading: Reading) -> dict[str, list[list[Any]]]:
    """Return a reading as JSON values."""
    named = {"before": reading.before, "alone": reading.alone, "after": reading.after}
    return {name: [list(pair) for pair in found] for name, found in named.items()}
