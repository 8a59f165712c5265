"""Postprocessing of an encoder's vectors, fitted on sentences: BERT-whitening and BERT-flow.

Su et al. 2021 and Li et al. 2020, baselines of PromptBERT's Table 5. The encoder is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from cse.encoder.backbone import as_arrays
from cse.encoder.encoder import Encoder
from cse.evaluation.representations import Representation, TextEncoder
from cse.files.checksums import array_digest

LEVELS, DEPTH, HIDDEN = 3, 3, 32  # BERT-flow's released configuration, as the next line
LEARNING_RATE, BATCH_SIZE = 1e-3, 32  # one epoch
SMALLEST_STD = 1e-6  # keeps constant columns finite
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

    def transform(vectors: np.ndarray) -> np.ndarray:
        return ((vectors - mean) @ matrix).astype(np.float32)

    return _followed(encoder, "whitening", transform, {"mean": mean, "matrix": matrix})


class _Step(nn.Module):
    """A step of Glow on (B, width): activation norm, a linear map initialised as a permutation, an additive coupling.

    The linear map is a permutation and two triangular matrices with unit diagonals, so the determinant is the product
    of the norm's scales; the coupling is initialised as the identity.
    """

    order: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shift, self.log_scale = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("order", torch.randperm(width))
        self.lower, self.upper = nn.Parameter(torch.zeros(width, width)), nn.Parameter(torch.zeros(width, width))
        self.kept = width // 2
        last = nn.Linear(HIDDEN, width - self.kept)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.coupling = nn.Sequential(
            nn.Linear(self.kept, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), last
        )

    def forward(self, x: torch.Tensor, start: bool) -> torch.Tensor:
        """(B, width) -> (B, width); `start` sets the norm so that the columns of x get mean 0 and variance 1."""
        if start:
            self.shift.data.copy_(-x.mean(0))
            self.log_scale.data.copy_(-x.std(0, correction=0).clamp(min=SMALLEST_STD).log())
        identity = torch.eye(len(self.shift))
        lower, upper = self.lower.tril(-1) + identity, self.upper.triu(1) + identity
        x = ((x + self.shift) * self.log_scale.exp())[:, self.order] @ lower.T @ upper.T
        kept, moved = x[:, : self.kept], x[:, self.kept :]
        return torch.cat([kept, moved + self.coupling(kept)], 1)


class Flow(nn.Module):
    """Glow on vectors (B, width), width >= 2: each level splits off the first half of its columns as output."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.levels: Any = nn.ModuleList()  # untyped: torch does not say that it holds lists of steps
        for _ in range(LEVELS):
            if width > 1:  # a coupling needs two columns
                self.levels.append(nn.ModuleList(_Step(width) for _ in range(DEPTH)))
                width -= width // 2

    def forward(self, x: torch.Tensor, start: bool = False) -> torch.Tensor:
        """(B, width) -> (B, width); `start` initialises each activation norm with its input, as Glow does."""
        final: list[torch.Tensor] = []
        for level in self.levels:
            for step in level:
                x = step(x, start)
            final.append(x[:, : step.kept])
            x = x[:, step.kept :]
        return torch.cat([*final, x], 1)

    def log_determinant(self) -> torch.Tensor:
        """(): log |det| of the Jacobian, the same for every vector because the couplings are additive."""
        return torch.stack([step.log_scale.sum() for level in self.levels for step in level]).sum()

    def log_likelihood(self, x: torch.Tensor) -> torch.Tensor:
        """(B,) log-likelihood in nats of vectors (B, width) under a standard normal prior."""
        return torch.distributions.Normal(0.0, 1.0).log_prob(self(x)).sum(1) + self.log_determinant()

    @torch.no_grad()
    def transform(self, vectors: np.ndarray) -> np.ndarray:
        """(N, width) -> (N, width) float32, not normalised."""
        return self(torch.from_numpy(vectors)).numpy()


def fit_flow(vectors: np.ndarray, seed: int = 42) -> Flow:
    """Fit a flow to (N, d) float32 vectors, d >= 2, by maximum likelihood: one epoch of Adam.

    The activation norms are initialised with all vectors instead of Glow's first batch, which may be small.
    """
    data = torch.from_numpy(vectors)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        flow = Flow(data.shape[1])
        with torch.no_grad():
            flow(data, start=True)
        optimizer = torch.optim.Adam(flow.parameters(), lr=LEARNING_RATE)
        for rows in torch.randperm(len(data)).split(BATCH_SIZE):
            optimizer.zero_grad()
            (-flow.log_likelihood(data[rows]).mean()).backward()
            optimizer.step()
    return flow.requires_grad_(False)


def flowed(encoder: TextEncoder, texts: Sequence[str]) -> Representation:
    """`encoder` followed by a flow fitted on its vectors of `texts`."""
    flow = fit_flow(encoder.encode(texts))
    return _followed(encoder, "flow", flow.transform, as_arrays(flow.state_dict()))


def _followed(
    encoder: TextEncoder, label: str, transform: Callable[[np.ndarray], np.ndarray], fitted: Mapping[str, np.ndarray]
) -> Representation:
    def embed(texts: list[str], batch_size: int, **prompt: Any) -> np.ndarray:
        return transform(encoder.encode(texts, batch_size=batch_size, **prompt))

    mark = array_digest(fitted, encoder.fingerprint)
    return Representation(f"{encoder.name}+{label}", mark, embed, encoder if isinstance(encoder, Encoder) else None)
