"""The endpoints for programs: the tabs' own functions with JSON in and out.

A model that cannot answer has `{"error": reason}` in place of its result.
"""

# No postponed annotations here: Gradio builds the endpoints' schema from the annotations themselves.

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr

from ui.canvas import ModelMap
from ui.clusters import PER_TOPIC, points_of
from ui.corpora import DEMO_KEY
from ui.events import ENCODE, MAPS, guarded, one_line_errors
from ui.maps import draw_maps
from ui.model_strip import descriptions
from ui.models import Failure, plain
from ui.scores import board_of, names_of, plain_board
from ui.search import DEFAULT as DEFAULT_HITS
from ui.search import search
from ui.similarity import similarity
from ui.state import AppState
from ui.tokens import DEFAULT as DEFAULT_TOKENS
from ui.tokens import Reading, tokens

if TYPE_CHECKING:
    from index.store import Hit


def add_endpoints(state: AppState) -> None:
    """Add `/similarity`, `/search`, `/tokens`, `/map`, `/models` and `/results` to the surrounding app."""

    def similarity_endpoint(s1: str, s2: str) -> dict[str, Any]:
        """Cosine of two sentences by every model: {"simcse": 0.83, ...}."""
        return plain(similarity(state.models, s1, s2))

    def search_endpoint(query: str, k: int = DEFAULT_HITS, corpus: str = DEMO_KEY) -> dict[str, Any]:
        """The k sentences of a corpus nearest to a query: {"simcse": [{"rank": 1, "score": 0.7, "text": "..."}]}.

        k is 1 to 50. corpus is "demo" or the name of a corpus the app was started with.
        """
        return plain({name: ranking(answer) for name, answer in search(state, query, k, corpus).items()})

    def tokens_endpoint(sentence: str, k: int = DEFAULT_TOKENS) -> dict[str, Any]:
        """The k likeliest tokens at [MASK]: {"simcse": {"before": [["cat", 0.1], ...], "alone": [], "after": []}}.

        k is 1 to 30. "alone" is what the template says without the sentence, "after" what is left without that.
        """
        return plain({name: lists(answer) for name, answer in tokens(state.models, sentence, k).items()})

    def map_endpoint(source: str, lines: str = "", per_topic: int = PER_TOPIC, seed: int = 0) -> Iterator[dict]:
        """t-SNE maps: {"labels": [...], "texts": [...], "maps": {"simcse": {"xy": [[x, y]], "near": [[3, 9]], ...}}}.

        source is "demo" (per_topic sentences of each topic, 10 to 100), "pairs" (graded pairs, one after the other)
        or "lines" (up to 500, separated by newlines). Coordinates are within 0 and 1. "near" are the numbers of the
        five sentences whose vectors are nearest to each one's, "lost" the share of its ten nearest that are not near on
        the map; "trustworthiness", "continuity" and "same_topic" are null where they say nothing. The maps done so far
        come as each is done; a client that leaves stops the rest.
        """
        with one_line_errors():
            points = points_of(state, source, lines, per_topic)
            for answers in draw_maps(state, points, seed):
                maps = {name: map_fields(answer) for name, answer in answers.items()}
                yield {"labels": points.labels, "texts": points.texts, "maps": plain(maps)}

    def models_endpoint() -> list[dict[str, Any]]:
        """What each model is: name, summary, citation, learned numbers, dimension, pooling, template, fingerprint."""
        return [{"name": name, **description} for name, description in plain(descriptions(state.models)).items()]

    def results_endpoint(task: str = "sts") -> dict[str, Any]:
        """What the models scored on a task: {"task", "summary", "protocol", "columns": [...], "models": {...}}.

        task is sts, transfer, few-shot, clustering, retrieval or geometry. A model has a figure for each column:
        {"value": 66.47, "deviation": 0.06, "runs": 3}. The scores are the shipped ones; no model is run.
        """
        board = board_of(state, task)
        return plain_board(board, names_of(board, state.models.columns))

    for function in (similarity_endpoint, search_endpoint, tokens_endpoint, models_endpoint):
        gr.api(guarded(function), api_name=function.__name__.removesuffix("_endpoint"), **ENCODE)
    gr.api(map_endpoint, api_name="map", **MAPS)
    gr.api(guarded(results_endpoint), api_name="results")


def ranking(answer: "list[Hit] | Failure") -> list[dict[str, Any]] | Failure:
    """Ranked hits as JSON values."""
    if isinstance(answer, Failure):
        return answer
    return [{"rank": hit.rank, "score": hit.score, "text": hit.text} for hit in answer]


def lists(answer: Reading | Failure) -> dict[str, list[list[Any]]] | Failure:
    """A reading as JSON values."""
    if isinstance(answer, Failure):
        return answer
    named = {"before": answer.before, "alone": answer.alone, "after": answer.after}
    return {name: [list(pair) for pair in found] for name, found in named.items()}


def map_fields(answer: ModelMap | Failure) -> dict[str, Any] | Failure:
    """A map as JSON values."""
    if isinstance(answer, Failure):
        return answer
    arrays = {"xy": answer.xy.tolist(), "near": answer.near.tolist(), "lost": answer.lost.tolist()}
    return {**answer._asdict(), **arrays}
