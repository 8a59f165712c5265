"""The corpus that a visitor has chosen: its texts, labels and vectors, and an exact search among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cse.analysis.maps import evenly
from cse.app import validation
from cse.app.models.models import Column, fingerprint_of, number_of
from cse.app.state.corpora import DEMO_KEY, GONE, OWN_KEY, SPREAD, Corpus, OwnCorpus
from cse.corpus.corpus import fields_of
from cse.errors import command_line

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from cse.app.state.app_state import AppState
    from cse.encoder.encoder import Encoder
    from index.stores import Hit

FIELD = "The corpus"
EXACT = "Flat"
NONE_YET = "Your texts"
MAX_CONDITION_STEPS = 50_000_000  # of SQLite's machine: a second or two, so that no visitor keeps a core busy
EXAMPLES, MAX_EXAMPLE_CHARACTERS = 3, 120
LEAST_PAIRED = 20  # different texts; fewer have too few random pairs


class Nearest(NamedTuple):
    """The sentences nearest to a query, best first, the type of the index and its recall@10 if that is known."""

    hits: list[Hit]
    factory: str = EXACT
    recall: float | None = 1.0


class ChosenCorpus:
    """Texts with a label each if they have labels, and each column's vectors of them.

    `columns` are those that can search it, None for the page's; `note` is shown above results. `rows` are the texts'
    rows in the visitor's file if they are not 1, 2, 3, …. `table` has the further columns of the texts, if any.
    """

    key: str
    number = 0  # tells one corpus under a key from another
    label: str
    texts: Sequence[str]  # in the order of the vectors
    labels: Sequence[str] | None = None
    columns: Sequence[Column] | None = None
    note: str = ""
    rows: Sequence[int] | None = None
    table: pa.Table | None = None

    def fields(self, position: int) -> dict[str, Any]:
        """Return the further cells of a text by column; the label is one of them where the texts have no table."""
        if self.table is not None:
            return fields_of(self.table, position)
        return {"label": self.labels[position]} if self.labels and self.labels[position] else {}

    @cached_property
    def cells(self) -> Mapping[str, Sequence[Any]]:
        """The further columns of the texts by their names."""
        return {} if self.table is None else {name: self.table[name].to_pylist() for name in self.table.schema.names}

    def further(self, positions: Sequence[int], own: Sequence[str]) -> pd.DataFrame:
        """Return the further cells of texts as columns; one that has a name of the `own` columns ends with a blank."""
        import pandas as pd

        cells = self.cells or ({"label": self.labels} if self.labels else {})
        columns = {name: [values[position] for position in positions] for name, values in cells.items()}
        named = {f"{name} " if name in own else name: values for name, values in columns.items()}
        return pd.DataFrame(named, dtype=object)  # else a column of whole numbers with a gap becomes 1.0, 2.0

    @property
    def numbers(self) -> Sequence[int]:
        """The number of each text's row, counted from 1, in the visitor's file or else in the corpus."""
        return self.rows or range(1, len(self.texts) + 1)

    def examples(self) -> list[str]:
        """Return a few short, different texts that are spread over the corpus."""
        spread = (" ".join(self.texts[row].split()) for row in evenly(len(self.texts), 8 * EXAMPLES))
        short = list(dict.fromkeys(text for text in spread if 0 < len(text) <= MAX_EXAMPLE_CHARACTERS))
        return short[:: max(1, len(short) // EXAMPLES)][:EXAMPLES]

    def vectors(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return a column's (N, d) float32 vectors of the texts. Raises ValueError while there are none."""
        raise NotImplementedError

    def ready(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns whose vectors are there, or are computed at once."""
        return list(columns)

    def answering(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns without those that still encode the texts, unless all do."""
        return list(columns)

    def rows_where(self, condition: str) -> np.ndarray:
        """Return the positions (n,) of the texts that an SQL condition on the columns picks. Raises ValueError."""
        import pyarrow as pa

        from cse.corpus.where import rows_where

        table = self.table
        if table is None:
            table = pa.table({"label": list(self.labels or [""] * len(self.texts))})
        if "text" not in table.schema.names:
            table = table.append_column("text", pa.array(list(self.texts)))
        return rows_where(table, condition, MAX_CONDITION_STEPS)

    def nearest(self, column: Column, encoder: Encoder, vector: np.ndarray, count: int, condition: str = "") -> Nearest:
        """Return the `count` texts with the highest cosines to a vector (d,), among those that a `condition` picks.

        Raises ValueError as `vectors` and `rows_where`.
        """
        from index.stores import Hit

        rows = self.vectors(column, encoder)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * np.linalg.norm(vector)  # without a copy of the rows
        scores = np.divide(rows @ vector, lengths, out=np.zeros(len(rows), np.float32), where=lengths > 0)
        best = np.argsort(-scores, kind="stable")
        if condition:
            best = best[np.isin(best, self.rows_where(condition))]
        numbers = self.numbers
        return Nearest([
            Hit(rank, float(scores[row]), numbers[row], self.texts[row], self.fields(row), row)
            for rank, row in enumerate(best[:count].tolist(), start=1)
        ])  # fmt: skip

    def query_prompt(self, column: Column, encoder: Encoder) -> str | None:
        """Return the prompt of a query among a column's vectors, as an index records it."""
        return encoder.query_prompt

    def random_cosines(self, state: AppState, column: Column, encoder: Encoder) -> np.ndarray:
        """Return (P,) ascending cosines of all pairs of different texts that are spread over the corpus."""
        from cse.analysis.calibration import random_cosines

        key = self.key, self.number, number_of(encoder)
        cosines = state.references.get(key)
        if cosines is None:
            first = list({text: row for row, text in reversed(list(enumerate(self.texts)))}.values())[::-1]
            rows = [first[place] for place in evenly(len(first), SPREAD)]
            cosines = random_cosines(self.some_vectors(rows, column, encoder))
            state.references.put(key, cosines)
        return cosines

    def some_vectors(self, rows: Sequence[int], column: Column, encoder: Encoder) -> np.ndarray:
        """Return the vectors (n, d) of a few rows, also before a column has those of all."""
        return encoder.encode([self.texts[row].strip() for row in rows])

    def shortfall(self, column: Column, encoder: Encoder, found: int, count: int) -> str:
        """Return why a search for `count` sentences found fewer, and the cure; empty if it did not."""
        return ""


class DemoCorpus(ChosenCorpus):
    """The bundled sentences, labelled by topic."""

    def __init__(self, state: AppState) -> None:
        self._demo, self.key = state.demo, DEMO_KEY
        self.texts, self.labels = state.demo.sentences, state.demo.topics
        self.label = f"Demo ({len(self.texts):,})"

    def vectors(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return the shipped vectors, or encode the sentences at the first call."""
        return self._demo.vectors(encoder)

    def random_cosines(self, state: AppState, column: Column, encoder: Encoder) -> np.ndarray:
        """Return those of the bundled sentences."""
        return self._demo.random_cosines(encoder)


class VisitorCorpus(ChosenCorpus):
    """A visitor's own texts."""

    def __init__(self, state: AppState, own: OwnCorpus) -> None:
        self._kept, self._own = state.own_corpora, own
        self.key, self.number, self.label = OWN_KEY, own.number, own.label
        self.texts, self.labels, self.rows, self.table = own.texts, own.labels, own.rows, own.table

    def ready(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns that have encoded all texts."""
        known = self._own.encodings
        return [column for column in columns if column in known and known[column].complete]

    def answering(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns that have encoded all texts, have failed, or have not been asked to encode them."""
        known = self._own.encodings
        return [column for column in columns if column not in known or known[column].ended] or list(columns)

    def some_vectors(self, rows: Sequence[int], column: Column, encoder: Encoder) -> np.ndarray:
        """Return those that are there, unless a prompt for documents sets them apart, or encode the texts."""
        if self.ready([column]) and encoder.document_prompt is None:
            return self.vectors(column, encoder)[rows]
        return super().some_vectors(rows, column, encoder)

    def vectors(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return the vectors; a column that has not begun begins now."""
        encoding = self._own.encodings.get(column)
        if encoding is None or (encoding.complete and encoding.fingerprint != fingerprint_of(encoder)):
            self._kept.encode(self._own, [column], stale=encoding)
            encoding = self._own.encodings[column]
        return encoding.vectors()


class IndexedCorpus(ChosenCorpus):
    """The sentences of index folders or Milvus collections that the app was started with."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.key, self.label, self.columns, self.note = corpus.key, corpus.label, corpus.columns, corpus.note

    def rows_where(self, condition: str) -> Any:
        """Return what the index picks by a condition in its own language. Raises ValueError."""
        return self._corpus.opened().where(condition)

    @cached_property
    def texts(self) -> Sequence[str]:  # type: ignore[override]
        """The sentences, of many an even sample, read at the first use."""
        return self._corpus.texts()[1]

    def ready(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns that have an index."""
        return [column for column in columns if column in self._corpus.columns]

    def vectors(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return the unit vectors of the column's index."""
        return self._corpus.vectors(column, encoder)

    def query_prompt(self, column: Column, encoder: Encoder) -> str | None:
        """Return the prompt that the column's index records."""
        return self._corpus.index(column, encoder).manifest.query_prompt

    def nearest(self, column: Column, encoder: Encoder, vector: np.ndarray, count: int, condition: str = "") -> Nearest:
        """Return the hits of the column's index, which may be approximate."""
        index = self._corpus.index(column, encoder)
        among = index.where(condition) if condition else None
        return Nearest(index.hits(vector, count, quiet=True, among=among), index.manifest.factory, index.recall_at_10)

    def shortfall(self, column: Column, encoder: Encoder, found: int, count: int) -> str:
        """Return the index's own reason, with the command that has the cure."""
        index = self._corpus.index(column, encoder)
        note = index.shortfall(found, min(count, len(index)))
        return note.replace("`probe`", f"--probe of {command_line('search')}")


def chosen_corpus(state: AppState, corpus: str, key: str | None) -> ChosenCorpus:
    """Return the corpus of a name; `key` is the visitor's, for the visitor's own texts.

    Raises FieldError for an unknown name, and if there are no texts under the key.
    """
    if corpus == DEMO_KEY:
        return DemoCorpus(state)
    if corpus != OWN_KEY:
        return IndexedCorpus(state.corpora[validation.one_of(corpus, FIELD, [DEMO_KEY, OWN_KEY, *state.corpora])])
    own = state.own_corpora.corpus(key)
    if own is None:
        raise validation.FieldError(FIELD, GONE)
    return VisitorCorpus(state, own)


def reference_corpus(state: AppState, corpus: str, key: str | None) -> ChosenCorpus:
    """Return the corpus whose random pairs a cosine is compared with: the chosen one, the demo if that has too few."""
    try:
        chosen = chosen_corpus(state, corpus, key)
        return chosen if len(set(chosen.texts)) >= LEAST_PAIRED else DemoCorpus(state)
    except ValueError:  # its texts are gone
        return DemoCorpus(state)


def choices_of(state: AppState, key: str = "") -> list[tuple[str, str]]:
    """Return the label and key of each corpus; the visitor's own is among them even before it exists."""
    own = state.own_corpora.corpus(key)
    indexed = [(each.label, each.key) for each in state.corpora.values()]
    return [(DemoCorpus(state).label, DEMO_KEY), *indexed, (own.label if own else NONE_YET, OWN_KEY)]
