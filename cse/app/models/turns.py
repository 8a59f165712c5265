"""Exclusive use of an encoder, which is not thread-safe: texts of waiting requests are encoded in one batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cse.app.models.remembered import Reader
    from cse.encoder.encoder import Encoder


class Turn:
    """The texts of one turn, and their vectors once they are encoded."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self.vectors: np.ndarray | None = None


class Turns:
    """The lock of one encoder, and the turns that wait for it."""

    def __init__(self) -> None:
        self._lock, self._guard = threading.RLock(), threading.Lock()
        self._waiting: list[Turn] = []  # under the guard

    @contextmanager
    def turn(self, texts: Sequence[str] = ()) -> Iterator[Turn]:
        """Hold the encoder's lock; turns before this one may encode its texts."""
        turn = Turn(texts)
        with self._guard:
            self._waiting.append(turn)
        try:
            with self._lock:
                yield turn
        finally:
            with self._guard:
                self._waiting = [each for each in self._waiting if each is not turn]

    def vectors(self, encoder: Encoder | Reader, turn: Turn) -> np.ndarray:
        """Return the (N, d) float32 vectors of a turn's texts, encoded by an earlier turn or now.

        The texts of waiting turns are encoded too. Raises what `encode` raises for the turn's own texts alone.
        """
        if turn.vectors is None:
            with self._guard:
                together = [turn, *(each for each in self._waiting if each is not turn and each.vectors is None)]
            try:
                encode_all(encoder, together)
            except Exception:  # any error of another turn's text
                encode_all(encoder, [turn])
        assert turn.vectors is not None
        return turn.vectors


def encode_all(encoder: Encoder | Reader, together: Sequence[Turn]) -> None:
    """Encode the texts of several turns in one batch."""
    found = encoder.encode([text for each in together for text in each.texts])
    ends = np.cumsum([len(each.texts) for each in together])
    for each, vectors in zip(together, np.split(found, ends[:-1]), strict=True):
        each.vectors = vectors
