"""A thread-safe LRU cache, whose results may expire."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cse.app.models.visitors import Client, current_client, first_to_go

T = TypeVar("T")


class Recent(Generic[T]):
    """A thread-safe LRU cache of at most `most` results, each for `seconds` after its last use."""

    def __init__(self, most: int, seconds: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds."""
        self._most, self._seconds, self._clock, self._lock = most, seconds, clock, threading.Lock()
        self._results: dict[Hashable, tuple[float, T]] = {}  # least recently used first

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
        """Store a result; the least recently used one may be dropped."""
        with self._lock:
            self._results.pop(key, None)
            self._results[key] = self._clock(), result
            self._sweep()

    def drop(self, key: Hashable) -> None:
        """Drop the result of a key, if there is one."""
        with self._lock:
            self._results.pop(key, None)

    def _sweep(self) -> None:
        due = self._clock() - self._seconds
        while self._results:
            oldest, (used, _) = next(iter(self._results.items()))
            if used >= due and len(self._results) <= self._most:
                return
            del self._results[oldest]


class RecentByClient(Recent[T]):
    """As `Recent`, with at most `own` results of a client; beyond the bound of all, whoever has most loses first."""

    def __init__(
        self, most: int, own: int, seconds: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` returns seconds."""
        super().__init__(most, seconds, clock)
        self._own, self._clients = own, dict[Hashable, Client | None]()

    def put(self, key: Hashable, result: T) -> None:
        """Store a result; the client's least recently used one may be dropped, or another's if there is no room."""
        client = current_client()
        with self._lock:
            self._results.pop(key, None)
            own = [other for other in self._results if client and self._clients[other] == client]
            for surplus in own[: max(0, len(own) - self._own + 1)]:
                del self._results[surplus]
            self._results[key], self._clients[key] = (self._clock(), result), client
            self._sweep()

    def _sweep(self) -> None:
        keys = list(self._results) if len(self._results) > self._most else []
        while len(keys) > self._most:
            del self._results[keys.pop(first_to_go([self._clients[key] for key in keys]))]
        super()._sweep()
        if len(self._clients) > len(self._results):
            self._clients = {key: self._clients[key] for key in self._results}
