"""Questions for blind votes: the texts on which two models differ most, and labels that vote in a person's place."""

import numpy as np
import pytest

import cse.analysis.votes as asking
from cse.analysis.votes import questions, verdict, vote_by_label
from cse.evaluation.clustering import same_label_neighbours


def by_hand(vectors: np.ndarray, row: int) -> list[int]:
    """A row's five nearest others, one cosine at a time."""

    def cosine(other: int) -> float:
        first, second = vectors[row], vectors[other]
        return float(first @ second / np.sqrt((first @ first) * (second @ second)))

    return sorted((other for other in range(len(vectors)) if other != row), key=lambda other: -cosine(other))[:5]


def rank_by_hand(vectors: np.ndarray, row: int, others: list[int]) -> float:
    """The mean place of rows among all others by cosine."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = [other for other in np.argsort(-(unit @ unit[row]), kind="stable").tolist() if other != row]
    return float(np.mean([order.index(other) for other in others]))


@pytest.mark.parametrize("at_once", [1, 1 << 24])
def test_the_texts_whose_neighbours_the_other_model_ranks_lowest_come_first(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "COSINES_AT_ONCE", at_once)
    monkeypatch.setattr(asking, "MIN_SHUFFLED", 8)
    rng = np.random.default_rng(0)
    start, result = rng.normal(size=(50, 3)), rng.normal(size=(50, 6))
    result[:, :3] += 2 * start
    asked = questions(start, result, seed=1)
    for item in asked:
        assert (list(item.start), list(item.result)) == (by_hand(start, item.row), by_hand(result, item.row))
    by_row = {
        row: min(rank_by_hand(result, row, by_hand(start, row)), rank_by_hand(start, row, by_hand(result, row)))
        for row in range(50)
    }
    order = [by_row[item.row] for item in asked]
    assert set(order[:8]) == set(sorted(by_row.values())[-8:])  # in random order
    assert order[:8] != sorted(order[:8], reverse=True)
    assert order[8:] == sorted(order[8:], reverse=True)
    agreed = set(range(50)) - {item.row for item in asked}
    assert all(set(by_hand(start, row)) == set(by_hand(result, row)) for row in agreed)


def test_the_seed_decides_order_and_sides_and_both_sides_come_first() -> None:
    start, result = np.random.default_rng(0).normal(size=(2, 60, 4))
    asked = questions(start, result, seed=3)
    assert asked == questions(start, result, seed=3) != questions(start, result, seed=4)
    assert 15 < sum(item.swapped for item in asked) < 45
    with pytest.raises(ValueError, match="different numbers of vectors: 60 and 59"):
        questions(start, result[1:], seed=3)


def test_thirty_votes_of_labels_name_the_better_of_two_models_in_nine_of_ten_cases() -> None:
    """Synthetic models read the same texts with more or less noise; pairs of 3 to 15 points of label neighbours."""
    rng = np.random.default_rng(5)
    gold = rng.integers(6, size=600)
    texts = rng.normal(size=(6, 16))[gold] + rng.normal(scale=1.2, size=(600, 16))
    models = [texts + rng.normal(scale=scale, size=texts.shape) for scale in (0.6, 0.8, 1.0, 1.2, 1.4, 1.6)]
    shares = [same_label_neighbours(vectors, gold) for vectors in models]
    pairs = [(one, other) for one in range(6) for other in range(6) if 0.03 <= abs(shares[one] - shares[other]) <= 0.15]
    right = 0
    for first, second in pairs:
        asked = questions(models[first], models[second], seed=first)[:30]
        ahead = verdict(vote_by_label(question, gold.tolist()) for question in asked).ahead
        right += ahead == ("result" if shares[second] > shares[first] else "start")
    assert len(pairs) >= 12
    assert right >= 0.9 * len(pairs)
