"""The texts of visitors and the models' vectors of them, by each visitor's secret key, bounded in number and time.

They do not depend on a page or session: the encoding continues, and a corpus stays, after its page is closed.
"""

from __future__ import annotations

import logging
import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Lock, Thread, Timer
from typing import TYPE_CHECKING, Any

from cse.app.models.columns import Column
from cse.app.models.models import Models, error_line
from cse.app.models.visitors import Client, current_client, first_to_go
from cse.app.state.encodings import Encoding, Order, encode_block
from cse.app.validation import checked_key

if TYPE_CHECKING:
    import pyarrow as pa

    from cse.corpus.corpus import Corpus

log = logging.getLogger(__name__)
KEPT = 2 * 60 * 60  # seconds after the last use
MOST_KEPT, MOST_BYTES_KEPT = 64, 512 * 2**20  # of all visitors together
MOST_OF_CLIENT, MOST_BYTES_EACH = 8, 256 * 2**20  # of a client, which may have several keys
TEXT_BYTES = 24  # of a text besides its characters: its places in a list and in the order
UNDO = 10  # seconds in which a removal can be undone
GRACE = 2  # seconds more than a page offers that, for the way to the server
PAUSE = 0.01  # seconds between blocks, so that a waiting thread gets the lock
SUMMARY = f"Kept for {KEPT // 3600} hours, for this browser alone"
PROMISE = (
    f"The server keeps them for {KEPT // 3600} hours after their last use, under a key that only this browser has: you "
    f"find them in other tabs and after a reload, and no one else can. It keeps those of {MOST_KEPT} visitors, "
    f"{MOST_BYTES_KEPT // 2**20} MB in all; where newer ones need the room, or it restarts, they go earlier."
)
GONE = (
    f"There are no texts of yours on this server. It keeps them for {KEPT // 3600} hours after their last use, until "
    "it restarts or newer ones need the room. Upload or paste them above the tabs, or choose another corpus."
)
NO_ROOM = f"Your texts and vectors have more than {MOST_BYTES_EACH // 2**20} MB; give fewer texts."
FAILED = "The server failed at these texts; upload or paste them again, or try other ones."
FULL = "The server holds as many texts as it can; try again in a few minutes."


class OwnCorpus:
    """A visitor's texts, a label of each if there are labels, and each model's `Encoding` in the order of the work.

    A text without a label has "", and texts that all have none have no labels.
    `rows` are the texts' rows in their file, None if they are 1, 2, 3, …; those `without_text` were left out. `table`
    has the further columns of the file, a row for each text; None for a list of texts.
    """

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
        """`label` names the texts to their visitor; their number is added to it."""
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

    @classmethod
    def of(cls, label: str, corpus: Corpus) -> OwnCorpus:
        """Return the texts of a file with its rows, labels and further columns."""
        kept = corpus.with_text
        further = kept.source_table.drop_columns([corpus.text])
        return cls(
            label, kept.texts, kept.labels, kept.rows.tolist(), corpus.without_text,
            further if further.num_columns else None,
        )  # fmt: skip

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return self._text_size + sum(encoding.size for encoding in self.encodings.values())

    @property
    def current(self) -> Encoding | None:
        """The encoding to go on with: the first that has not ended."""
        return next((encoding for encoding in self.encodings.values() if not encoding.ended), None)

    @property
    def complete(self) -> int:
        """The number of encodings that have ended."""
        return sum(encoding.ended for encoding in self.encodings.values())


@dataclass
class Own:
    """A visitor's corpus and the `client` that sent it; `used` is the time of the last access."""

    used: float
    corpus: OwnCorpus
    size: int = field(default=0)
    client: Client | None = None

    @property
    def running(self) -> bool:
        """True while a model encodes the texts."""
        return self.corpus.current is not None


class OwnCorpora:
    """The visitors' corpora by key, thread-safe; beyond the bounds the least recently used are dropped.

    A client beyond its own bounds loses its own; beyond those of all, whoever holds most loses first.
    One thread encodes all of them, a block of texts at a time and in turns, those without any vectors first.
    """

    def __init__(
        self,
        models: Models,
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST_KEPT,
        most_bytes: int = MOST_BYTES_KEPT,
    ) -> None:
        """`clock` returns seconds; at most `most` visitors with `most_bytes` in all are kept."""
        self._models, self._clock, self._most, self._most_bytes = models, clock, most, most_bytes
        self._owned: dict[str, Own] = {}  # least recently used first
        self._aside: dict[str, Own] = {}  # removed, for `UNDO` seconds; nothing encodes them
        self._lock, self._turns, self._encoding = Lock(), count(1), False

    def corpus(self, key: Any) -> OwnCorpus | None:
        """Return the corpus of a key, or None."""
        with self._lock:
            own = self._used(key)
            return None if own is None else own.corpus

    def put(self, key: Any, corpus: OwnCorpus, columns: Sequence[Column]) -> None:
        """Keep a corpus in place of the key's earlier one, and have the columns encode it in this order.

        Raises ValueError for an invalid key, and if those that are encoded leave no room.
        """
        checked_key(key, "texts")
        client = current_client()
        with self._lock:
            self._sweep()
            busy = [own for owner, own in self._owned.items() if own.running and owner != key]
            near = [own for own in busy if client and own.client and own.client.address == client.address]
            aside = list(self._aside.values())
            for those, share in (([*busy, *aside], 1), (near, 2)):  # half of the room for one address
                size = sum(own.size for own in those) + corpus.size
                if share * len(those) >= self._most or (those and share * size > self._most_bytes):
                    raise ValueError(FULL)
            self._owned.pop(key, None)
            self._aside.pop(key, None)
            self._owned[key] = Own(self._clock(), corpus, corpus.size, client)
            self._bound(client)
        self.encode(corpus, columns)

    def encode(self, corpus: OwnCorpus, columns: Sequence[Column], stale: Encoding | None = None) -> None:
        """Have the columns encode a corpus after those that do already; a `stale` encoding is dropped.

        Raises ValueError if the system starts no thread; the next call begins these, too.
        """
        with self._lock:
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

    def remove(self, key: Any) -> None:
        """Delete the corpus of a key."""
        with self._lock:
            self._owned.pop(key, None) if isinstance(key, str) else None

    def set_aside(self, key: Any, then: Callable[[], Any] = lambda: None) -> OwnCorpus | None:
        """Remove the corpus of a key and return it; `restore` brings it back until `then` is called, at its end."""
        with self._lock:
            own = self._used(key)
            if own is None:
                return None
            self._aside[key] = self._owned.pop(key)
        timer = Timer(UNDO + GRACE, self._forget, (key, own, then))
        timer.daemon = True
        timer.start()
        return own.corpus

    def restore(self, key: Any) -> OwnCorpus | None:
        """Return the corpus of a key that was set aside, kept as before; None if it is gone."""
        with self._lock:
            own = self._aside.pop(key, None) if isinstance(key, str) else None
            if own is None:
                return None
            own.used = self._clock()
            self._owned[key] = own
        self.encode(own.corpus, ())  # goes on where it was
        return own.corpus

    def _forget(self, key: str, own: Own, then: Callable[[], Any]) -> None:
        """End the time in which a removal can be undone, unless it was."""
        with self._lock:
            if self._aside.get(key) is not own:
                return
            del self._aside[key]
        then()

    def _encode_all(self) -> None:
        while (work := self._next()) is not None:
            try:
                self._encode_block(*work)
            except BaseException:  # the thread has no caller; libraries in Rust panic outside of Exception
                work[1].fail(FAILED)
                log.exception("an encoding failed")
            time.sleep(PAUSE)

    def _encode_block(self, own: Own, encoding: Encoding) -> None:
        try:
            encode_block(self._models, own.corpus.texts, own.corpus.order, encoding)
        except (ValueError, OSError) as error:
            encoding.fail(error_line(error, encoding.column.model, encoding.column.name))
        with self._lock:
            own.size = own.corpus.size
            if own.size > MOST_BYTES_EACH:
                encoding.fail(NO_ROOM)
            self._bound(own.client)
            self._sweep()

    def _next(self) -> tuple[Own, Encoding] | None:
        """Return the corpus whose turn it is, and its encoding; None, after which the thread ends, if none waits."""
        with self._lock:
            waiting = [own for own in self._owned.values() if own.running]
            if not waiting:
                self._encoding = False
                return None
            own = min(waiting, key=lambda own: (own.corpus.complete, own.corpus.turn))
            own.corpus.turn = next(self._turns)
            encoding = own.corpus.current
            assert encoding is not None
            return own, encoding

    def _used(self, key: Any) -> Own | None:
        """Return the entry of a key and mark it as used."""
        self._sweep()
        own = self._owned.pop(key, None) if isinstance(key, str) else None
        if own is not None:
            own.used = self._clock()
            self._owned[key] = own
        return own

    def _sweep(self) -> None:
        """Drop expired entries, and beyond the bounds the oldest of who holds most; entries that are encoded stay."""
        idle = [(key, own) for key, own in self._owned.items() if not own.running]
        while idle and self._clock() - idle[0][1].used > KEPT:
            del self._owned[idle.pop(0)[0]]
        while idle:
            many = len(self._owned) > self._most
            size = sum(own.size for own in (*self._owned.values(), *self._aside.values()))
            if not many and size <= self._most_bytes:
                return
            sizes = [1 if many else own.size for _, own in idle]
            del self._owned[idle.pop(first_to_go([own.client for _, own in idle], sizes))[0]]

    def _bound(self, client: Client | None) -> None:
        """Drop the oldest corpora of a client beyond its bounds, also those that are encoded, but not its newest."""
        if client is None:
            return
        stores = (self._aside, self._owned)  # what was removed goes first
        own = [(store, key, each) for store in stores for key, each in store.items() if each.client == client]
        while len(own) > MOST_OF_CLIENT or (len(own) > 1 and sum(each.size for *_, each in own) > MOST_BYTES_EACH):
            store, key, _ = own.pop(0)
            del store[key]
