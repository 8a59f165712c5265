"""A thread-safe LRU cache, bounded in number and bytes, whose results may expire."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import is_dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from cse.app.models.visitors import Client, current_client, first_to_go

T = TypeVar("T")


def bytes_of(value: Any) -> int:
    """Return the bytes that a value holds in memory: its arrays and texts, in containers and dataclasses too."""
    if isinstance(value, np.ndarray):
        return sys.getsizeof(value) + (0 if value.base is None else value.nbytes)
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(bytes_of(key) + bytes_of(each) for key, each in value.items())
    if isinstance(value, (tuple, list)):
        return size + sum(map(bytes_of, value))
    return size + (bytes_of(vars(value)) if is_dataclass(value) else 0)


class Recent(Generic[T]):
    """A thread-safe LRU cache of at most `most` results, each for `seconds` after its last use.

    With their keys they have at most `most_bytes`; the latest stays even if it has more.
    """

    def __init__(
        self,
        most: int,
        seconds: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        *,
        most_bytes: float = math.inf,
        size: Callable[[T], int] = bytes_of,
    ) -> None:
        """`clock` returns seconds, `size` the bytes of a result."""
        self._most, self._seconds, self._clock, self._lock = most, seconds, clock, threading.Lock()
        self._most_bytes, self._size_of = most_bytes, size
        self._results: dict[Hashable, tuple[float, T]] = {}  # least recently used first
        self._sizes: dict[Hashable, int] = {}
        self.size = 0  # bytes of the results with their keys; 0 if they have no bound

    def get(self, key: Hashable) -> T | None:
        """Return the result of a key, or None."""
        with self._lock:
            self._sweep()
            found = self._results.pop(key, None)
            if found is None:
                return None
            self._results[key] = self._clock(), found[1]
            return found[1]

    def put(self, key: Hashable, result: T) -> None:
        """Store a result; the least recently used ones may be dropped."""
        size = self._size(key, result)
        with self._lock:
            self._remove(key)
            self._keep(key, result, size)

    def _size(self, key: Hashable, result: T) -> int:
        return 0 if self._most_bytes == math.inf else bytes_of(key) + self._size_of(result)

    def _keep(self, key: Hashable, result: T, size: int) -> None:
        self._results[key], self._sizes[key] = (self._clock(), result), size
        self.size += size
        self._sweep()

    def drop(self, key: Hashable) -> None:
        """Drop the result of a key, if there is one."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: Hashable) -> None:
        self._results.pop(key, None)
        self.size -= self._sizes.pop(key, 0)

    def _sweep(self) -> None:
        due = self._clock() - self._seconds
        while self._results:
            oldest, (used, _) = next(iter(self._results.items()))
            large = self.size > self._most_bytes and len(self._results) > 1
            if used >= due and len(self._results) <= self._most and not large:
                return
            self._remove(oldest)


class RecentByClient(Recent[T]):
    """As `Recent`, with at most `own` results of a client; beyond the bound of all, whoever has most loses first."""

    def __init__(self, most: int, own: int, **options: Any) -> None:
        """`options` are those of `Recent`."""
        super().__init__(most, **options)
        self._own, self._clients = own, dict[Hashable, Client | None]()

    def put(self, key: Hashable, result: T) -> None:
        """Store a result; the client's least recently used one may be dropped, or another's if there is no room."""
        client, size = current_client(), self._size(key, result)
        with self._lock:
            self._remove(key)
            own = [other for other in self._results if client and self._clients[other] == client]
            for surplus in own[: max(0, len(own) - self._own + 1)]:
                self._remove(surplus)
            self._clients[key] = client
            self._keep(key, result, size)

    def _sweep(self) -> None:
        keys = list(self._results) if len(self._results) > self._most else []
        while len(keys) > self._most:
            self._remove(keys.pop(first_to_go([self._clients[key] for key in keys])))
        super()._sweep()

    def _remove(self, key: Hashable) -> None:
        super()._remove(key)
        self._clients.pop(key, None)
