"""A corpus of given texts, in place of one that a visitor uploads."""

from collections.abc import Sequence

import numpy as np

from cse.app.corpus.corpora import ChosenCorpus
from cse.app.models.models import Column


class GivenCorpus(ChosenCorpus):
    """Texts with labels; every model has encoded them."""

    key, label = "own", "tickets.csv"

    def __init__(self, texts: Sequence[str], labels: Sequence[str] | None = None) -> None:
        self._texts, self._labels = texts, labels

    @property
    def texts(self) -> Sequence[str]:
        return self._texts

    @property
    def labels(self) -> Sequence[str] | None:
        return self._labels

    def vectors(self, column: Column, encoder) -> np.ndarray:
        return encoder.encode(list(self._texts), normalize_embeddings=True)
