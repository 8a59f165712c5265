"""Changes by a training: the texts whose nearest ones differ most from those at its start, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

import cse

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder

MOST_COMPARED = 500  # texts of the corpus, drawn at random
SEED = 0


@dataclass(frozen=True)
class Changes:
    """Texts with their nearest ones `before` and `after`, the most changed first; among `compared` texts.

    `neighbours` are the percents of the five nearest texts with a text's label, before and after, if there are labels.
    """

    texts: Sequence[dict[str, Any]] = ()
    compared: int = 0
    neighbours: tuple[float, float] | None = None


@dataclass
class Comparison:
    """Compares models with the `start` on a sample of texts, whose vectors by the start are computed once."""

    start: str
    texts: list[str]
    labels: list[str] | None
    _vectors: np.ndarray | None = field(default=None, repr=False)

    @classmethod
    def of(cls, start: str, texts: Sequence[str], labels: Sequence[str] | None) -> Comparison:
        """Return a comparison on distinct texts, those with a label if there are labels."""
        rows = list({text: row for row, text in enumerate(texts) if labels is None or labels[row]}.values())
        chosen = sorted(Random(SEED).sample(rows, min(MOST_COMPARED, len(rows))))
        return cls(start, [texts[row] for row in chosen], [labels[row] for row in chosen] if labels else None)

    def with_model(self, folder: Path) -> Changes:
        """Return the changes from the start to the model in a folder. Raises ValueError or OSError if it cannot."""
        from cse.adaptation.report import changed_neighbours
        from cse.evaluation.clustering import label_scores

        if self._vectors is None:
            self._vectors = self._read(cse.load(self.start))
        vectors = self._vectors, self._read(cse.load(str(folder)))
        changed = changed_neighbours(*vectors, self.texts) if len(self.texts) > 2 else []
        if not self.labels:
            return Changes(changed, len(self.texts))
        before, after = (label_scores(each, self.labels)["neighbours"] for each in vectors)
        return Changes(changed, len(self.texts), (before, after))

    def _read(self, encoder: Encoder) -> np.ndarray:
        return encoder.encode(self.texts)
