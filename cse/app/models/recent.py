"""Values that are kept in memory, bounded in number, bytes and time, for a client and for all."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, is_dataclass
from threading import RLock
from typing import Any, Generic, TypeVar

import numpy as np

from cse.app.server.access import Client
from cse.app.server.gradio_adapter import current_request

T = TypeVar("T")
MAX_VISITORS = 1000  # whose columns and newest requests are remembered


def visitor() -> str | None:
    """Return the session of the current request; None outside of one."""
    return getattr(current_request(), "session_hash", None)


def current_client() -> Client | None:
    """Return the client of the current request; None outside of one, which has no rights and no bounds."""
    request = current_request()
    return getattr(getattr(request, "request", request), "scope", {}).get("user")


def bytes_of(value: Any) -> int:
    """Return the bytes that a value holds in memory: its arrays and texts, in containers and dataclasses too."""
    if isinstance(value, np.ndarray):
        return sys.getsizeof(value) + (0 if value.base is None else value.nbytes)
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(bytes_of(key) + bytes_of(item) for key, item in value.items())
    if isinstance(value, (tuple, list)):
        return size + sum(map(bytes_of, value))
    return size + (bytes_of(vars(value)) if is_dataclass(value) else 0)


def first_to_go(clients: Sequence[Client | None], sizes: Sequence[int], free: Sequence[int]) -> int:
    """Return the index of the oldest `free` thing of the client that holds most; `clients` hold things, oldest first.

    Addresses are compared before cookies, since a client can drop a cookie.
    """
    of_address, of_client = Counter[str](), Counter[Client | None]()
    addresses = [client.address if client else "" for client in clients]
    for client, address, size in zip(clients, addresses, sizes, strict=True):
        of_address[address] += size
        of_client[client] += size
    return max(free, key=lambda index: (of_address[addresses[index]], of_client[clients[index]]))


@dataclass
class Entry(Generic[T]):
    """A kept value, its bytes, the time of its last use, and the client that put it."""

    value: T
    size: int
    used: float
    client: Client | None


@dataclass(frozen=True)
class Bounds:
    """Bounds of kept values: their number and bytes, those of one client, and seconds after the last use.

    With a bound on a client's number, whoever holds most loses first; otherwise the least recently used value goes.
    """

    number: float
    size: float = math.inf
    own: float = math.inf
    own_size: float = math.inf
    seconds: float = math.inf


class Recent(Generic[T]):
    """A thread-safe store of values by key within `bounds`; the latest stays even if it has more bytes."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        size: Callable[[T], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
        pinned: Callable[[T], bool] = lambda value: False,
        dropped: Callable[[T], object] = lambda value: None,
    ) -> None:
        """`size` returns the bytes of a value, by default those of key and value; `clock` returns seconds."""
        self.bounds, self._size_of, self._clock, self._pinned, self._dropped = bounds, size, clock, pinned, dropped
        self._entries: dict[Hashable, Entry[T]] = {}  # least recently used first
        self.lock = RLock()
        self.size = 0  # bytes of all; 0 if they have no bound

    def get(self, key: Any) -> T | None:
        """Return the value of a key, or None."""
        with self.lock:
            self._sweep()
            entry = self._entries.pop(key, None) if isinstance(key, Hashable) else None
            if entry is None:
                return None
            entry.used = self._clock()
            self._entries[key] = entry
            return entry.value

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value in place of the key's earlier one; others may be dropped."""
        with self.lock:
            self._remove(key)
            self._entries[key] = Entry(value, 0, self._clock(), current_client())
            self.measure(key)

    def measure(self, key: Hashable) -> None:
        """Take the size of a value anew; others may be dropped."""
        with self.lock:
            entry = self._entries.get(key)
            if entry is not None and min(self.bounds.size, self.bounds.own_size) < math.inf:
                size = bytes_of(key) + bytes_of(entry.value) if self._size_of is None else self._size_of(entry.value)
                self.size += size - entry.size
                entry.size = size
            self._bound_client(entry.client if entry else None)
            self._sweep()

    def pop(self, key: Any) -> T | None:
        """Remove the value of a key and return it, or None."""
        with self.lock:
            self._sweep()
            entry = self._remove(key)
            return entry.value if entry else None

    def entries(self) -> list[tuple[Any, Entry[T]]]:
        """Return the keys and their entries, the least recently used first."""
        with self.lock:
            self._sweep()
            return list(self._entries.items())

    def _bound_client(self, client: Client | None) -> None:
        if self.bounds.own == math.inf:
            return
        own = [(key, entry) for key, entry in self._entries.items() if client and entry.client == client]
        while len(own) > 1:
            if len(own) <= self.bounds.own and sum(entry.size for _, entry in own) <= self.bounds.own_size:
                return
            self._drop(own.pop(0)[0])

    def _sweep(self) -> None:
        due = self._clock() - self.bounds.seconds
        for key, entry in list(self._entries.items()) if self.bounds.seconds < math.inf else ():
            if entry.used < due and not self._pinned(entry.value):
                self._drop(key)
        while len(self._entries) > self.bounds.number or (self.size > self.bounds.size and len(self._entries) > 1):
            if self.bounds.own == math.inf:
                self._drop(next(iter(self._entries)))
                continue
            keys, entries = list(self._entries), list(self._entries.values())
            free = [index for index, entry in enumerate(entries[:-1]) if not self._pinned(entry.value)]
            if not free:
                return
            sizes = [1 if len(keys) > self.bounds.number else entry.size for entry in entries]
            self._drop(keys[first_to_go([entry.client for entry in entries], sizes, free)])

    def _drop(self, key: Hashable) -> None:
        entry = self._remove(key)
        assert entry is not None
        self._dropped(entry.value)

    def _remove(self, key: Any) -> Entry[T] | None:
        entry = self._entries.pop(key, None) if isinstance(key, Hashable) else None
        self.size -= entry.size if entry else 0
        return entry
