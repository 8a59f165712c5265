"""A cache of vectors by encoder and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from cse.app.models.recent import Recent

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder

MOST_TEXTS, MOST_BYTES = 8192, 32 * 2**20  # of all models; the vectors of 384 numbers have 12 MB
LONGEST = 1000  # characters of a cached text

_marks: WeakKeyDictionary[Encoder, str] = WeakKeyDictionary()
_numbers: WeakKeyDictionary[Encoder, int] = WeakKeyDictionary()
_unused = count()
_marking = Lock()


def fingerprint_of(encoder: Encoder) -> str:
    """Return the fingerprint of an encoder of the app, whose weights never change; it is computed once."""
    with _marking:
        found = _marks.get(encoder)
    if found is None:
        found = encoder.fingerprint
        with _marking:
            _marks[encoder] = found
    return found


def number_of(encoder: Encoder) -> int:
    """Return a number for cache keys, unique to this encoder object.

    The fingerprint covers the weights and the vocabulary, but not the normalisation of the tokenizer.
    """
    with _marking:
        found = _numbers.get(encoder)
        return _numbers.setdefault(encoder, next(_unused)) if found is None else found


@dataclass(frozen=True)
class Reader:
    """An encoder that looks up vectors in the cache `kept` first."""

    encoder: Encoder
    kept: Recent[np.ndarray]

    def encode(self, texts: Sequence[str], **prompt: Any) -> np.ndarray:
        """Return (N, d) float32; the last digits may differ from the encoder's, because batches differ.

        `prompt` may be the encoder's argument of this name.
        """
        if not texts:
            return self.encoder.encode([])
        key = number_of(self.encoder), *prompt.values()
        looked_up = {text: self.kept.get((*key, text)) for text in texts}
        found = {text: vector for text, vector in looked_up.items() if vector is not None}
        missing = [text for text in looked_up if text not in found]
        for text, row in zip(missing, self.encoder.encode(missing, **prompt) if missing else [], strict=True):
            found[text] = row.copy()  # a view would keep the whole batch
            if len(text) <= LONGEST:
                self.kept.put((*key, text), found[text])
        return np.stack([found[text] for text in texts])
