"""The texts of visitors, encoded by every model. They do not depend on a page or session and outlive it."""

from __future__ import annotations

import logging
import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import count
from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from cse.app.corpus.corpora import OWN_KEY, ChosenCorpus
from cse.app.models.models import Column, Failure, Models, NotYet, fingerprint_of
from cse.app.models.naming import title
from cse.app.models.recent import Bounds, Recent, current_client
from cse.app.validation import checked_key
from cse.encoder.devices import computes_in_bf16

if TYPE_CHECKING:
    import pyarrow as pa

    from cse.corpus.corpus import Corpus as Table
    from cse.encoder.encoder import Encoder

log = logging.getLogger(__name__)
KEPT = 2 * 60 * 60  # seconds after the last use of a visitor's texts
MAX_KEPT = Bounds(64, 512 * 2**20, 8, 256 * 2**20, KEPT)  # visitors' texts with their vectors, and those of a client
TEXT_BYTES = 24  # of a text besides its characters: its positions in a list and in the order
BLOCK, CHARACTERS = 256, 16_384  # most texts and characters encoded before other requests may use the model
MAX_COUNTED = 2_048  # characters of a text that count; about as many as models read
UNDO = 10  # seconds in which a removal can be undone
MAX_REMOVED = Bounds(16, 2**28, 4, 2**28, UNDO + 2)  # a page offers it for less, for the way to the server
PAUSE = 0.01  # seconds between blocks, so that a waiting thread gets the lock
SUMMARY = f"Kept for {KEPT // 3600} hours, for this browser alone"
PROMISE = (
    f"The server keeps them for {KEPT // 3600} hours after their last use, under a key that only this browser has: you "
    f"find them in other tabs and after a reload, and no one else can. It keeps those of {MAX_KEPT.number} visitors, "
    f"{MAX_KEPT.size // 2**20} MB in all; where newer ones need the room, or it restarts, they go earlier."
)
GONE = (
    f"There are no texts of yours on this server. It keeps them for {KEPT // 3600} hours after their last use, until "
    "it restarts or newer ones need the room. Upload or paste them above the places, or choose another corpus."
)
NO_ROOM = f"Your texts and vectors have more than {MAX_KEPT.own_size // 2**20} MB; give fewer texts."
FAILED = "The server failed at these texts; upload or paste them again, or try other ones."
FULL = "The server holds as many texts as it can; try again in a few minutes."

_in_bf16: WeakKeyDictionary[Encoder, Encoder] = WeakKeyDictionary()


@dataclass
class Encoding:
    """The vectors of N texts by a column: `done` of `total` rows (N, d) float16, or the reason of a `failure`."""

    column: Column
    total: int
    done: int = 0
    failure: str = ""
    fingerprint: str = ""
    rows: np.ndarray | None = None
    begun: float = 0.0  # seconds of the clock
    share: float = 0.0

    @property
    def complete(self) -> bool:
        """True if all texts are encoded."""
        return not self.failure and self.done == self.total

    @property
    def ended(self) -> bool:
        """True if all texts are encoded, or none can be."""
        return bool(self.failure) or self.complete

    @property
    def percent(self) -> int:
        """The whole percent of the texts that are encoded."""
        return int(100 * self.done / self.total)

    def fail(self, reason: str) -> None:
        """Drop the vectors for a reason."""
        self.failure, self.rows = reason, None

    def seconds_left(self) -> float | None:
        """Return the seconds that the rest takes at the pace so far; None before the first block."""
        return (time.monotonic() - self.begun) / self.share * (1 - self.share) if self.share else None

    def vectors(self) -> np.ndarray:
        """Return the (N, d) float32 vectors. Raises NotYet with the progress if they are not complete."""
        rows, complete = self.rows, self.complete  # which another thread may drop now
        if self.failure:
            raise ValueError(self.failure)
        if rows is None or not complete:
            left = self.seconds_left()
            rest = "a while" if left is None else f"about {max(1, round(left))} seconds"
            name = title(self.column.name)
            raise NotYet(f"{name} has encoded {self.percent} % of your texts; the rest takes {rest}.")
        return rows.astype(np.float32)


class Order:
    """Texts by their length, so that the texts of a block fill a model's passes without padding."""

    def __init__(self, texts: Sequence[str]) -> None:
        lengths = np.array([1 + min(len(text), MAX_COUNTED) for text in texts])
        self._order = np.argsort(lengths, kind="stable")
        self._ends = np.cumsum(lengths[self._order])

    def block(self, done: int) -> np.ndarray:
        """Return the numbers of the texts that come after the first `done` ones."""
        before = self._ends[done - 1] if done else 0
        fits = int(np.searchsorted(self._ends, before + CHARACTERS, side="right"))
        return self._order[done : max(done + 1, min(done + BLOCK, fits))]

    def share(self, done: int) -> float:
        """Return the part of all characters that the first `done` texts have."""
        return float(self._ends[done - 1] / self._ends[-1]) if done else 0.0


def quick(encoder: Encoder) -> Encoder:
    """Return the encoder, or one of the same weights that computes in bfloat16 if the processor is fast at that.

    The cosine of a vector with its float32 one is above .9999 (docs/benchmarks.md). PyTorch's stays as it is, because
    that would round its weights.
    """
    if getattr(encoder, "backend", "") != "openvino" or not computes_in_bf16("auto", "cpu"):
        return encoder
    if encoder not in _in_bf16:
        _in_bf16[encoder] = copy(encoder).computing_in("bf16")
    return _in_bf16[encoder]


class OwnCorpus(ChosenCorpus):
    """A visitor's texts, and each model's `Encoding` in the order of the work.

    A text without a label has "", and texts that all have none have no labels. Rows `without_text` were left out.
    """

    key = OWN_KEY
    kept: OwnCorpora | None = None  # where it is kept and encoded
    _numbers = count(1)

    def __init__(
        self,
        label: str,
        texts: Sequence[str],
        labels: Sequence[str] | None = None,
        rows: Sequence[int] = (),
        without_text: int = 0,
        table: pa.Table | None = None,
    ) -> None:
        self.table = table
        counted = not rows or rows[-1] == len(texts)
        self.rows, self.without_text = None if counted else array("i", rows), without_text
        self.label, self.texts = f"{label} ({len(texts):,})", list(texts)
        self.labels = list(labels) if labels and any(labels) else None
        self.number = next(self._numbers)
        self.order = Order(self.texts)
        self.turn = 0  # of the last block, to encode those of all visitors in turns
        self.encodings: Mapping[Column, Encoding] = {}  # replaced, never changed: loops over it need no lock
        # An emoji makes all characters of its text four bytes long.
        self._text_size = sum(sys.getsizeof(text) + TEXT_BYTES for text in (*self.texts, *(self.labels or ())))
        self._text_size += 0 if table is None else table.nbytes

    @property
    def different(self) -> int:
        """The number of different texts."""
        return len({text.strip() for text in self.texts})

    @classmethod
    def of(cls, label: str, corpus: Table) -> OwnCorpus:
        """Return the texts of a file with its rows, labels and further columns."""
        kept = corpus.with_text
        further = kept.source_table.drop_columns([corpus.text])
        own = cls(
            label, kept.texts, kept.labels, kept.rows.tolist(), corpus.without_text,
            further if further.num_columns else None,
        )  # fmt: skip
        own.text_name, own.label_name = corpus.text, corpus.label or own.label_name
        return own

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        rows = [encoding.rows for encoding in self.encodings.values()]
        return self._text_size + sum(vectors.nbytes for vectors in rows if vectors is not None)

    @property
    def current(self) -> Encoding | None:
        """The encoding to go on with: the first that has not ended."""
        return next((encoding for encoding in self.encodings.values() if not encoding.ended), None)

    @property
    def complete(self) -> int:
        """The number of encodings that have ended."""
        return sum(encoding.ended for encoding in self.encodings.values())

    def ready(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns that have encoded all texts."""
        known = self.encodings
        return [column for column in columns if column in known and known[column].complete]

    def answering(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns that have encoded all texts, have failed, or have not been asked to encode them."""
        known = self.encodings
        return [column for column in columns if column not in known or known[column].ended] or list(columns)

    def some_vectors(self, rows: Sequence[int], column: Column, encoder: Encoder) -> np.ndarray:
        """Return those that are there, unless a prompt for documents sets them apart, or encode the texts."""
        if self.ready([column]) and encoder.document_prompt is None:
            return self.vectors(column, encoder)[rows]
        return super().some_vectors(rows, column, encoder)

    def vectors(self, column: Column, encoder: Encoder) -> np.ndarray:
        """Return the vectors; a column that has not begun begins now."""
        encoding = self.encodings.get(column)
        if encoding is None or (encoding.complete and encoding.fingerprint != fingerprint_of(encoder)):
            assert self.kept is not None
            self.kept.encode(self, [column], stale=encoding)
            encoding = self.encodings[column]
        return encoding.vectors()


class OwnCorpora:
    """The visitors' corpora by secret key, within `bounds`; a corpus that is encoded leaves only for its own client.

    One thread encodes all of them, a block of texts at a time and in turns, those without any vectors first.
    """

    def __init__(self, models: Models, clock: Callable[[], float] = time.monotonic, bounds: Bounds = MAX_KEPT) -> None:
        self._models = models
        self._kept: Recent[OwnCorpus] = Recent(
            bounds, size=lambda corpus: corpus.size, clock=clock, pinned=lambda corpus: corpus.current is not None
        )
        self._removed: Recent[tuple[OwnCorpus, Callable[[], Any]]] = Recent(
            MAX_REMOVED, size=lambda item: item[0].size, clock=clock, dropped=lambda item: item[1]()
        )
        self._lock, self._turns, self._encoding = self._kept.lock, count(1), False

    def corpus(self, key: Any) -> OwnCorpus | None:
        """Return the corpus of a key, or None."""
        self._removed.entries()  # lets those go whose time has ended
        return self._kept.get(key)

    def put(self, key: Any, corpus: OwnCorpus, columns: Sequence[Column]) -> OwnCorpus | None:
        """Keep a corpus in place of the key's earlier one, and have the columns encode it in this order.

        Returns the earlier one if it had other texts: it is set aside, so that `restore` brings it back.
        """
        checked_key(key, "texts")
        client, bounds = current_client(), self._kept.bounds
        with self._lock:
            entries = self._kept.entries()
            busy = [entry for other, entry in entries if other != key and entry.value.current is not None]
            near = [entry for entry in busy if client and entry.client and entry.client.address == client.address]
            for those, share in ((busy, 1), (near, 2)):  # half of the room for one address
                size = sum(entry.size for entry in those) + corpus.size
                if share * len(those) >= bounds.number or (those and share * size > bounds.size):
                    raise ValueError(FULL)
            earlier = self._kept.get(key)
            if earlier is not None and earlier.texts == corpus.texts:  # with other labels: what is encoded stays so
                corpus.encodings = {of: each for of, each in earlier.encodings.items() if not each.failure}
                earlier = None
            self.encode(corpus, columns)
            self._removed.pop(key)
            self._kept.put(key, corpus)
            if earlier is not None:
                self._removed.put(key, (earlier, lambda: None))
            return earlier

    def encode(self, corpus: OwnCorpus, columns: Sequence[Column], stale: Encoding | None = None) -> None:
        """Have the columns encode a corpus after those that do already; a `stale` encoding is dropped."""
        with self._lock:
            corpus.kept = self
            known = {column: encoding for column, encoding in corpus.encodings.items() if encoding is not stale}
            fresh = {column: Encoding(column, len(corpus.texts)) for column in columns if column not in known}
            corpus.encodings = {**known, **fresh}
            if self._encoding:
                return
            try:
                Thread(target=self._encode_all, name="encoding corpora", daemon=True).start()
            except RuntimeError as error:
                raise ValueError(FULL) from error
            self._encoding = True

    def remove(self, key: Any) -> OwnCorpus | None:
        """Delete the corpus of a key, and one that is set aside, and return it, or None."""
        with self._lock:
            if removed := self._removed.pop(key):
                removed[1]()
            return self._kept.pop(key)

    def set_aside(self, key: str, then: Callable[[], Any] = lambda: None) -> OwnCorpus | None:
        """Remove the corpus of a key and return it; `restore` brings it back until `then` is called, at its end."""
        with self._lock:
            corpus = self._kept.pop(key)
            if corpus is not None:
                self._removed.put(key, (corpus, then))
            return corpus

    def restore(self, key: str) -> OwnCorpus | None:
        """Return the corpus of a key that was set aside, kept as before; None if it is gone."""
        with self._lock:
            removed = self._removed.pop(key)
            if removed is None:
                return None
            self._kept.put(key, removed[0])
            self.encode(removed[0], ())  # goes on where it was
            return removed[0]

    def _encode_all(self) -> None:
        try:
            while (work := self._next()) is not None:
                key, corpus, encoding = work
                try:
                    self._encode_block(key, corpus, encoding)
                except BaseException:  # the thread has no caller; libraries in Rust panic outside of Exception
                    encoding.fail(FAILED)
                    log.exception("an encoding failed")
                time.sleep(PAUSE)
        except BaseException:
            self._encoding = False  # the next call begins another thread
            raise

    def _next(self) -> tuple[str, OwnCorpus, Encoding] | None:
        """Return the key and corpus whose turn it is, and its encoding; None, after which the thread ends, if none."""
        with self._lock:
            known = [(key, entry.value) for key, entry in self._kept.entries()]
            waiting = [(key, corpus) for key, corpus in known if corpus.current is not None]
            if not waiting:
                self._encoding = False
                return None
            key, corpus = min(waiting, key=lambda item: (item[1].complete, item[1].turn))
            corpus.turn = next(self._turns)
            assert corpus.current is not None
            return key, corpus, corpus.current

    def _encode_block(self, key: str, corpus: OwnCorpus, encoding: Encoding) -> None:
        encoding.begun = encoding.begun or time.monotonic()
        rows, column = corpus.order.block(encoding.done), encoding.column
        block = [corpus.texts[row].strip() for row in rows]
        answer = self._models.apply(
            lambda _, encoder: (fingerprint_of(encoder), quick(encoder).encode_document(block)), [column]
        )[column.name]
        if isinstance(answer, Failure):
            encoding.fail(answer.reason)
        else:
            encoding.fingerprint, vectors = answer
            if encoding.rows is None:
                encoding.rows = np.empty((len(corpus.texts), vectors.shape[1]), np.float16)
            encoding.rows[rows] = vectors
            encoding.done += len(block)
            encoding.share = corpus.order.share(encoding.done)
        if corpus.size > self._kept.bounds.own_size:
            encoding.fail(NO_ROOM)
        self._kept.measure(key)
