"""Clustering of short texts: k-means against the labels (ConPVP Table 6), ten seeds, and nearest neighbours' labels.

k is the number of labels; vectors are not normalised; scikit-learn's KMeans has default settings and seeds 0 to 9.
Since scikit-learn 1.4 a default run is one k-means++ start; before, it was the best of ten. The paper names no version;
its numbers probably used ten, which takes ten times as long and scored 0 to 3 points more where it was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cse.evaluation.retrieval import TOP, measures
from cse.evaluation.tasks import Repeats, Task, TaskData
from cse.evaluation.transfer import features, labelled_rows, labels
from cse.vectors import nearest_others

if TYPE_CHECKING:
    from cse.evaluation import Encode, Scores, Unit

SEEDS = range(10)  # of k-means
NEIGHBOURS = 5
SETS = (  # of ConPVP's Table 6
    "agnews", "biomedical", "googlenews_S", "googlenews_T", "googlenews_TS", "searchsnippets", "stackoverflow", "tweet",
)  # fmt: skip


def units(data: TaskData) -> dict[str, Unit]:
    """Return a unit for each .tsv file (label, text): the given file, or all in a folder, by name without .tsv.

    A unit returns {"accuracy", "accuracy_deviation", "nmi", "nmi_deviation", "neighbours"}: mean and sample deviation
    over the seeds of Hungarian accuracy and of normalised mutual information, and `neighbour_values`, x 100, two
    decimals; it encodes each distinct text in one call. Raises ValueError if there is no such file; a unit raises as
    `labelled_rows` does, and if the file has no more distinct texts than labels.
    """
    files = [data.folder] if data.folder.is_file() else sorted(data.folder.glob("*.tsv"))
    if not files:
        raise ValueError(f"{data.folder}: no .tsv file in it; give a folder of files with label<TAB>text lines")
    return {path.stem: partial(_score, path) for path in files}


def hungarian_accuracy(gold: np.ndarray, clusters: np.ndarray) -> float:
    """Share in [0, 1] of rows whose cluster is matched to their class, under the best one-to-one matching.

    Both are (N,) integers; rows of an unmatched class or cluster count as wrong.
    """
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics.cluster import contingency_matrix

    counts = contingency_matrix(gold, clusters)  # (classes, clusters)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(gold))


def neighbour_values(vectors: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Share (N,) in [0, 1] of each row's five nearest others of `vectors` (N, d), by cosine, with its label (N,)."""
    near = nearest_others(vectors, NEIGHBOURS)
    return (gold[near] == gold[:, None]).mean(axis=1)


def k_means(vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    """(N,) groups from 0 of vectors (N, d) by scikit-learn's KMeans with default settings."""
    from sklearn.cluster import KMeans

    return KMeans(count, random_state=seed).fit_predict(vectors)


def _score(path: Path, encode: Encode) -> Scores:
    rows = labelled_rows(path)
    names, gold = np.unique(labels(rows), return_inverse=True)
    if len(names) >= (texts := len({text for _, text in rows})):
        raise ValueError(f"{path}: {len(names)} labels for {texts} distinct texts; give more texts than labels")
    vectors = features(encode, rows)
    grouped = [k_means(vectors, len(names), seed) for seed in SEEDS]
    runs = [(hungarian_accuracy(gold, groups), nmi(gold, groups)) for groups in grouped]
    means, deviations = 100 * np.mean(runs, axis=0), 100 * np.std(runs, axis=0, ddof=1)
    return {
        "accuracy": round(float(means[0]), 2),
        "accuracy_deviation": round(float(deviations[0]), 2),
        "nmi": round(float(means[1]), 2),
        "nmi_deviation": round(float(deviations[1]), 2),
        "neighbours": round(100 * float(neighbour_values(vectors, gold).mean()), 2),
    }


def label_scores(vectors: np.ndarray, labels: Sequence[str]) -> dict[str, float]:
    """Return how well vectors (N, d) agree with N labels, x 100, two decimals; texts with the label "" are left out.

    The vectors are not normalised, as in `units`, whose `neighbours` and `nmi` these are. `neighbours`: share of the
    five nearest with the text's label; `purity` and `nmi` of k-means with a group per label, means of ten seeds;
    `ndcg@10` of each text's nearest, those with its label being relevant, over the texts whose label others have too.
    Raises ValueError for a single label and for a label per text.
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
    scores = {
        "neighbours": float(neighbour_values(vectors, gold).mean()),
        "purity": float(np.mean([purity(gold, group) for group in groups])),
        "nmi": float(np.mean([nmi(gold, group) for group in groups])),
        f"ndcg@{TOP}": label_ndcg(vectors, gold),
    }
    return {name: round(100 * value, 2) for name, value in scores.items()}


def purity(gold: np.ndarray, groups: np.ndarray) -> float:
    """Share in [0, 1] of rows (N,) whose label is the most frequent one of their group.

    Manning, Raghavan and Schütze 2008, equation 16.1.
    """
    from sklearn.metrics.cluster import contingency_matrix

    return float(contingency_matrix(gold, groups).max(axis=0).sum() / len(gold))


def nmi(gold: np.ndarray, groups: np.ndarray) -> float:
    """Normalised mutual information of labels and groups (N,), in [0, 1]."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(gold, groups))


def label_ndcg(vectors: np.ndarray, gold: np.ndarray) -> float:
    """nDCG@10 in [0, 1] of each row's nearest others by cosine, those with its label (N,) being relevant with gain 1.

    Rows with a label of their own are left out.
    """
    scores = []
    for row, near in enumerate(nearest_others(vectors, TOP)):
        if relevant := {*np.flatnonzero(gold == gold[row]).tolist()} - {row}:
            scores.append(measures(near.tolist(), relevant)[f"ndcg@{TOP}"])
    return float(np.mean(scores))


TASK = Task(
    name="clustering",
    units=units,
    layout="*.tsv",
    shown=("accuracy", "nmi", "neighbours"),
    title="Clustering",
    summary="k-means on the vectors against the topics of short texts.",
    repeats=Repeats(len(SEEDS), "seeds of k-means", {"accuracy": "accuracy_deviation", "nmi": "nmi_deviation"}),
    sets=SETS,
    options=("final_period",),
)
