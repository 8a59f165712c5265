"""Hungarian accuracy by hand and by brute force, the unit against a slow loop; refusals."""

import statistics
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import ndcg_score, normalized_mutual_info_score

from cse.evaluation.clustering import hungarian_accuracy, label_ndcg, label_scores, neighbour_values, units
from cse.evaluation.tasks import TaskData


def brute_force(gold: Sequence[int], clusters: Sequence[int], size: int) -> float:
    """The best accuracy of any renaming of `size` clusters."""
    return max(
        sum(names[cluster] == label for label, cluster in zip(gold, clusters, strict=True)) / len(gold)
        for names in permutations(range(size))
    )


def planar(texts: list[str]) -> np.ndarray:
    return np.array([[float(word) for word in text.split()] for text in texts], np.float32)


def blobs(folder: Path, labels: Sequence[str], spread: float) -> list[tuple[str, str]]:
    """Write 20 points around the centre of each label as toy.tsv, and the first one again; return the rows."""
    rng = np.random.default_rng(5)
    centres = {"left": (-4, 0), "right": (4, 0), "top": (0, 6)}
    points = [(label, centres[label] + spread * rng.normal(size=2)) for label in labels for _ in range(20)]
    rows = [(label, " ".join(f"{x:.3f}" for x in point)) for label, point in [*points, points[0]]]
    (folder / "toy.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    return rows


def test_hungarian_accuracy_is_the_maximum_over_all_renamings():
    rng = np.random.default_rng(0)
    for _ in range(20):
        gold, clusters = np.append(rng.integers(0, 4, 30), 3), np.append(rng.integers(0, 4, 30), 3)
        assert hungarian_accuracy(gold, clusters) == pytest.approx(brute_force(gold, clusters, 4))


@pytest.mark.parametrize("count", [4, 1500])  # the last in two parts
def test_same_label_neighbours_are_those_of_all_angles_sorted(count):
    rng = np.random.default_rng(count)
    vectors, gold = rng.normal(size=(count, 3)), rng.integers(0, 3, count)
    lengths = np.sqrt((vectors**2).sum(1))
    angles = np.arccos(np.clip(vectors @ vectors.T / np.outer(lengths, lengths), -1, 1))
    np.fill_diagonal(angles, np.inf)
    nearest = [sorted(range(count), key=angles[row].__getitem__)[: min(5, count - 1)] for row in range(count)]
    shares = [sum(gold[i] == gold[row] for i in rows) / len(rows) for row, rows in enumerate(nearest)]
    assert neighbour_values(vectors, gold).mean() == pytest.approx(sum(shares) / count)
    assert neighbour_values(vectors, np.zeros(count)).mean() == 1


def test_scores_are_means_and_sample_deviations_over_seeds_0_to_9(tmp_path):
    rows = blobs(tmp_path, ["left", "right", "top"], spread=3.0)
    gold = [["left", "right", "top"].index(label) for label, _ in rows]
    accuracies, shared = [], []
    for seed in range(10):
        clusters = KMeans(n_clusters=3, random_state=seed).fit(planar([text for _, text in rows])).labels_.tolist()
        accuracies.append(100 * brute_force(gold, clusters, 3))
        shared.append(100 * normalized_mutual_info_score(gold, clusters))
    assert len(set(accuracies)) > 1
    assert units(TaskData(tmp_path))["toy"](planar) == {
        "accuracy": round(statistics.mean(accuracies), 2),
        "accuracy_deviation": round(statistics.stdev(accuracies), 2),
        "nmi": round(statistics.mean(shared), 2),
        "nmi_deviation": round(statistics.stdev(shared), 2),
        "neighbours": round(
            100 * float(neighbour_values(planar([text for _, text in rows]), np.array(gold)).mean()), 2
        ),
    }


def test_a_set_that_cannot_be_clustered_is_refused(tmp_path):
    (tmp_path / "bad.tsv").write_text("1\ta\n2\tb\n")
    with pytest.raises(ValueError, match=r"bad.tsv: 2 labels for 2 distinct texts"):
        units(TaskData(tmp_path))["bad"](planar)


def test_ndcg_is_that_of_scikit_learn_on_each_rows_cosines():
    rng = np.random.default_rng(1)
    vectors, gold = rng.normal(size=(60, 4)), np.append(rng.integers(3, size=59), 9)  # the last label is alone
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = []
    for row in range(59):
        others = np.arange(60) != row
        scores.append(ndcg_score([(gold[others] == gold[row]).astype(int)], [unit[others] @ unit[row]], k=10))
    assert label_ndcg(vectors, gold) == pytest.approx(np.mean(scores))


def test_separate_labels_score_100_and_shuffled_ones_chance():
    rng = np.random.default_rng(2)
    gold = np.repeat(np.arange(4), 50)
    vectors = np.eye(4)[gold] + rng.normal(scale=0.05, size=(200, 4))
    assert label_scores(vectors, gold.astype(str)) == {"neighbours": 100, "purity": 100, "nmi": 100, "ndcg@10": 100}
    chance = label_scores(vectors, rng.permutation(gold).astype(str))
    assert 15 < chance["neighbours"] < 35
    assert 25 < chance["purity"] < 45
    assert chance["nmi"] < 5


def test_texts_without_a_label_are_left_out():
    vectors, gold = np.random.default_rng(3).normal(size=(40, 5)), ["a", "b", "", "c"] * 10
    known = [row for row, label in enumerate(gold) if label]
    assert label_scores(vectors, gold) == label_scores(vectors[known], [gold[row] for row in known])
