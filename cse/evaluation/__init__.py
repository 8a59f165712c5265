"""Evaluation tasks: each is a dictionary of units (STS12, MR, agnews, …), and a unit maps an `encode` to its scores.

A task is a value in a module that `cse.evaluation.tasks` lists by its name. Its `units` checks that the data exist and
loads nothing heavy; the harness runs the units one by one, so results survive an interruption. Evaluators depend on
`encode` functions; the geometry alone reads the tokens of an encoder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Encode = Callable[..., np.ndarray]  # of a list of texts; an encoder's has an argument `prompt`, too
    Scores = dict[str, Any]  # a unit's scores by name, and the lists that figures are drawn from; JSON values
    Unit = Callable[[Encode], Scores]
    Search = Callable[[np.ndarray, np.ndarray, int], np.ndarray]  # corpus (n, d), queries (q, d), k -> rows (q, k)
    Tokenise = Callable[[list[str]], list[list[int]]]  # texts -> their token ids
    EncodeIds = Callable[[list[list[int]]], np.ndarray]  # N lists of token ids -> vectors (N, d)
