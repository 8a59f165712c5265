"""Turns at an encoder, which is not thread-safe: the texts of all who wait for it are encoded in one batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cse.app.models.remembered import Reader
    from cse.encoding.encoder import Encoder


class Asked:
    """The texts of one turn, and their vectors once an encoder has been asked."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self.vectors: np.ndarray | None = None


class Turns:
    """The lock of one encoder, and what its next turns will ask of it."""

    def __init__(self) -> None:
        self._lock, self._guard = threading.RLock(), threading.Lock()
        self._waiting: list[Asked] = []  # under the guard

    @contextmanager
    def turn(self, texts: Sequence[str] = ()) -> Iterator[Asked]:
        """Within this the encoder is the caller's alone; its texts are known to the turns before it."""
        asked = Asked(texts)
        with self._guard:
            self._waiting.append(asked)
        try:
            with self._lock:
                yield asked
        finally:
            with self._guard:
                self._waiting = [each for each in self._waiting if each is not asked]

    def vectors(self, encoder: Encoder | Reader, asked: Asked) -> np.ndarray:
        """(N, d) float32 of a turn's texts: what an earlier turn left, or encoded with the texts of all who wait.

        Raises what `encode` raises for these texts; those of others that cannot be encoded are left to their own turn.
        """
        if asked.vectors is None:
            with self._guard:
                together = [asked, *(each for each in self._waiting if each is not asked and each.vectors is None)]
            try:
                encode_all(encoder, together)
            except Exception:  # whatever another's text provokes
                encode_all(encoder, [asked])
        assert asked.vectors is not None
        return asked.vectors


def encode_all(encoder: Encoder | Reader, together: Sequence[Asked]) -> None:
    """Give each of several what its texts are in one batch."""
    found = encoder.encode([text for each in together for text in each.texts])
    ends = np.cumsum([len(each.texts) for each in together])
    for each, vectors in zip(together, np.split(found, ends[:-1]), strict=True):
        each.vectors = vectors
