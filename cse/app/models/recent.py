"""What was used last: results and models that a server keeps a bounded number of."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """The results last put in or asked for, at most `most` of them; any thread may ask."""

    def __init__(self, most: int) -> None:
        self._most, self._results, self._lock = most, OrderedDict[Hashable, T](), threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """The result of a key, None where it is not kept."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def put(self, key: Hashable, result: T) -> None:
        """Keep a result; the one that was not asked for the longest may go."""
        with self._lock:
            self._results[key] = result
            while len(self._results) > self._most:
                self._results.popitem(last=False)
