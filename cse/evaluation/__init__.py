"""Evaluation tasks: each is a dictionary of units (STS12, MR, agnews, …), and a unit maps an `encode` to its scores.

A task is the value `TASK` of its own module and is found by name in `cse.evaluation.tasks`. Its `units` checks that the
data are there and reads nothing heavy; the harness runs unit after unit, so results survive an interruption. No
evaluator knows of models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Encode = Callable[[list[str]], np.ndarray]
    Scores = dict[str, Any]  # a unit's numbers by name, and the lists that figures are drawn from: values of JSON
    Unit = Callable[[Encode], Scores]
    Search = Callable[[np.ndarray, np.ndarray, int], np.ndarray]  # corpus (n, d), queries (q, d), k -> rows (q, k)
