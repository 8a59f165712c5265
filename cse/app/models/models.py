"""The columns of the app. Each model is opened on first use and kept; a failure is shown in its column alone."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import cse
from cse.app.models.columns import Added, Column, columns
from cse.app.models.recent import Recent
from cse.app.models.remembered import MOST_BYTES, MOST_TEXTS, Reader
from cse.app.models.turns import Turn, Turns
from cse.app.models.visitors import ClientLeft, client_left
from cse.files import hub
from cse.training.records import Report, silent

if TYPE_CHECKING:
    import numpy as np

    from cse.encoder.encoder import Encoder

T = TypeVar("T")

log = logging.getLogger(__name__)
MOST_OPEN, MOST_OPEN_BYTES = 8, 6 * 2**30  # models that visitors added, kept open by the server
PARAMETER_BYTES = 12  # the weights as float32, and the engines' copies of them
PATH = re.compile(r"(?<![\w:/.])(?:/[^\s/'\"`,;:()]+)+/([^\s/'\"`,;:()]+)")


@dataclass(frozen=True)
class Failure:
    """The reason that a column shows in place of a result."""

    reason: str


class Models:
    """The page's columns and the encoders opened so far; requests use an encoder one at a time.

    Visitors may have `added` columns of their own; only the encoders used last of these stay open.
    """

    def __init__(
        self, models: Sequence[str], family: str | None = None, pooling: str | None = None, *, fetch: bool = False
    ) -> None:
        """Make a column per model; `family` and `pooling` as in `opened_by`. Nothing is opened yet.

        With `fetch`, visitors' models may be downloaded from the hub.
        """
        self.own, self.added, self._fetch = columns(models, family, pooling), Added(), fetch
        self._encoders: dict[tuple[str, str | None, str | None], Encoder] = {}
        self._visiting: Recent[Encoder] = Recent(
            MOST_OPEN, most_bytes=MOST_OPEN_BYTES, size=lambda encoder: PARAMETER_BYTES * encoder.parameter_count
        )
        self._texts: Recent[np.ndarray] = Recent(MOST_TEXTS, most_bytes=MOST_BYTES)
        self._turns: WeakValueDictionary[tuple[str, str | None, str | None], Turns] = WeakValueDictionary()
        self._turns_lock = Lock()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The page's columns, and those that the visitor of the current request has added."""
        return (*self.own, *self.added.columns())

    def admitting(self) -> AbstractContextManager[None]:
        """Return a context for opening a visitor's model: it reads the hub's cache alone if nothing may be fetched."""
        return nullcontext() if self._fetch else hub.cache_alone()

    def encoder(self, column: Column) -> Encoder:
        """Return the column's encoder. Raises what `cse.load` raises; the next call tries again."""
        key = column.opened_by
        if not column.added:
            if key not in self._encoders:
                self._encoders[key] = cse.load(column.model, column.pooling, family=column.family)
            return self._encoders[key]
        found = self._visiting.get(key)
        if found is None:
            with self.admitting():
                found = cse.load(column.model, column.pooling, family=column.family)
            self._visiting.put(key, found)
        return found

    def reader(self, encoder: Encoder) -> Reader:
        """Return an encoder that encodes only texts whose vectors are not cached."""
        return Reader(encoder, self._texts)

    def apply(
        self,
        function: Callable[[Column, Encoder], T],
        columns: Sequence[Column] | None = None,
        report: Report = silent,
    ) -> dict[str, T | Failure]:
        """Return the function's result for each of the `columns`, by name; None stands for the page's columns.

        Each call has exclusive use of its encoder. `report` gets (columns done, columns in all, name of the next).
        """
        return self._answers(lambda column, encoder, *_: function(column, encoder), (), columns, report)

    def apply_to(
        self,
        texts: Sequence[str],
        function: Callable[[Column, Encoder, np.ndarray], T],
        columns: Sequence[Column] | None = None,
        report: Report = silent,
        prompt: Callable[[Column, Encoder], str | None] = lambda column, encoder: None,
    ) -> dict[str, T | Failure]:
        """As `apply`, with the (N, d) float32 vectors of N texts, batched with the texts of waiting requests.

        Texts with a `prompt`, which is recorded as `Encoder.query_prompt` is, are encoded by themselves.
        """

        def answer(column: Column, encoder: Encoder, turns: Turns, turn: Turn) -> T:
            reader, before = self.reader(encoder), prompt(column, encoder)
            vectors = turns.vectors(reader, turn) if before is None else reader.encode(texts, prompt=before)
            return function(column, encoder, vectors)

        return self._answers(answer, texts, columns, report)

    def _answers(
        self,
        function: Callable[[Column, Encoder, Turns, Turn], T],
        texts: Sequence[str],
        columns: Sequence[Column] | None,
        report: Report,
    ) -> dict[str, T | Failure]:
        chosen = self.columns if columns is None else columns
        results: dict[str, T | Failure] = {}
        for done, column in enumerate(chosen):
            if client_left():
                raise ClientLeft
            report(done, len(chosen), column.name)
            try:
                turns = self._turns_at(column)
                with turns.turn(texts) as turn:
                    results[column.name] = function(column, self.encoder(column), turns, turn)
            except Exception as error:  # any error of a model concerns its own column alone
                if not isinstance(error, (ValueError, OSError)):
                    log.exception("%s failed", column.name)
                results[column.name] = Failure(error_line(error, column.model, column.name))
        return results

    def _turns_at(self, column: Column) -> Turns:
        """Return the turns at a column's encoder, which are dropped when no request holds them."""
        with self._turns_lock:
            return self._turns.setdefault(column.opened_by, Turns())


def error_line(error: BaseException, model: str = "", name: str = "") -> str:
    """Return an error in one line: the model's path becomes its `name`, and other paths their last part.

    A path with blanks is recognised if it is the model's, its parent folder's, or the file name of the error.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    if Path(model).is_absolute():
        text = text.replace(model, name).replace(f"{Path(model).parent}/", "")
    for each in (error, error.__cause__, error.__context__):
        file = getattr(each, "filename", None)
        text = text.replace(str(file), Path(str(file)).name) if file else text
    return PATH.sub(r"\1", text)


def divided(results: Mapping[str, T | Failure]) -> tuple[dict[str, T], dict[str, Failure]]:
    """Split answers into results and failures."""
    found = {name: value for name, value in results.items() if not isinstance(value, Failure)}
    return found, {name: value for name, value in results.items() if isinstance(value, Failure)}


def plain(results: Mapping[str, Any], fields: Callable[[Any], Any] = lambda value: value) -> dict[str, Any]:
    """Return results as JSON values made by `fields`; a failure becomes `{"error": reason}`."""
    return {
        name: {"error": value.reason} if isinstance(value, Failure) else fields(value)
        for name, value in results.items()
    }
