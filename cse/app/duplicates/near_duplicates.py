"""Near-duplicates of a corpus in one model: links that are searched once, groups at each place of a slider, tables."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from cse.analysis.duplicates import (
    GROUP_COLUMNS,
    Member,
    NearDuplicates,
    Place,
    default_percentile,
    group_rows,
    groups_of,
    loosest_percentile,
    members,
    numbered,
    thresholds,
)
from cse.app import validation
from cse.app.corpus.chosen import FIELD, ChosenCorpus
from cse.app.models.columns import Column
from cse.app.models.models import Failure
from cse.app.models.naming import title
from cse.app.models.visitors import ClientLeft, client_left
from cse.corpus.output import csv_text
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.encoder.encoder import Encoder

T = TypeVar("T")

LEAST, MOST, STEP, DEFAULT = 3.0, 7.0, 0.1, 5.0  # nines of the percentile: 5 is 99.999
LEAST_TEXTS, SEED = 2, 42
PER_PAGE = 10  # groups
KEPT = {"first": "The first", "longest": "The longest", "central": "The most central"}


class Page(NamedTuple):
    """Groups number `first` and following at a place of the slider, and the number of all."""

    place: Place
    first: int
    groups: list[list[Member]]
    total: int


def nines_of(percentile: float) -> float:
    """Return the number of nines of a percentile: 5 for 99.999."""
    return float(2 - np.log10(100 - percentile))


def percentile_of(nines: float) -> float:
    """Return the percentile with a number of nines."""
    return 100 - 10 ** (2 - nines)


def advised_place(found: NearDuplicates) -> float:
    """Return the lowest place of the slider that is as strict as advised."""
    return next((place.nines for place in found.places if place.nines > found.advised - STEP / 1000), MOST)


def column_of(state: AppState, model: str) -> Column:
    """Return the column of a name. Raises FieldError for another one."""
    columns = {column.name: column for column in state.models.columns}
    return columns[validation.one_of(model, "The model", columns)]


def vectors_of(state: AppState, chosen: ChosenCorpus, column: Column) -> np.ndarray:
    """Return a column's (N, d) vectors of a corpus. Raises FieldError with the reason if there are none."""
    return answer_of(state, column, chosen.vectors)


def answer_of(state: AppState, column: Column, function: Callable[[Column, Encoder], T]) -> T:
    """Return the function's result for one column. Raises FieldError with the reason if the model fails."""
    found = state.models.apply(function, [column])[column.name]
    if isinstance(found, Failure):
        name = "" if found.reason.startswith(f"{title(column.name)} ") else f"{title(column.name)}: "
        raise validation.FieldError("The model", f"{name}{found.reason}")
    return found


def kept(state: AppState, chosen: ChosenCorpus, column: Column) -> NearDuplicates | None:
    """Return the near-duplicates if they were found before."""
    return state.near.get(_key(chosen, column))


def find(state: AppState, chosen: ChosenCorpus, column: Column, report: Report = silent) -> NearDuplicates:
    """Return the near-duplicates of a corpus in a model, searched or kept.

    Raises FieldError for a single text and for a model without vectors.
    """
    found = kept(state, chosen, column)
    if found is None:
        if len(chosen.texts) < LEAST_TEXTS:
            raise validation.FieldError(FIELD, "The corpus has 1 text; near-duplicates need at least 2.")
        found = searched(chosen.texts, vectors_of(state, chosen, column), report)
        state.near.put(_key(chosen, column), found)
    return found


def searched(texts: Sequence[str], vectors: np.ndarray, report: Report = silent) -> NearDuplicates:
    """Return the near-duplicates of texts by their vectors (N, d)."""
    from cse.analysis.duplicates import strongest_links
    from index import BuildSettings, VectorIndex

    distinct, rows = numbered(texts)
    unique = vectors[np.unique(rows, return_index=True)[1]]
    loosest = round(np.ceil(nines_of(loosest_percentile(len(distinct))) / STEP - 1e-6) * STEP, 1)
    nines = [float(each) for each in np.arange(loosest, MOST + STEP / 2, STEP).round(1)]
    cosines = thresholds(unique, [percentile_of(each) for each in nines], SEED)

    def done(count: int, total: int) -> None:
        if client_left():
            raise ClientLeft
        report(count, total, "comparing all pairs of texts")

    with tempfile.TemporaryDirectory(prefix="cse-app-", ignore_cleanup_errors=True) as folder:
        index = VectorIndex.build([(distinct, unique)], Path(folder) / "index", settings=BuildSettings())
        forest = strongest_links(unique, index.search, min(cosines), done).copied(rows)
    places = (
        Place(each, percentile_of(each), least, *forest.level(least))
        for each, least in zip(nines, cosines, strict=True)
    )
    return NearDuplicates(forest, tuple(places), nines_of(default_percentile(len(distinct))))


def groups_of_all(
    state: AppState,
    chosen: ChosenCorpus,
    column: Column,
    nines: float,
    keep: str,
    page: int | None = None,
    size: int = PER_PAGE,
) -> Page:
    """Return the groups at a place of the slider, or `size` of them on a page, counted from 1 and at most the last.

    Raises FieldError for wrong values, and if the near-duplicates were not found yet.
    """
    chosen_row = validation.one_of(keep, "The text to keep", KEPT)
    found = kept(state, chosen, column)
    if found is None:
        raise validation.FieldError("The model", "Near-duplicates were not searched yet; press Find groups.")
    place = found.at(validation.between(nines, "The strictness", LEAST, MOST))
    groups = groups_of(found.forest.groups(place.cosine))
    first = 0 if page is None else size * min(page - 1, max(0, len(groups) - 1) // size)
    shown = groups if page is None else groups[first : first + size]
    vectors, texts = vectors_of(state, chosen, column), chosen.texts
    listed = [
        members(rows, vectors[rows], np.array([len(texts[row]) for row in rows]), place.cosine, chosen_row)
        for rows in shown
    ]
    return Page(place, first, listed, len(groups))


def _key(chosen: ChosenCorpus, column: Column) -> tuple[str, ...]:
    from cse.analysis.votes import texts_digest

    return (texts_digest(chosen.texts), *map(str, column.opened_by))


def kept_csv(chosen: ChosenCorpus, groups: Sequence[Sequence[Member]]) -> str:
    """Return the texts that are kept as CSV: their `numbers` as rows, the texts, and labels if there are some."""
    dropped = {member.row for group in groups for member in group if not member.kept}
    texts, labels, numbers = chosen.texts, chosen.labels, chosen.numbers
    columns = ("row", "text") if labels is None else ("row", "text", "label")
    return csv_text(
        columns,
        (
            (numbers[row], text, *(() if labels is None else (labels[row],)))
            for row, text in enumerate(texts)
            if row not in dropped
        ),
    )


def groups_csv(chosen: ChosenCorpus, groups: Sequence[Sequence[Member]]) -> str:
    """Return all groups as CSV, with the columns of the command's table."""
    return csv_text(GROUP_COLUMNS, group_rows(groups, chosen.texts, chosen.numbers))


TABLES = {"Deduplicated CSV": ("unique.csv", kept_csv), "Groups CSV": ("groups.csv", groups_csv)}
