"""One aligned map per model of a list of texts, with neighbours, scores and groups."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cse.analysis.maps import place
from cse.app import validation
from cse.app.models.columns import Column
from cse.app.models.models import Failure, divided
from cse.app.models.remembered import fingerprint_of
from cse.app.state.groups import LEAST as FEWEST
from cse.app.state.groups import MOST, Groups, groups_of
from cse.app.state.model_map import ModelMap, fitted, measure
from cse.methods.settings import MAX_SEED
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.encoder.encoder import Encoder


class MapKey(NamedTuple):
    """A map in the cache: its model and that of the first map (`model_key`), a checksum of the texts, and the seed."""

    model: Hashable
    first: Hashable
    texts: str
    seed: int


class Points(NamedTuple):
    """N texts to draw, with a label each if they have labels.

    `rows` (N,) are their rows among the `total` texts of a corpus, `numbers` those that its visitor knows, counted from
    1 (`ChosenCorpus.numbers`), `of_corpus` returns a column's vectors of all of these, `columns` are its models, None
    for the page's. Texts without a corpus are encoded.
    """

    texts: list[str]
    labels: list[str] | None = None
    rows: np.ndarray | None = None
    total: int = 0
    of_corpus: Callable[[Column, Encoder], np.ndarray] | None = None
    columns: Sequence[Column] | None = None
    numbers: Sequence[int] | None = None
    paired: bool = False  # points 2i and 2i + 1 form a pair

    @property
    def digest(self) -> str:
        """A checksum of the texts."""
        return hashlib.sha256("\0".join(self.texts).encode("utf-8", "replace")).hexdigest()

    def vectors(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return a model's (N, d) vectors of the points. Raises ValueError as `of_corpus`."""
        if self.of_corpus is None:
            return encoder.encode(self.texts)
        return self.of_corpus(column, encoder)[self.rows]


def draw_maps(
    state: AppState, points: Points, seed: int, groups: int, report: Report = silent
) -> Iterator[dict[str, ModelMap | Failure]]:
    """Yield the maps done so far by model, each time one is drawn and at the end; `groups` is their number in each."""
    start = validation.whole(seed, "The seed", 0, MAX_SEED)
    number = group_number(groups)
    columns = state.models.columns if points.columns is None else points.columns
    total, digest = 2 * len(columns), points.digest

    def read(column: Column, encoder: Encoder) -> tuple[Hashable, np.ndarray]:
        return model_key(column, fingerprint_of(encoder)), points.vectors(column, encoder)

    done: dict[str, ModelMap | Failure] = {}
    first: tuple[Hashable, ModelMap] | None = None
    for at, column in enumerate(columns):
        name, new = column.name, False
        report(2 * at, total, f"encoding: {name}")
        answer = state.models.apply(read, [column])[name]
        if isinstance(answer, Failure):
            done[name] = answer
        else:
            report(2 * at + 1, total, f"map: {name}")
            model, rows = answer
            key = MapKey(model, first[0] if first else model, digest, start)
            new = state.maps.get(key) is None
            drawn = one_map(state, key, points, rows, first and first[1])
            first = first or (model, drawn)
            done[name] = drawn._replace(groups=group_points(state, (model, digest), points, rows, number))
        if new or column == columns[-1]:
            yield {**done, **fitted(divided(done)[0])}


def one_map(state: AppState, key: MapKey, points: Points, rows: np.ndarray, reference: ModelMap | None) -> ModelMap:
    """Return the map of vectors (N, d), centred and aligned to the `reference`; it is kept under the key."""
    kept = state.maps.get(key)
    if kept is None:
        xy = place(rows, key.seed, None if reference is None else reference.xy)
        kept = measure(rows, xy, None if points.paired else points.labels)
        state.maps.put(key, kept)
    return kept


def group_points(state: AppState, key: Hashable, points: Points, vectors: np.ndarray, count: int) -> Groups:
    """Return `count` groups by vectors (N, d), fewer of few points; kept under the `key` of the model and the texts."""
    found = state.groups.get((key, count))
    if found is None:
        found = groups_of(points.texts, points.labels, vectors, count)
        state.groups.put((key, count), found)
    return found


def group_number(value: int) -> int:
    """Return a number of groups that a client sent, checked."""
    return validation.whole(value, "The number of groups", FEWEST, MOST)


def model_key(column: Column, fingerprint: str) -> Hashable:
    """Return a model's part of a cache key; models of one fingerprint may have different tokenizers."""
    return column.opened_by, fingerprint
