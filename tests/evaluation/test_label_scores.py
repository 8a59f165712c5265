"""Agreement of vectors with labels, against counts by hand and the measures of retrieval."""

from collections import Counter

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from cse.evaluation.clustering import label_ndcg, label_scores, purity


def test_purity_counts_the_most_frequent_label_of_each_group() -> None:
    rng = np.random.default_rng(0)
    gold, groups = rng.integers(4, size=200), rng.choice([-1, 2, 7], size=200)
    by_hand = sum(Counter(gold[groups == group].tolist()).most_common(1)[0][1] for group in set(groups.tolist()))
    assert purity(gold, groups) == by_hand / 200
    assert purity(gold, gold) == purity(gold, np.arange(200)) == 1


def test_ndcg_is_that_of_scikit_learn_on_each_rows_cosines() -> None:
    rng = np.random.default_rng(1)
    vectors, gold = rng.normal(size=(60, 4)), np.append(rng.integers(3, size=59), 9)  # the last label is alone
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = []
    for row in range(59):
        others = np.arange(60) != row
        scores.append(ndcg_score([(gold[others] == gold[row]).astype(int)], [unit[others] @ unit[row]], k=10))
    assert label_ndcg(vectors, gold) == pytest.approx(np.mean(scores))


def test_separate_labels_score_100_and_shuffled_ones_chance() -> None:
    rng = np.random.default_rng(2)
    gold = np.repeat(np.arange(4), 50)
    vectors = np.eye(4)[gold] + rng.normal(scale=0.05, size=(200, 4))
    assert label_scores(vectors, gold.astype(str)) == {"neighbours": 100, "purity": 100, "nmi": 100, "ndcg@10": 100}
    chance = label_scores(vectors, rng.permutation(gold).astype(str))
    assert 15 < chance["neighbours"] < 35
    assert 25 < chance["purity"] < 45
    assert chance["nmi"] < 5


def test_texts_without_a_label_are_left_out() -> None:
    vectors, gold = np.random.default_rng(3).normal(size=(40, 5)), ["a", "b", "", "c"] * 10
    known = [row for row, label in enumerate(gold) if label]
    assert label_scores(vectors, gold) == label_scores(vectors[known], [gold[row] for row in known])


@pytest.mark.parametrize(
    ("labels", "message"),
    [(["a"] * 4, "all texts have the same label 'a'"), (list("abcd"), "each of the 4 texts has a label of its own"),
     ([], "no text has a label")],
)  # fmt: skip
def test_labels_that_say_nothing_are_refused(labels: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        label_scores(np.eye(4)[: len(labels)], labels)
