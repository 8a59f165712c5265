"""Similarity functions of vectors by their names in sentence-transformers; larger values mean more similar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch

    Vectors = np.ndarray | torch.Tensor | Sequence[Any]

    Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

# name -> for all N x M pairs of rows, for row i with row i; distances are negated
FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "cosine": (lambda a, b: _unit(a) @ _unit(b).T, lambda a, b: (_unit(a) * _unit(b)).sum(-1)),
    "dot": (lambda a, b: a @ b.T, lambda a, b: (a * b).sum(-1)),
    "euclidean": (lambda a, b: -_distances(a, b, 2), lambda a, b: -(a - b).square().sum(-1).sqrt()),
    "manhattan": (lambda a, b: -_distances(a, b, 1), lambda a, b: -(a - b).abs().sum(-1)),
}


class Similarities:
    """A model's similarity function: `similarity_fn_name` is cosine, dot, euclidean or manhattan.

    Setting it raises ValueError for any other name; None means cosine.
    """

    _similarity = "cosine"

    @property
    def similarity_fn_name(self) -> str:
        """The name of the function used by `similarity` and `similarity_pairwise`."""
        return self._similarity

    @similarity_fn_name.setter
    def similarity_fn_name(self, value: str | Enum | None) -> None:
        name = value.value if isinstance(value, Enum) else value  # sentence-transformers has an enum of names
        if name is not None and name not in tuple(FUNCTIONS):  # it may be a list
            raise ValueError(f"`similarity_fn_name` is {name!r}; choose from {', '.join(FUNCTIONS)}")
        self._similarity = name or "cosine"

    def similarity(self, embeddings1: Vectors, embeddings2: Vectors) -> torch.Tensor:
        """Return (N, M) similarities of N with M vectors; a vector (d,) counts as one, and distances are negated."""
        return FUNCTIONS[self._similarity][0](_rows(embeddings1), _rows(embeddings2))

    def similarity_pairwise(self, embeddings1: Vectors, embeddings2: Vectors) -> torch.Tensor:
        """Return (N,) similarities of N vectors with as many others, row by row."""
        return FUNCTIONS[self._similarity][1](_rows(embeddings1), _rows(embeddings2))


def _distances(a: torch.Tensor, b: torch.Tensor, p: float) -> torch.Tensor:
    import torch

    return torch.cdist(a, b, p=p)


def _rows(vectors: Vectors) -> torch.Tensor:
    """Return (N, d) float32 rows of an array, a tensor, or a sequence of rows."""
    import torch

    if isinstance(vectors, list | tuple):
        vectors = torch.stack([torch.as_tensor(row) for row in vectors])
    return torch.atleast_2d(torch.as_tensor(vectors)).float()


def _unit(rows: torch.Tensor) -> torch.Tensor:
    """Return (N, d) rows of length 1; a zero row stays zero, so its cosine is 0."""
    from torch.nn.functional import normalize

    return normalize(rows, dim=-1)
