"""Baselines without training: averages of the tokens predicted at [MASK], and whitened vectors (BERT-whitening).

Each returns a `Representation`, which has the interface of an `Encoder`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cse.encoder.encoder import Encoder
from cse.files.checksums import array_digest
from cse.files.writing import digest


@dataclass(frozen=True)
class Representation:
    """What is called as an `Encoder` is, from a function: `embed(texts, batch_size)` returns (N, d) float32.

    With `prompted`, the encoder whose vectors they are made of, `embed` has an argument `prompt`, too.
    """

    name: str
    fingerprint: str
    embed: Callable[..., np.ndarray]
    prompted: Encoder | None = None

    def encode(self, inputs: str | Sequence[str], *, batch_size: int = 64, **prompt: str) -> np.ndarray:
        """(N, d) float32 vectors of N sentences, (d,) of a single string; rows are not normalised."""
        vectors = self.embed([inputs] if isinstance(inputs, str) else list(inputs), batch_size, **prompt)
        return vectors[0] if isinstance(inputs, str) else vectors


TextEncoder = Encoder | Representation


def top_k_tokens(encoder: Encoder, denoise: bool, k: int = 200) -> Representation:
    """Encode sentences as the mean static embedding of their k likeliest tokens at [MASK], weighted by probability.

    PromptBERT, Eq. 3, k of Table 9. The tokens are those of `Encoder.top_tokens`: its default prompt if the encoder
    reads no mask, no special tokens, denoised by the difference of logits. Raises ValueError unless
    1 <= k <= vocabulary.
    """
    most = len(encoder.tokenizer) - len(set(encoder.tokenizer.all_special_ids))
    if not 1 <= k <= most:
        raise ValueError(f"`k` is {k}; choose between 1 and {most}")
    label = f"top{k}{'-denoised' if denoise else ''}"

    def embed(texts: list[str], batch_size: int) -> np.ndarray:
        rows = encoder.rows_of(texts, [encoder.prompt] * len(texts))
        vectors = np.empty((len(texts), encoder.dim), np.float32)
        for batch in np.split(np.argsort(-rows.lengths, kind="stable"), range(batch_size, len(texts), batch_size)):
            spoken, alone = encoder.mask_states(rows[batch])
            logits = encoder.word_logits(spoken)
            if denoise:
                logits = logits - encoder.word_logits(alone)
            logits[:, encoder.tokenizer.all_special_ids] = -np.inf
            best = np.argpartition(-logits, k - 1, axis=1)[:, :k]
            # Renormalising the probabilities of the best is a softmax over their logits.
            weights = np.take_along_axis(logits, best, 1)
            weights = np.exp(weights - weights.max(1, keepdims=True))
            weights /= weights.sum(1, keepdims=True)
            vectors[batch] = np.einsum("bk,bkd->bd", weights, encoder.word_embeddings()[best])
        return vectors

    return Representation(f"{encoder.name}+{label}", digest(encoder.fingerprint, label), embed)


SMALLEST_VARIANCE = 1e-10  # relative to the largest; smaller variances are rounding errors


def fit_whitening(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and matrix (d, k), W = U diag(1 / sqrt(s)), of (N, d) vectors (Su et al. 2021, algorithm 1).

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
    """`encoder` followed by `fit_whitening` of its vectors of `texts`; repeated texts count (PromptBERT Table 5)."""
    mean, matrix = fit_whitening(encoder.encode(texts))

    def embed(texts: list[str], batch_size: int, **prompt: Any) -> np.ndarray:
        vectors = encoder.encode(texts, batch_size=batch_size, **prompt)
        return ((vectors - mean) @ matrix).astype(np.float32)

    mark = array_digest({"mean": mean, "matrix": matrix}, encoder.fingerprint)
    return Representation(f"{encoder.name}+whitening", mark, embed, encoder if isinstance(encoder, Encoder) else None)
