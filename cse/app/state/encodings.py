"""A model's vectors of a visitor's texts, encoded a block at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from cse.app.models.columns import Column
from cse.app.models.models import Failure, Models
from cse.app.models.naming import title
from cse.app.models.remembered import fingerprint_of
from cse.encoder.devices import computes_in_bf16

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder

BLOCK, CHARACTERS = 256, 16_384  # most texts and characters encoded before other requests may use the model
LONGEST = 2_048  # characters of a text that count; about as many as models read

_in_bf16: WeakKeyDictionary[Encoder, Encoder] = WeakKeyDictionary()


@dataclass
class Encoding:
    """The vectors of N texts by a column: `done` of `total` rows (N, d) float16, or the reason of a `failure`.

    `share` is the part of all characters that is done.
    """

    column: Column
    total: int
    done: int = 0
    failure: str = ""
    fingerprint: str = ""
    rows: np.ndarray | None = None
    begun: float = 0.0  # seconds of the clock
    share: float = 0.0

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
        if not self.share:
            return None
        return (time.monotonic() - self.begun) / self.share * (1 - self.share)

    def vectors(self) -> np.ndarray:
        """Return the (N, d) float32 vectors. Raises ValueError with the progress if they are not complete."""
        rows, complete = self.rows, self.complete  # which another thread may drop now
        if self.failure:
            raise ValueError(self.failure)
        if rows is None or not complete:
            left = self.seconds_left()
            when = "in a while" if left is None else f"in {max(1, round(left))} seconds"
            done = int(100 * self.done / self.total)
            raise ValueError(f"{title(self.column.name)} has encoded {done} % of your texts; try again {when}.")
        return rows.astype(np.float32)


class Order:
    """Texts by their length, so that the texts of a block fill a model's passes without padding."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Sort the texts, the shortest first."""
        lengths = np.array([1 + min(len(text), LONGEST) for text in texts])
        self._order = np.argsort(lengths, kind="stable")
        self._ends = np.cumsum(lengths[self._order])

    def block(self, done: int) -> np.ndarray:
        """Return the numbers of the texts that come after the first `done` ones."""
        before = self._ends[done - 1] if done else 0
        fits = int(np.searchsorted(self._ends, before + CHARACTERS, side="right"))
        return self._order[done : max(done + 1, min(done + BLOCK, fits))]

    def share(self, done: int) -> float:
        """Return the part of all characters that the first `done` texts have."""
        return float(self._ends[done - 1] / self._ends[-1]) if done else 0.0


def encode_block(models: Models, texts: Sequence[str], order: Order, encoding: Encoding) -> None:
    """Encode the next block of texts. Raises ValueError if the model fails."""
    encoding.begun = encoding.begun or time.monotonic()
    chosen = order.block(encoding.done)
    block, column = [texts[row].strip() for row in chosen], encoding.column
    answer = models.apply(lambda _, encoder: (fingerprint_of(encoder), quick(encoder).encode_document(block)), [column])
    found = answer[column.name]
    if isinstance(found, Failure):
        raise ValueError(found.reason)
    encoding.fingerprint, vectors = found
    if encoding.rows is None:
        encoding.rows = np.empty((len(texts), vectors.shape[1]), np.float16)
    encoding.rows[chosen] = vectors
    encoding.done += len(block)
    encoding.share = order.share(encoding.done)


def quick(encoder: Encoder) -> Encoder:
    """Return the encoder, or one of the same weights that computes in bfloat16 if the processor is fast at that.

    The cosine of a vector with its float32 one is above .9999 (docs/benchmarks.md). PyTorch's stays as it is, because
    that would round its weights.
    """
    if getattr(encoder, "backend", "") != "openvino" or not computes_in_bf16("auto", "cpu"):
        return encoder
    if encoder not in _in_bf16:
        _in_bf16[encoder] = copy(encoder).bfloat16()
    return _in_bf16[encoder]
