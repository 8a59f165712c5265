"""The models of the app as columns, each opened on first use and kept; one that fails says why."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import cse
from cse.app.models.recent import Recent
from cse.app.models.remembered import MOST_TEXTS, Reader
from cse.app.models.turns import Asked, Turns
from cse.app.models.visitors import Added, gone
from cse.models.names import canonical_name, resolve
from cse.storage import hub
from cse.training.progress import Report, silent

if TYPE_CHECKING:
    import numpy as np

    from cse.encoding.encoder import Encoder

T = TypeVar("T")

log = logging.getLogger(__name__)
MOST_OPEN = 8  # models that visitors added, kept open by the server
PATH = re.compile(r"(?<![\w:/.])(?:/[^\s/'\"`,;:()]+)+/([^\s/'\"`,;:()]+)")


@dataclass(frozen=True)
class Column:
    """A model on the page: its heading, and what `cse.load` opens it by; what a visitor `added` it by, if one did."""

    name: str
    model: str
    pooling: str | None = None
    family: str | None = None
    added: str = ""

    @property
    def opened_by(self) -> tuple[str, str | None, str | None]:
        """Name, pooling and family."""
        return self.model, self.pooling, self.family


@dataclass(frozen=True)
class Failure:
    """What a column shows in place of a result."""

    reason: str


class Models:
    """The page's columns and the encoders opened so far; those who ask one take turns at it.

    A visitor may have `added` columns of his own, whose encoders go where newer ones need their place.
    """

    def __init__(
        self, models: Sequence[str], family: str | None = None, pooling: str | None = None, *, fetch: bool = False
    ) -> None:
        """A column per model of `models`; `family` and `pooling` as in `opened_by`. Nothing is opened yet.

        `fetch` lets visitors' models be downloaded from the hub.
        """
        self.own, self.added, self._fetch = columns(models, family, pooling), Added(), fetch
        self._encoders: dict[tuple[str, str | None, str | None], Encoder] = {}
        self._visiting: Recent[Encoder] = Recent(MOST_OPEN)
        self._texts: Recent[np.ndarray] = Recent(MOST_TEXTS)
        self._turns: WeakValueDictionary[tuple[str, str | None, str | None], Turns] = WeakValueDictionary()
        self._turns_lock = Lock()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The page's columns, and those that the visitor who asks has added."""
        return (*self.own, *self.added.columns())

    def admitting(self) -> AbstractContextManager[None]:
        """Within this, a visitor's model is looked for: in the hub's cache alone where nothing may be fetched."""
        return nullcontext() if self._fetch else hub.cache_alone()

    def encoder(self, column: Column) -> Encoder:
        """The column's encoder. Raises what `cse.load` raises; the next call tries again."""
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
        """An encoder that is asked for what no one has asked it lately alone."""
        return Reader(encoder, self._texts)

    def apply(
        self,
        function: Callable[[Column, Encoder], T],
        columns: Sequence[Column] | None = None,
        report: Report = silent,
    ) -> dict[str, T | Failure]:
        """The function's result for each of the `columns`, by the column's name; None stands for the page's own.

        While it runs, the column's encoder is its own. `report` gets (columns done, columns in all, name of the next).
        """
        return self._answers(lambda column, encoder, *_: function(column, encoder), (), columns, report)

    def apply_to(
        self,
        texts: Sequence[str],
        function: Callable[[Column, Encoder, np.ndarray], T],
        columns: Sequence[Column] | None = None,
        report: Report = silent,
    ) -> dict[str, T | Failure]:
        """As `apply`, with the (N, d) float32 vectors of N texts, which are encoded with those of others who wait."""
        return self._answers(
            lambda column, encoder, turns, asked: function(column, encoder, turns.vectors(self.reader(encoder), asked)),
            texts, columns, report,
        )  # fmt: skip

    def _answers(
        self,
        function: Callable[[Column, Encoder, Turns, Asked], T],
        texts: Sequence[str],
        columns: Sequence[Column] | None,
        report: Report,
    ) -> dict[str, T | Failure]:
        chosen = self.columns if columns is None else columns
        results: dict[str, T | Failure] = {}
        for done, column in enumerate(chosen):
            if gone():
                raise ValueError("The client has left.")  # whose place in its lane is another's now
            report(done, len(chosen), column.name)
            try:
                turns = self._turns_at(column)
                with turns.turn(texts) as asked:
                    results[column.name] = function(column, self.encoder(column), turns, asked)
            except Exception as error:  # whatever a foreign model provokes concerns its own column alone
                if not isinstance(error, (ValueError, OSError)):
                    log.exception("%s failed", column.name)
                results[column.name] = Failure(told(error, column.model, column.name))
        return results

    def _turns_at(self, column: Column) -> Turns:
        """The turns at a column's encoder, which are forgotten when nobody holds them."""
        with self._turns_lock:
            return self._turns.setdefault(column.opened_by, Turns())


def told(error: BaseException, model: str = "", name: str = "") -> str:
    """An error in one line, in which a model's place is its `name`, and of any other path the last part is left.

    A path with blanks is known where it is the model's, a folder of it, or a file that the error is about.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    if Path(model).is_absolute():
        text = text.replace(model, name).replace(f"{Path(model).parent}/", "")
    for each in (error, error.__cause__, error.__context__):
        file = getattr(each, "filename", None)
        text = text.replace(str(file), Path(str(file)).name) if file else text
    return PATH.sub(r"\1", text)


def columns(models: Sequence[str], family: str | None = None, pooling: str | None = None) -> tuple[Column, ...]:
    """A column per model, repetitions left out; of two folders with one name the second is headed by its path."""
    found: dict[str, Column] = {}
    for reading in dict.fromkeys(opened_by(model, family, pooling) for model in models):
        name = free_name((Path(reading[0]).name, reading[0]), found)
        found[name] = Column(name, *reading)
    return tuple(found.values())


def opened_by(model: str, family: str | None = None, pooling: str | None = None) -> tuple[str, str | None, str | None]:
    """Name, pooling and family that `cse.load` opens a model by; of a wrong name, which its column reports, itself.

    `family` is that of a published checkpoint, `pooling` how a plain backbone is read.
    """
    try:
        reference = resolve(model, pooling, family, lenient=True)
    except ValueError:
        return canonical_name(model), None, family
    return reference.name, reference.pooling, reference.family


def free_name(candidates: Iterable[str], taken: Iterable[str]) -> str:
    """The first candidate that is not empty and not taken; the last one has to be neither."""
    known = {"", *taken}
    return next(name for name in candidates if name not in known)


def divided(results: Mapping[str, T | Failure]) -> tuple[dict[str, T], dict[str, Failure]]:
    """The results there are, and the failures."""
    found = {name: value for name, value in results.items() if not isinstance(value, Failure)}
    return found, {name: value for name, value in results.items() if isinstance(value, Failure)}


def plain(results: Mapping[str, Any], fields: Callable[[Any], Any] = lambda value: value) -> dict[str, Any]:
    """Results as JSON values, which `fields` makes of each: a failure becomes `{"error": reason}`."""
    return {
        name: {"error": value.reason} if isinstance(value, Failure) else fields(value)
        for name, value in results.items()
    }
