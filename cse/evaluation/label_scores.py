"""Agreement of vectors with labels: neighbours, nDCG, and purity and NMI of groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from cse.evaluation.clustering import k_means, same_label_neighbours
from cse.evaluation.retrieval import TOP, measures
from cse.vectors import nearest_others

SEEDS = range(3)  # of k-means


def label_scores(vectors: np.ndarray, labels: Sequence[str]) -> dict[str, float]:
    """Return how well vectors (N, d) agree with N labels, x 100, two decimals; texts with the label "" are left out.

    `neighbours`: share of the five nearest with the text's label; `purity` and `nmi` of k-means with a group per label,
    means of three seeds; `ndcg@10` of each text's nearest, those with its label being relevant, over the texts whose
    label others have too. Raises ValueError for a single label and for a label per text.
    """
    known = [row for row, label in enumerate(labels) if label]
    vectors = vectors[known]
    names, gold = np.unique([labels[row] for row in known], return_inverse=True)
    if not len(names):
        raise ValueError("no text has a label")
    if len(names) == 1:
        raise ValueError(f"all texts have the same label {str(names[0])!r}; scores need two labels or more")
    if len(names) == len(gold):
        raise ValueError(f"each of the {len(gold)} texts has a label of its own; give a column whose labels repeat")
    groups = [k_means(vectors, len(names), seed) for seed in SEEDS]
    found = {
        "neighbours": same_label_neighbours(vectors, gold),
        "purity": float(np.mean([purity(gold, group) for group in groups])),
        "nmi": float(np.mean([nmi(gold, group) for group in groups])),
        f"ndcg@{TOP}": label_ndcg(vectors, gold),
    }
    return {name: round(100 * value, 2) for name, value in found.items()}


def purity(gold: np.ndarray, groups: np.ndarray) -> float:
    """Share in [0, 1] of rows (N,) whose label is the most frequent one of their group.

    Manning, Raghavan and Schütze 2008, equation 16.1.
    """
    _, places = np.unique(groups, return_inverse=True)
    counts = np.zeros((places.max() + 1, gold.max() + 1), dtype=np.int64)  # (groups, labels)
    np.add.at(counts, (places, gold), 1)
    return float(counts.max(axis=1).sum() / len(gold))


def nmi(gold: np.ndarray, groups: np.ndarray) -> float:
    """Normalised mutual information of labels and groups (N,), in [0, 1]."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(gold, groups))


def label_ndcg(vectors: np.ndarray, gold: np.ndarray) -> float:
    """nDCG@10 in [0, 1] of each row's nearest others by cosine, those with its label (N,) being relevant with gain 1.

    Rows with a label of their own are left out.
    """
    members: dict[int, set[str | None]] = defaultdict(set)
    for row, label in enumerate(gold.tolist()):
        members[label].add(str(row))
    scores = []
    for row, near in enumerate(nearest_others(vectors, TOP).tolist()):
        if relevant := members[int(gold[row])] - {str(row)}:
            scores.append(measures([str(other) for other in near], relevant)[f"ndcg@{TOP}"])
    return float(np.mean(scores))
