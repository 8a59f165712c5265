"""A model's vectors of a visitor's texts, encoded a block at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cse.app.models.columns import Column
from cse.app.models.models import Failure, Models
from cse.app.models.remembered import fingerprint_of

BLOCK = 64  # texts encoded before other requests may use the model


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

    @property
    def ended(self) -> bool:
        """True if all texts are encoded, or none can be."""
        return bool(self.failure) or self.complete

    @property
    def complete(self) -> bool:
        """True if all texts are encoded."""
        return not self.failure and self.done == self.total

    @property
    def size(self) -> int:
        """Bytes of the vectors."""
        return 0 if self.rows is None else self.rows.nbytes

    def fail(self, reason: str) -> None:
        """Drop the vectors for a reason."""
        self.failure, self.rows = reason, None

    def seconds_left(self) -> float | None:
        """Return the seconds that the rest takes at the pace so far; None before the first block."""
        if not self.done:
            return None
        return (time.monotonic() - self.begun) / self.done * (self.total - self.done)

    def vectors(self) -> np.ndarray:
        """Return the (N, d) float32 vectors. Raises ValueError with the progress if they are not complete."""
        if self.failure:
            raise ValueError(self.failure)
        if self.rows is None or not self.complete:
            left = self.seconds_left()
            when = "in a while" if left is None else f"in {max(1, round(left))} seconds"
            share = int(100 * self.done / self.total)
            raise ValueError(f"{self.column.name} has encoded {share} % of your texts; try again {when}.")
        return self.rows.astype(np.float32)


def encode_block(models: Models, texts: Sequence[str], encoding: Encoding) -> None:
    """Encode the next block of texts. Raises ValueError if the model fails."""
    encoding.begun = encoding.begun or time.monotonic()
    block = texts[encoding.done : encoding.done + BLOCK]
    column = encoding.column
    answer = models.apply(lambda _, encoder: (fingerprint_of(encoder), encoder.encode(block)), [column])[column.name]
    if isinstance(answer, Failure):
        raise ValueError(answer.reason)
    encoding.fingerprint, found = answer
    if encoding.rows is None:
        encoding.rows = np.empty((len(texts), found.shape[1]), np.float16)
    encoding.rows[encoding.done : encoding.done + len(block)] = found
    encoding.done += len(block)
