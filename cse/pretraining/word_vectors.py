"""Counted word vectors (PPMI and SVD): initial word embeddings for a small model that sees little text.

Co-occurrence counts in a window -> positive pointwise mutual information (context distribution smoothed to the power
0.75, Levy, Goldberg and Dagan 2015) -> truncated SVD. The table is dense, so it suits some 20 thousand word pieces.
"""

from __future__ import annotations

import numpy as np
import torch

WINDOW = 5
SMOOTHING = 0.75
MAX_VOCABULARY = 24_000  # a dense float32 table of 2.3 GB
BLOCK = 2_000_000


def count_pairs(tokens: np.ndarray, vocabulary: int, window: int = WINDOW) -> torch.Tensor:
    """(V, V) float32 symmetric counts of token pairs at most `window` apart in the (n,) array `tokens`."""
    counts = torch.zeros(vocabulary * vocabulary)
    for start in range(0, len(tokens), BLOCK):
        block = torch.from_numpy(tokens[start : start + BLOCK].astype(np.int64))
        for distance in range(1, min(window, len(block) - 1) + 1):
            flat = block[:-distance] * vocabulary + block[distance:]
            counts.index_add_(0, flat, torch.ones(len(flat)))
    counts = counts.view(vocabulary, vocabulary)
    return counts + counts.T


def positive_pmi(counts: torch.Tensor) -> torch.Tensor:
    """(V, V) max(0, log p(w, c) / (p(w) p_smoothed(c))), computed in place of `counts`."""
    words = counts.sum(1)
    contexts = words.pow(SMOOTHING)
    contexts /= contexts.sum()
    counts /= words.clamp(min=1.0)[:, None]
    counts /= contexts.clamp(min=1e-12)[None, :]
    return counts.log_().clamp_(min=0.0)  # log 0 = -inf becomes 0


def word_vectors(tokens: np.ndarray, vocabulary: int, dimension: int, rms: float = 0.05, seed: int = 0) -> torch.Tensor:
    """(V, d) rows U sqrt(S) of the PPMI table's truncated SVD, each of root mean square `rms`; unseen tokens get noise.

    Raises ValueError if the vocabulary is too large for a dense table or too small for the dimension.
    """
    if not dimension < vocabulary <= MAX_VOCABULARY:
        raise ValueError(
            f"counted vectors need {dimension} < `vocabulary` <= {MAX_VOCABULARY:,}, not {vocabulary:,}; "
            "give another `vocabulary`, or turn off `head_start`"
        )
    torch.manual_seed(seed)
    noise = torch.randn(vocabulary, dimension)
    left, singular, _ = torch.svd_lowrank(positive_pmi(count_pairs(tokens, vocabulary)), q=dimension + 16, niter=3)
    vectors = (left * singular.sqrt())[:, :dimension]
    seen = vectors.norm(dim=1, keepdim=True) > 1e-6
    vectors = torch.where(seen, vectors, noise)
    return rms * dimension**0.5 * torch.nn.functional.normalize(vectors, dim=1)
