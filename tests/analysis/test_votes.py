"""Votes are kept one by one in a JSON file, which goes on only with the models and texts that it was begun with."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import cse.analysis.votes as asking
from cse.analysis.votes import (
    Judged,
    Judgement,
    Question,
    Setup,
    decisive,
    questions,
    texts_digest,
    verdict,
)

TEXTS = [f"text {number}" for number in range(9)]
QUESTIONS = [Question(row, (0, 1), (2, 3), swapped=bool(row % 2)) for row in range(4, 9)]
SETUP = Setup(
    Judged("a", None, "1a"), Judged("b", "mean", "2b"), "a.csv", "text", None, texts_digest(TEXTS), len(TEXTS), 42
)


def judgement(path: Path | None, votes: int = 3, **changes: object) -> Judgement:
    return Judgement(replace(SETUP, **changes), votes, path)


def test_the_last_vote_is_taken_back_and_asked_again(tmp_path):
    session = judgement(tmp_path / "votes.json")
    for question, vote in zip(QUESTIONS, ("start", "skip", "same"), strict=False):
        session.add(question, TEXTS, vote)
    session.undo()
    session.undo()
    assert [question.row for question in session.open(QUESTIONS, TEXTS)] == [5, 6, 7, 8]
    assert [vote["vote"] for vote in json.loads(session.path.read_text())["votes"]] == ["start"]
    for _ in range(2):
        session.undo()
    assert (session.answers, session.counted) == ([], 0)


@pytest.mark.parametrize(("result", "start"), [(21, 5), (7, 7), (0, 12)])
def test_p_and_interval_are_those_of_scipy(result, start):
    outcome = verdict(["result"] * result + ["same"] * 4 + ["start"] * start + ["skip"] * 3)
    assert (outcome.start, outcome.result, outcome.same, outcome.decided) == (start, result, 4, result + start)
    expected = binomtest(result, result + start)
    assert outcome.p == pytest.approx(expected.pvalue)
    assert (outcome.low, outcome.high) == pytest.approx(expected.proportion_ci(method="wilson"))
    assert outcome.share == result / (result + start)


def test_so_many_votes_decide_and_one_less_does_not():
    for votes in range(1, 61):
        better = [bool(verdict(["result"] * most + ["start"] * (votes - most)).better) for most in range(votes + 1)]
        needed = decisive(votes)
        assert better[votes // 2 + 1 :] == [most >= needed for most in range(votes // 2 + 1, votes + 1)]
    assert [decisive(votes) for votes in (5, 6, 20, 60)] == [6, 6, 15, 39]


@pytest.mark.parametrize(
    ("result", "start", "same", "better", "ahead", "sentence"),
    [
        (21, 5, 4, "result", "result", "RESULT is better: 21 of 26 votes, p = .002"),
        (15, 11, 0, None, "result", "not distinguishable: 15 of 26 votes for RESULT, p = .56"),
        (0, 0, 5, None, None, "not distinguishable: no vote for either, 5 for the same"),
    ],
)
def test_the_verdict_is_one_plain_sentence(result, start, same, better, ahead, sentence):
    outcome = verdict(["result"] * result + ["start"] * start + ["same"] * same)
    assert (outcome.better, outcome.ahead, outcome.sentence()) == (better, ahead, sentence)


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
def test_the_texts_whose_neighbours_the_other_model_ranks_lowest_come_first(at_once, monkeypatch):
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
