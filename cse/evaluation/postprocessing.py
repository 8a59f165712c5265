"""Postprocessing of an encoder's vectors, fitted on sentences: BERT-whitening (Su et al. 2021).

It is a baseline of PromptBERT's Table 5. The encoder is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cse.encoder.encoder import Encoder
from cse.evaluation.representations import Representation, TextEncoder
from cse.files.checksums import array_digest

SMALLEST_VARIANCE = 1e-10  # relative to the largest; smaller variances are rounding errors


def fit_whitening(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and matrix (d, k), W = U diag(1 / sqrt(s)), of (N, d) vectors (BERT-whitening, algorithm 1).

    On these (x - mean) @ matrix has mean 0 and the identity as covariance.
    All directions with variance are kept: states after a layer norm satisfy one linear equation, and whitening would
    amplify rounding errors in that direction. Raises ValueError if there are no more vectors than dimensions, or all
    vectors are the same.
    """
    count, width = vectors.shape
    if count <= width:
        raise ValueError(f"{count} vectors have no covariance of {width} dimensions; fit on more texts")
    values = vectors.astype(np.float64)
    directions, variances, _ = np.linalg.svd(np.cov(values, rowvar=False).reshape(width, width))
    kept = int((variances > SMALLEST_VARIANCE * variances[0]).sum())
    if not kept:
        raise ValueError(f"the vectors vary in 0 directions, not {width}; fit on other texts")
    return values.mean(0), directions[:, :kept] / np.sqrt(variances[:kept])


def whitened(encoder: TextEncoder, texts: Sequence[str]) -> Representation:
    """`encoder` followed by a whitening fitted on its vectors of `texts`; repeated texts count repeatedly.

    Raises ValueError as `fit_whitening` does.
    """
    mean, matrix = fit_whitening(encoder.encode(texts))

    def embed(texts: list[str], batch_size: int, **prompt: Any) -> np.ndarray:
        vectors = encoder.encode(texts, batch_size=batch_size, **prompt)
        return ((vectors - mean) @ matrix).astype(np.float32)

    mark = array_digest({"mean": mean, "matrix": matrix}, encoder.fingerprint)
    return Representation(f"{encoder.name}+whitening", mark, embed, encoder if isinstance(encoder, Encoder) else None)
