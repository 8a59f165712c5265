"""The effect of lower precision: scores of graded pairs, cosines of vectors with their float32 ones, and time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import cse
from cse.corpus.supervised import scored_pairs
from cse.encoder.devices import in_precision
from cse.encoder.encoder import Encoder
from cse.evaluation.metrics import correlation
from cse.vectors import cosines

PRECISIONS = ("no", "bf16", "int8")


@dataclass(frozen=True)
class PrecisionRow:
    """Spearman x 100 on the pairs, the smallest cosine with the float32 vectors, and seconds of processor time."""

    model: str
    precision: str
    spearman: float
    least_cosine: float
    seconds: float


def measure_precision(models: Sequence[str], pairs: Path, pooling: str | None = None) -> list[PrecisionRow]:
    """Encode the sentences of scored pairs by each model in each of `PRECISIONS`, on OpenVINO."""
    graded = scored_pairs(pairs)
    grades = [grade for grade, _, _ in graded]
    texts = [first for _, first, _ in graded] + [second for _, _, second in graded]
    found = []
    for model in models:
        exact = None
        for precision in PRECISIONS:
            vectors, seconds = _timed(in_precision(cse.load(model, pooling, backend="openvino"), precision), texts)
            exact = vectors if exact is None else exact
            score = correlation(cosines(*np.split(vectors, 2)), grades, str(pairs))
            found.append(PrecisionRow(model, precision, score, float(cosines(vectors, exact).min()), seconds))
    return found


def _timed(encoder: Encoder, texts: list[str]) -> tuple[np.ndarray, float]:
    encoder.encode(texts[:64])  # compiles the graph
    begun = time.process_time()
    vectors = encoder.encode(texts)
    return vectors, time.process_time() - begun
