"""The models of the app, each a column of the page, opened on first use; a failure is shown in its column alone."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

import cse
from cse.app.models.naming import BEFORE, title
from cse.app.models.recent import MAX_VISITORS, Bounds, Recent, visitor
from cse.app.server.gradio_adapter import client_left
from cse.files import hub
from cse.models.names import canonical_name, location, resolve
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder
    from cse.models.checkpoint import CheckpointConfig

T = TypeVar("T")
Opening = tuple[str, str | None, str | None, bool]  # the arguments of `cse.load`: name, pooling, family and start

log = logging.getLogger(__name__)
MAX_COLUMNS = 4  # added by one visitor
UNNAMED = "*"  # a model that only its visitor's page has
MAX_SESSIONS = 100  # of a client, whose columns are remembered
MAX_OPEN = Bounds(8, 6 * 2**30)  # models that visitors added, kept open by the server
PARAMETER_BYTES = 12  # the weights as float32, and the engines' copies of them
MAX_TEXTS = Bounds(8192, 32 * 2**20)  # cached vectors of all models; those of 384 numbers have 12 MB
MAX_CACHED = 1000  # characters of a text whose vector is cached
PATH = re.compile(r"(?<![\w:/.])(?:/[^\s/'\"`,;:()]+)+/([^\s/'\"`,;:()]+)")

_fingerprints: WeakKeyDictionary[Encoder, str] = WeakKeyDictionary()
_numbers: WeakKeyDictionary[Encoder, int] = WeakKeyDictionary()
_unused, _marking = count(1), Lock()


@dataclass(frozen=True)
class Column:
    """A model on the page: its heading, the arguments of `cse.load`, and the name by which a visitor `added` it, or
    `UNNAMED` for a model of the visitor's own.

    `start` stands for the model before its first training step.
    """

    name: str
    model: str
    pooling: str | None = None
    family: str | None = None
    start: bool = False
    added: str = ""

    @property
    def opened_by(self) -> Opening:
        """Name, pooling, family and start."""
        return self.model, self.pooling, self.family, self.start


@dataclass(frozen=True)
class Failure:
    """The reason that a column shows in place of a result."""

    reason: str
    waits: bool = False  # there will be a result


class NotYet(ValueError):
    """A model has not encoded a corpus so far."""


class ClientLeft(ValueError):
    """The client of a request has disconnected, so that its turn in the queue is free."""

    def __init__(self) -> None:
        super().__init__("The client has left.")


def columns(models: Sequence[str], family: str | None = None, pooling: str | None = None) -> tuple[Column, ...]:
    """Return a column per model, without duplicates; the second of two folders of one name is headed by its path."""
    known: dict[str, Column] = {}
    for reading in dict.fromkeys(opened_by(model, family, pooling) for model in models):
        name = free_name((Path(reading[0]).name, reading[0]), known)
        known[name] = Column(name, *reading)
    return tuple(known.values())


def opened_by(model: str, family: str | None = None, pooling: str | None = None) -> Opening:
    """Return the arguments that `cse.load` opens a model by; a wrong name is returned as it is."""
    with suppress(ValueError):
        reference = resolve(model, pooling, family, lenient=True)
        return reference.name, reference.pooling, reference.family, False
    return canonical_name(model), None, family, False


def free_name(candidates: Iterable[str], known: Iterable[str]) -> str:
    """Return the first candidate that is neither empty nor known, without commas, which part names in an address.

    There must be one.
    """
    used = {"", *known}
    return next(name for name in (each.replace(",", "") for each in candidates) if name not in used)


def numbered(name: str) -> Iterator[str]:
    """Yield a name, and the name with numbers from 2."""
    yield name
    yield from (f"{name} {number}" for number in count(2))


@lru_cache(256)
def checkpoint_of(model: str) -> tuple[Path, CheckpointConfig] | None:
    """Return the folder of a bundled name or a checkpoint, with its configuration; None for any other model."""
    from cse.models.checkpoint import read_checkpoint_config

    folder = Path(location(model))
    with suppress(ValueError):
        return (folder, read_checkpoint_config(folder)) if folder.is_dir() else None  # no hub is asked
    return None


def before(column: Column) -> Column | None:
    """Return the model of a column as it was before its first training step; None if its folder does not tell."""
    if column.family is not None or column.start or checkpoint_of(column.model) is None:
        return None
    return replace(column, name=f"{column.name}{BEFORE}", start=True)


def fingerprint_of(encoder: Encoder) -> str:
    """Return the fingerprint of an encoder of the app, whose weights never change; it is computed once."""
    with _marking:
        if encoder not in _fingerprints:
            _fingerprints[encoder] = encoder.fingerprint
        return _fingerprints[encoder]


def number_of(encoder: Encoder) -> int:
    """Return a number for cache keys, unique to this encoder object.

    The fingerprint covers the weights and the vocabulary, but not the normalisation of the tokenizer.
    """
    with _marking:
        return _numbers.setdefault(encoder, next(_unused))


class Models:
    """The page's columns and the encoders opened so far; requests use an encoder one at a time."""

    def __init__(
        self, models: Sequence[str], family: str | None = None, pooling: str | None = None, *, fetch: bool = False
    ) -> None:
        self.own, self._fetch = columns(models, family, pooling), fetch
        self._added: Recent[tuple[Column, ...]] = Recent(Bounds(MAX_VISITORS, own=MAX_SESSIONS))
        self._encoders: dict[Opening, Encoder] = {}
        self._visiting: Recent[Encoder] = Recent(
            MAX_OPEN, size=lambda encoder: PARAMETER_BYTES * encoder.parameter_count
        )
        self._texts: Recent[np.ndarray] = Recent(MAX_TEXTS)
        # An encoder is not thread-safe. Its lock is dropped when no request holds it.
        self._locks: WeakValueDictionary[Opening, Any] = WeakValueDictionary()
        self._lock = Lock()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The page's columns, and those that the visitor of the current request has added."""
        return (*self.own, *(self._added.get(visitor()) or ()))

    def add(self, column: Column) -> None:
        """Add a column of the visitor. Raises ValueError outside of a session, and beyond `MAX_COLUMNS`."""
        if visitor() is None:
            raise ValueError("A model is added to a page or to a client's session, and this request has none.")
        with self._lock:  # a visitor may send two requests at once
            added = self._added.get(visitor()) or ()
            if len(added) >= MAX_COLUMNS:
                raise ValueError(f"You have added {MAX_COLUMNS} models; remove yours to add others.")
            self._added.put(visitor(), (*added, column))

    def remove_added(self, column: Column | None = None) -> None:
        """Remove one of the visitor's columns, by default all of them."""
        with self._lock:
            added = self._added.get(visitor()) or ()
            self._added.put(visitor(), tuple(own for own in added if column not in (None, own)))

    def admitting(self) -> AbstractContextManager[None]:
        """Return a context for opening a visitor's model: it reads the hub's cache alone if nothing may be fetched."""
        return nullcontext() if self._fetch else hub.cache_alone()

    def encoder(self, column: Column) -> Encoder:
        """Return the column's encoder. Raises what `cse.load` raises; the next call tries again."""
        key = column.opened_by
        encoder = self._visiting.get(key) if column.added else self._encoders.get(key)
        if encoder is None:
            with self.admitting() if column.added else nullcontext():
                encoder = cse.load(column.model, column.pooling, family=column.family, start=column.start)
            if column.added:
                self._visiting.put(key, encoder)
            else:
                self._encoders[key] = encoder
        return encoder

    def encode(self, encoder: Encoder, texts: Sequence[str], **prompt: Any) -> np.ndarray:
        """Return (N, d) float32, encoding only texts whose vectors are not cached."""
        if not texts:
            return encoder.encode([])
        key = number_of(encoder), *prompt.values()
        cached = {text: self._texts.get((*key, text)) for text in texts}
        vectors = {text: vector for text, vector in cached.items() if vector is not None}
        missing = [text for text in cached if text not in vectors]
        for text, row in zip(missing, encoder.encode(missing, **prompt) if missing else [], strict=True):
            vectors[text] = row.copy()  # a view would keep the whole batch
            if len(text) <= MAX_CACHED:
                self._texts.put((*key, text), vectors[text])
        return np.stack([vectors[text] for text in texts])

    def apply(
        self, function: Callable[[Column, Encoder], T], columns: Sequence[Column] | None = None
    ) -> dict[str, T | Failure]:
        """Return the function's result for each of the `columns`, by name; None stands for the page's columns."""
        return self.apply_to((), lambda column, encoder, _: function(column, encoder), columns)

    def apply_to(
        self,
        texts: Sequence[str],
        function: Callable[[Column, Encoder, np.ndarray], T],
        columns: Sequence[Column] | None = None,
        report: Report = silent,
        prompt: Callable[[Column, Encoder], str | None] = lambda column, encoder: None,
    ) -> dict[str, T | Failure]:
        """As `apply`, with the (N, d) float32 vectors of N texts, after a `prompt` as `Encoder.query_prompt` is one."""
        asked = self.columns if columns is None else columns
        results: dict[str, T | Failure] = {}
        for done, column in enumerate(asked):
            if client_left():
                raise ClientLeft
            report(done, len(asked), f"asking {title(column.name)}")
            try:
                with self._lock:
                    lock = self._locks.setdefault(column.opened_by, RLock())
                with lock:
                    encoder, vectors = self.encoder(column), np.empty(0)
                    if texts:
                        before = prompt(column, encoder)
                        named = {} if before is None else {"prompt": before}
                        vectors = self.encode(encoder, texts, **named)
                    results[column.name] = function(column, encoder, vectors)
            except Exception as error:  # any error of a model concerns its own column alone
                if not isinstance(error, (ValueError, OSError)):
                    log.exception("%s failed", column.name)
                results[column.name] = Failure(error_line(error, column.model, column.name), isinstance(error, NotYet))
        return results


def error_line(error: BaseException, model: str = "", name: str = "") -> str:
    """Return an error in one line: the model's path becomes its `name`, and other paths their last part.

    A path with blanks is recognised if it is the model's, its parent folder's, or the file name of the error.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    for cause in (error, error.__cause__, error.__context__):
        file = getattr(cause, "filename", None)
        text = text.replace(str(file), Path(str(file)).name) if file else text
    return without_paths(text, model, name)


def without_paths(text: str, model: str = "", name: str = "") -> str:
    """Return a text in which the model's path is its `name`, and other paths are their last part."""
    if Path(model).is_absolute():
        text = text.replace(model, name).replace(f"{Path(model).parent}/", "")
    return PATH.sub(r"\1", text)
