"""The verdict of blind votes between two models: exact sign test and Wilson interval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

SIGNIFICANT = 0.05
START, RESULT, SAME, SKIP = VOTES = ("start", "result", "same", "skip")


@dataclass(frozen=True)
class Verdict:
    """Counts of the votes for START, for RESULT and for neither, and what follows for RESULT.

    `share` is RESULT's share of the votes for one of the two, `low` and `high` are its 95 % interval (Wilson 1927),
    and `p` is the two-sided p of the exact sign test; 0, 0, 1 and 1 without such a vote.
    """

    start: int
    result: int
    same: int
    share: float
    low: float
    high: float
    p: float

    @property
    def decided(self) -> int:
        """The number of votes for one of the two."""
        return self.start + self.result

    @property
    def better(self) -> str | None:
        """The model that is better by the sign test at 5 %, None if the votes do not distinguish them."""
        return self.ahead if self.p < SIGNIFICANT else None

    @property
    def ahead(self) -> str | None:
        """The model with more votes, None if both have the same number."""
        return None if self.start == self.result else RESULT if self.result > self.start else START

    def interval(self, side: str) -> tuple[float, float, float]:
        """Return the share of START or RESULT and the bounds of its interval."""
        return (self.share, self.low, self.high) if side == RESULT else (1 - self.share, 1 - self.high, 1 - self.low)

    def sentence(self, start: str = "START", result: str = "RESULT") -> str:
        """Return the verdict in one sentence, with names for the two models."""
        if not self.decided:
            return f"not distinguishable: no vote for either, {self.same} for the same"
        odds, names = p_value(self.p), {START: start, RESULT: result}
        if self.better:
            votes = self.result if self.better == RESULT else self.start
            return f"{names[self.better]} is better: {votes} of {self.decided} votes, {odds}"
        return f"not distinguishable: {self.result} of {self.decided} votes for {result}, {odds}"

    def details(self) -> str:
        """Return the interval and the votes that the sentence leaves out."""
        return (
            f"RESULT's share of the decided votes: {100 * self.share:.0f} %, 95 % interval {100 * self.low:.0f} to "
            f"{100 * self.high:.0f} %; votes for the same: {self.same}"
        )


def verdict(votes: Iterable[str]) -> Verdict:
    """Return the verdict of votes "start", "result" and "same"; those of other names ("skip") do not count."""
    counts = dict.fromkeys((START, RESULT, SAME), 0)
    for vote in votes:
        if vote in counts:
            counts[vote] += 1
    start, result, same = counts.values()
    decided = start + result
    if not decided:
        return Verdict(start, result, same, 0.0, 0.0, 1.0, 1.0)
    z = NormalDist().inv_cdf(0.975)
    share, shrunk = result / decided, 1 + z**2 / decided
    middle = (share + z**2 / (2 * decided)) / shrunk
    half = z * sqrt(share * (1 - share) / decided + z**2 / (4 * decided**2)) / shrunk
    return Verdict(
        start, result, same, share, max(0.0, middle - half), min(1.0, middle + half),
        sign_test(min(start, result), decided),
    )  # fmt: skip


def sign_test(fewer: int, votes: int) -> float:
    """Return the two-sided p of the exact sign test with `fewer` of the decided votes for one model, at most half."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(fewer, votes, 0.5)))


def decisive(votes: int) -> int:
    """Return how many of the `votes` must be for one model to make it better; `votes` + 1 if even all do not."""
    more_than_half = range(votes // 2 + 1, votes + 1)
    return next((most for most in more_than_half if sign_test(votes - most, votes) < SIGNIFICANT), votes + 1)


def p_value(value: float) -> str:
    """Return a p value as papers print it: p = .002, p = .58, p = 1, p < .001."""
    if value < 0.001:
        return "p < .001"
    return f"p = {value:.{3 if value < 0.1 else 2}f}".replace("= 0", "= ") if value < 0.995 else "p = 1"
