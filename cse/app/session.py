"""What a result may touch: the chosen corpus, the chosen models, and random pairs of that corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cse.app.corpus.corpora import DEMO_KEY, ChosenCorpus
from cse.app.corpus.own import BLOCK
from cse.app.models.models import Column, Failure, before, fingerprint_of
from cse.app.state import chosen_corpus, reference_corpus
from cse.app.validation import one_of
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.app.state import AppState
    from cse.encoder.encoder import Encoder

T = TypeVar("T")


@dataclass
class Session:
    """One request's view of the app. It notes which models answered, which did not and why, and what to say besides.

    `columns` are the models that are asked; `reference` is the corpus of the random pairs, which is the chosen one
    unless that has too few different texts.
    """

    state: AppState
    corpus: ChosenCorpus
    reference: ChosenCorpus
    columns: tuple[Column, ...]
    key: str = ""
    report: Report = silent
    models: dict[str, str] = field(default_factory=dict)  # fingerprints of those that answered
    failed: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)  # those of the failed that still encode the corpus
    notes: list[str] = field(default_factory=list)

    def each(self, function: Callable[[Column, Encoder], T], columns: Sequence[Column] | None = None) -> dict[str, T]:
        """Return the function's result for each model by name; models for which it raises an error are noted."""
        return self.each_text((), lambda column, encoder, _: function(column, encoder), columns=columns)

    def each_text(
        self,
        texts: Sequence[str],
        function: Callable[[Column, Encoder, np.ndarray], T],
        prompt: Callable[[Column, Encoder], str | None] = lambda column, encoder: None,
        columns: Sequence[Column] | None = None,
    ) -> dict[str, T]:
        """As `each`, with the (N, d) float32 vectors of N texts."""

        def answer(column: Column, encoder: Encoder, vectors: np.ndarray) -> T:
            value = function(column, encoder, vectors)
            self.models[column.name] = fingerprint_of(encoder)
            return value

        asked = self.columns if columns is None else columns
        values: dict[str, T] = {}
        for name, value in self.state.models.apply_to(texts, answer, asked, self.report, prompt).items():
            if isinstance(value, Failure):
                self.failed[name] = value.reason
                self.waiting += [name] * value.waits
                self.models.pop(name, None)
            else:
                values[name] = value
        return values

    def encoded(
        self, texts: Sequence[str], columns: Sequence[Column] | None = None, *, documents: bool = False
    ) -> dict[str, np.ndarray]:
        """Return each model's (N, d) vectors of N >= 1 texts, or `documents`; other requests go between blocks."""

        def encode(block: Sequence[str], column: Column, encoder: Encoder) -> np.ndarray:
            return encoder.encode_document(block) if documents else encoder.encode(block)

        vectors: dict[str, np.ndarray] = {}
        for column in self.columns if columns is None else columns:
            blocks: list[np.ndarray] = []
            for first in range(0, len(texts), BLOCK):
                if column.name not in self.failed:
                    blocks += self.each(partial(encode, texts[first : first + BLOCK]), [column]).values()
            if column.name not in self.failed:
                vectors[column.name] = np.concatenate(blocks)
        return vectors

    @staticmethod
    def name_of(corpus: ChosenCorpus) -> str:
        """Return the name of a corpus in a sentence."""
        return "the demo corpus" if corpus.key == DEMO_KEY else corpus.label

    @property
    def added(self) -> tuple[str, ...]:
        """The names by which the visitor added the models that answered."""
        return tuple(column.added for column in self.columns if column.added and column.name in self.models)


def open_session(
    state: AppState, corpus: Any = DEMO_KEY, key: Any = "", models: Sequence[str] | None = None, report: Report = silent
) -> Session:
    """Return the session of a request. Raises FieldError for a corpus that is not there.

    `models` are the names of the models to ask, by default all. Models that still encode the visitor's texts are asked
    only if there is no other.
    """
    chosen = chosen_corpus(state, corpus, key)
    columns = chosen.columns or state.models.columns
    columns = chosen.answering(chosen_columns(columns, models) if models else columns)
    return Session(state, chosen, reference_corpus(state, corpus, key), tuple(columns), str(key or ""), report)


def chosen_columns(columns: Sequence[Column], names: Sequence[str]) -> list[Column]:
    """Return the columns of these names in the order of `columns`, each after its own start where that is named."""
    known: dict[str, Column] = {}
    for column in columns:
        start = before(column)
        known |= {model.name: model for model in (start, column) if model is not None}
    for name in names:
        one_of(name, "The models", known)
    return [column for name, column in known.items() if name in names]
