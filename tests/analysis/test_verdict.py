"""The verdict of votes: sign test and interval against scipy, and its sentence."""

import pytest
from scipy.stats import binomtest

from cse.analysis.votes import decisive, verdict


@pytest.mark.parametrize(("result", "start"), [(21, 5), (5, 21), (7, 7), (1, 0), (0, 12), (30, 10)])
def test_p_and_interval_are_those_of_scipy(result: int, start: int) -> None:
    outcome = verdict(["result"] * result + ["same"] * 4 + ["start"] * start + ["skip"] * 3)
    assert (outcome.start, outcome.result, outcome.same, outcome.decided) == (start, result, 4, result + start)
    expected, mirrored = (binomtest(votes, result + start) for votes in (result, start))
    assert outcome.p == pytest.approx(expected.pvalue)
    assert (outcome.low, outcome.high) == pytest.approx(expected.proportion_ci(method="wilson"))
    assert outcome.share == result / (result + start)
    assert outcome.interval("result") == (outcome.share, outcome.low, outcome.high)
    assert outcome.interval("start") == pytest.approx((mirrored.statistic, *mirrored.proportion_ci(method="wilson")))


def test_so_many_votes_decide_and_one_less_does_not() -> None:
    for votes in range(1, 61):
        better = [bool(verdict(["result"] * most + ["start"] * (votes - most)).better) for most in range(votes + 1)]
        needed = decisive(votes)
        assert better[votes // 2 + 1 :] == [most >= needed for most in range(votes // 2 + 1, votes + 1)]
    assert [decisive(votes) for votes in (5, 6, 20, 60)] == [6, 6, 15, 39]


@pytest.mark.parametrize(
    ("result", "start", "same", "better", "ahead", "sentence"),
    [
        (21, 5, 4, "result", "result", "RESULT is better: 21 of 26 votes, p = .002"),
        (2, 18, 0, "start", "start", "START is better: 18 of 20 votes, p < .001"),
        (15, 11, 0, None, "result", "not distinguishable: 15 of 26 votes for RESULT, p = .56"),
        (11, 15, 0, None, "start", "not distinguishable: 11 of 26 votes for RESULT, p = .56"),
        (3, 3, 1, None, None, "not distinguishable: 3 of 6 votes for RESULT, p = 1"),
        (0, 0, 5, None, None, "not distinguishable: no vote for either, 5 for the same"),
    ],
)
def test_the_verdict_is_one_plain_sentence(
    result: int, start: int, same: int, better: str | None, ahead: str | None, sentence: str
) -> None:
    outcome = verdict(["result"] * result + ["start"] * start + ["same"] * same)
    assert (outcome.better, outcome.ahead, outcome.sentence()) == (better, ahead, sentence)


def test_the_sentence_may_name_the_models() -> None:
    outcome = verdict(["result"] * 3 + ["start"] * 14)
    assert outcome.sentence("simcse", "mine") == "simcse is better: 14 of 17 votes, p = .013"
    even = verdict(["result", "start"])
    assert even.sentence("simcse", "mine") == "not distinguishable: 1 of 2 votes for mine, p = 1"


def test_a_verdict_without_a_decided_vote_knows_nothing() -> None:
    outcome = verdict(["same", "skip"])
    assert (outcome.p, outcome.low, outcome.high) == (1, 0, 1)
