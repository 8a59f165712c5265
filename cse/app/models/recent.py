"""A thread-safe LRU cache, whose results may expire."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

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
