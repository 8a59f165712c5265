"""The numbers that lessons ask the models for, by model; models that fail are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cse.app.drawing.distribution import Placed
from cse.app.models.models import divided
from cse.app.scoreboard.model_strip import descriptions, sts_board
from cse.app.scoreboard.scores import opened_by
from cse.app.sections.all_pairs import all_pairs
from cse.app.sections.changes import perturbed
from cse.app.sections.search import search
from cse.app.sections.similarity import placed
from cse.app.sections.tokens import Reading, tokens
from cse.app.state.app_state import AppState

if TYPE_CHECKING:
    import numpy as np

    from cse.analysis.prefix_analysis import PrefixAttention, Prototype
    from cse.encoder.encoder import Encoder

T = TypeVar("T")
Values = Mapping[str, str]
SIMCSE, PROMPTBERT, DCPCSE, CONPVP = "simcse", "promptbert", "dcpcse", "conpvp"
WORDS = 8  # per list


class Size(NamedTuple):
    """How many numbers a vector has, and how many numbers were trained."""

    dimension: int
    trained: int


class Score(NamedTuple):
    """A mean over the STS tasks, and that of the model before its training, if known."""

    after: float
    before: float | None


def pair(state: AppState, values: Values) -> dict[str, Placed]:
    """Return the cosine of the sentences `a` and `b` among those of random pairs."""
    answers, _ = placed(state, values["a"], values["b"])
    return divided(answers)[0]


def cosines(state: AppState, values: Values) -> dict[str, np.ndarray]:
    """Return the (N, N) cosines of the sentences of a `list`."""
    _, answers = all_pairs(state, values["list"])
    return {name: found.cosines for name, found in divided(answers)[0].items()}


def hits(state: AppState, values: Values) -> dict[str, list[int]]:
    """Return the rows of the corpus that a search finds, best first."""
    found, _ = divided(search(state, values["q"], int(values["k"]), values["corpus"]))
    return {name: [hit.position for hit in each] for name, each in found.items()}


def thresholds(state: AppState, values: Values) -> dict[str, float]:
    """Return the cosine at the percentile `threshold` of random pairs."""
    from cse.analysis.calibration import cosine_at

    place = float(values["threshold"])
    answers = state.models.apply(lambda _, encoder: cosine_at(place, state.demo.random_cosines(encoder)))
    return divided(answers)[0]


def moved(change: str, other: str = "") -> Callable[[AppState, Values], dict[str, tuple[float, ...]]]:
    """Return a function that gets how far a change of the `sentence` moves its vector, and then another change.

    A change is the name of a perturbation, or "variant 1" for the first of the `variants`.
    """

    def take(state: AppState, values: Values) -> dict[str, tuple[float, ...]]:
        rows, _ = perturbed(state, values["sentence"], values.get("variants", ""))
        found = {row.name: row.moved for row in rows}
        wanted = [found[name] for name in (change, other) if name]
        return {name: tuple(each[name] for each in wanted) for name in wanted[0]}

    return take


def readings(state: AppState, values: Values) -> dict[str, Reading]:
    """Return the likeliest words at [MASK] of the `sentence`, of the models that read their vector there."""
    share = float(values.get("share", 1))
    found, _ = divided(tokens(state.models, values["sentence"], int(values.get("k", WORDS)), share))
    return {name: reading for name, reading in found.items() if reading.own}


def sizes(state: AppState, values: Values) -> dict[str, Size]:
    """Return the sizes of the models."""
    found, _ = divided(descriptions(state.models))
    return {name: Size(each["dimension"], each["learned"]) for name, each in found.items()}


def attention_on_prefix(state: AppState, values: Values) -> dict[str, PrefixAttention]:
    """Return the attention on the prefix for the sentence `one`, of the models that have a prefix."""
    from cse.analysis.prefix_analysis import prefix_attention
    from cse.models.loading import on_torch

    return of_those(
        state, lambda encoder: prefix_attention(on_torch(encoder), values["one"]) if encoder.reading.prefix else None
    )


def moved_without_prefix(state: AppState, values: Values) -> dict[str, float]:
    """Return how far the sentence `one` moves without the prefix in every layer, of the models that have one."""
    from cse.analysis.calibration import displacement
    from cse.analysis.prefix_analysis import layer_count, without_prefix
    from cse.models.loading import on_torch
    from cse.vectors import cosines

    def displaced(encoder: Encoder) -> float | None:
        if not encoder.reading.prefix:
            return None
        inside, sentence = on_torch(encoder), [values["one"]]
        bare = without_prefix(inside, sentence, tuple(range(1, layer_count(inside) + 1)))
        return displacement(float(cosines(inside.encode(sentence), bare)[0]), state.demo.random_cosines(encoder))

    return of_those(state, displaced)


def near_prototypes(state: AppState, values: Values) -> dict[str, list[Prototype]]:
    """Return the prototypes of the sentence `one`, nearest first, of the models that have prototypes."""
    from cse.analysis.prefix_analysis import has_prototypes, prototypes

    return of_those(state, lambda encoder: prototypes(encoder, values["one"]) if has_prototypes(encoder) else None)


def of_those(state: AppState, function: Callable[[Encoder], T | None]) -> dict[str, T]:
    """Return the function's result for each model for which it has one."""
    found, _ = divided(state.models.apply(lambda _, encoder: function(encoder)))
    return {name: each for name, each in found.items() if each is not None}


def scores(state: AppState, values: Values) -> dict[str, Score]:
    """Return the shipped STS scores of the page's models, and that of the untrained backbone's means as "mean"."""
    board = sts_board(state)
    names = {column.opened_by: column.name for column in state.models.columns}
    found = {}
    for row in board.rows.values() if board else ():
        name = row.pooling or names.get(opened_by(row))
        if name and row.figures[0]:
            start = row.start[0] if row.start else None
            found[name] = Score(row.figures[0].value, start.value if start else None)
    return found
