"""Tables of evaluation results: a model a line, the published row beneath where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cse.benchmark.published import SETS

if TYPE_CHECKING:
    from cse.evaluation import Scores

# What a task shows of each set, in this order; a set that lacks a score leaves its place out.
SHOWN = {
    "sts": ("spearman", "pearson", "subset_mean"),
    "transfer": ("accuracy", "f1"),
    "few-shot": ("accuracy", "deviation"),
    "clustering": ("accuracy", "nmi"),
    "retrieval": ("ndcg@10", "mrr@10", "recall@10", "recall@100"),
    "geometry": ("anisotropy", "alignment", "uniformity", "separation", "K=0", "K=100"),
}
MAIN = {task: keys[0] for task, keys in SHOWN.items()}


def average(task: str, scores: Mapping[str, Scores]) -> float | None:
    """The papers' average of a task's main score over its sets; None where sets are missing or it has no average."""
    if task not in SETS or not all(name in scores for name in SETS[task]):
        return None
    return round(sum(scores[name][MAIN[task]] for name in SETS[task]) / len(SETS[task]), 2)
