"""A thread-safe LRU cache."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """A thread-safe LRU cache of at most `most` results."""

    def __init__(self, most: int) -> None:
        self._most, self._results, self._lock = most, OrderedDict[Hashable, T](), threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """Return the result of a key, or None."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def put(self, key: Hashable, result: T) -> None:
        """Store a result; the least recently used one may be dropped."""
        with self._lock:
            self._results[key] = result
            while len(self._results) > self._most:
                self._results.popitem(last=False)
