"""Blind votes between two models in a JSON file, written after every vote and continued later."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from cse.errors import ArtefactError, command_line
from cse.files.writing import digest, digest_of, write_json
from cse.vectors import COSINES_AT_ONCE, nearest_others, unit_rows

SIGNIFICANCE_LEVEL = 0.05
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
        return self.ahead if self.p < SIGNIFICANCE_LEVEL else None

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
        odds, name = p_value(self.p), start if self.ahead == START else result
        votes = f"{max(self.start, self.result)} of {self.decided} votes"
        if self.better:
            return f"{name} is better: {votes}, {odds}"
        return f"not distinguishable: {votes} for {name}, {odds}"

    def details(self) -> str:
        """Return the interval and the votes that the sentence leaves out."""
        return (
            f"RESULT's share of the decided votes: {100 * self.share:.0f} %, 95 % interval {100 * self.low:.0f} to "
            f"{100 * self.high:.0f} %; votes for the same: {self.same}"
        )


def verdict(votes: Iterable[str]) -> Verdict:
    """Return the verdict of votes "start", "result" and "same"; those of other names ("skip") do not count."""
    counts = Counter(votes)
    start, result, same = counts[START], counts[RESULT], counts[SAME]
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
    return next((most for most in more_than_half if sign_test(votes - most, votes) < SIGNIFICANCE_LEVEL), votes + 1)


def p_value(value: float) -> str:
    """Return a p value as papers print it: p = .002, p = .58, p = 1, p < .001."""
    if value < 0.001:
        return "p < .001"
    return f"p = {value:.{3 if value < 0.1 else 2}f}".replace("= 0", "= ") if value < 0.995 else "p = 1"


NEIGHBOURS = 5
LEAST_TEXTS, MOST_TEXTS = 10, 5000  # distinct ones to compare; more are sampled
SHUFFLED_SHARE, MIN_SHUFFLED = 0.1, 60  # share and least number of texts that are shown in random order


@dataclass(frozen=True)
class Question:
    """A text, by its row, and the rows of its nearest neighbours under both models, nearest first.

    List A is START's, or RESULT's if `swapped`.
    """

    row: int
    start: tuple[int, ...]
    result: tuple[int, ...]
    swapped: bool

    @property
    def lists(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Lists A and B."""
        return (self.result, self.start) if self.swapped else (self.start, self.result)

    def chosen(self, second: bool) -> str:
        """The model of list A, or of list B if `second`."""
        return RESULT if second != self.swapped else START


def questions(start: np.ndarray, result: np.ndarray, seed: int) -> list[Question]:
    """Return a question for each text that has different neighbours under both models, the most different first.

    `start` and `result` (N, d) are vectors of the same N texts, of any two dimensions. The share `SHUFFLED_SHARE` of
    the texts with the largest `differences` comes first, in random order: the most extreme ones alone would be odd
    texts. Order and sides follow from `seed`.
    """
    near = nearest_others(start, NEIGHBOURS), nearest_others(result, NEIGHBOURS)  # (N, k) each
    rng = np.random.default_rng(seed)
    order, swapped = rng.permutation(len(start)), rng.integers(2, size=len(start)).astype(bool)
    order = order[np.argsort(-differences(start, result, near)[order], kind="stable")]
    first = max(MIN_SHUFFLED, round(SHUFFLED_SHARE * len(order)))
    order[:first] = rng.permutation(order[:first])
    return [
        Question(row, tuple(near[0][row].tolist()), tuple(near[1][row].tolist()), bool(swapped[row]))
        for row in order.tolist()
        if set(near[0][row].tolist()) != set(near[1][row].tolist())
    ]


def differences(start: np.ndarray, result: np.ndarray, near: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """(N,) difference of two models on each text, given its neighbours (N, k) under both.

    The mean rank that one model gives the other's neighbours, the smaller of both directions.
    """
    return np.minimum(ranks(result, near[0]).mean(axis=1), ranks(start, near[1]).mean(axis=1))


def ranks(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(N, k) rank of each of the rows `rows` (N, k) among all others by cosine to the vector (N, d), 0 for the nearest.

    Equal cosines share the lowest rank.
    """
    unit = unit_rows(vectors)
    nearer = np.empty(rows.shape, dtype=np.int64)
    block = max(1, COSINES_AT_ONCE // max(1, len(unit)))
    for start in range(0, len(unit), block):
        cosines = unit[start : start + block] @ unit.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -np.inf
        own_cosines = np.take_along_axis(cosines, rows[start : start + block], axis=1)
        for column in range(rows.shape[1]):
            nearer[start : start + block, column] = (cosines > own_cosines[:, column, None]).sum(axis=1)
    return nearer


def vote_by_label(question: Question, labels: Sequence[str]) -> str:
    """Return the vote for the list with more neighbours of the text's own label, "same" for equally many."""
    own = labels[question.row]
    start, result = (sum(labels[row] == own for row in rows) for rows in (question.start, question.result))
    return SAME if start == result else RESULT if result > start else START


VOTES_FORMAT = 1
VOTES_KEYS = {"format", "texts_sha256", "votes"}  # of a file of votes
Texts = Sequence[str] | Mapping[int, str]  # by row


@dataclass(frozen=True)
class Judged:
    """A model that is judged: its name, pooling (None if it has its own) and fingerprint."""

    name: str
    pooling: str | None
    fingerprint: str


@dataclass(frozen=True)
class Setup:
    """The data behind votes: both models, the texts (file, columns, sha256, number that was compared) and the seed."""

    start: Judged
    result: Judged
    data: str
    column: str | None
    labels: str | None
    texts_sha256: str
    compared: int
    seed: int

    def digest(self) -> str:
        """Return 12 hex digits that differ for other models, texts or seeds."""
        return digest(self.start.fingerprint, self.result.fingerprint, self.texts_sha256, str(self.seed))


@dataclass(frozen=True)
class Answer:
    """A vote on a text: "start", "result", "same" or "skip"; `first` is the model whose list was A.

    `row`, `start_rows` and `result_rows` are the numbers of the texts' rows in their source, where they are known.
    """

    text: str
    vote: str
    first: str
    start: tuple[str, ...]
    result: tuple[str, ...]
    row: int | None = None
    start_rows: tuple[int, ...] = ()
    result_rows: tuple[int, ...] = ()


@dataclass
class Judgement:
    """Setup, answers so far and, for labelled texts, the scores of both models; kept in `path` if there is one.

    `simulated` is true if labels voted, not a person. `fitted` is the number of the texts that START and RESULT were
    fitted on.
    """

    setup: Setup
    target: int  # votes at which the session ends; "wanted" in the JSON
    path: Path | None = None
    simulated: bool = False
    scores: dict[str, dict[str, float]] | None = None
    answers: list[Answer] = field(default_factory=list)
    fitted: dict[str, int] = field(default_factory=dict)

    @property
    def counted(self) -> int:
        """The number of votes; skipped texts do not count."""
        return sum(answer.vote != SKIP for answer in self.answers)

    def open(self, questions: Iterable[Question], texts: Texts) -> Iterator[Question]:
        """Yield the questions whose texts are not answered."""
        answered = {answer.text.strip() for answer in self.answers}  # earlier versions kept no blanks at the ends
        return (question for question in questions if texts[question.row].strip() not in answered)

    def add(self, question: Question, texts: Texts, vote: str, numbers: Sequence[int] | None = None) -> None:
        """Count a vote, "start", "result", "same" or "skip", and save; `numbers` are those of the rows in the source.

        Raises ValueError for another vote.
        """
        if vote not in VOTES:
            raise ValueError(f"vote {vote!r}: choose {', '.join(VOTES)}")
        nearest = [tuple(texts[row] for row in rows) for rows in (question.start, question.result)]
        first = RESULT if question.swapped else START
        answer = Answer(texts[question.row], vote, first, nearest[0], nearest[1])
        if numbers is not None:
            start, result = (tuple(numbers[row] for row in rows) for rows in (question.start, question.result))
            answer = replace(answer, row=numbers[question.row], start_rows=start, result_rows=result)
        self.answers.append(answer)
        self.save()

    def undo(self) -> None:
        """Drop the last answer, if there is one, and save."""
        del self.answers[-1:]
        self.save()

    @property
    def verdict(self) -> Verdict:
        """The verdict of the votes so far."""
        return verdict(answer.vote for answer in self.answers)

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON document."""
        verdict = self.verdict
        return {
            "format": VOTES_FORMAT,
            "verdict": {
                "sentence": verdict.sentence(), "better": verdict.better, "ahead": verdict.ahead, **asdict(verdict),
                "finished": self.counted >= self.target,
            },
            "wanted": self.target,
            "simulated": self.simulated,
            **asdict(self.setup),
            "scores": self.scores,
            "fitted": self.fitted,
            "votes": [asdict(answer) for answer in self.answers],
        }  # fmt: skip

    def save(self) -> None:
        """Write everything to `path` atomically, if there is one."""
        if self.path is not None:
            write_json(self.path, self.to_json())

    def collect(
        self,
        questions: Iterable[Question],
        texts: Texts,
        vote: Callable[[Question, int], str | None],
        numbers: Sequence[int] | None = None,
    ) -> None:
        """Ask `vote` for each question that is not answered, with the votes so far, until enough are given.

        Saves after each vote as `add`; stops where `vote` returns None.
        """
        for question in self.open(questions, texts):
            if self.counted >= self.target:
                return
            answer = vote(question, self.counted)
            if answer is None:
                return
            self.add(question, texts, answer, numbers)


def texts_digest(texts: Iterable[str]) -> str:
    """Return 12 hex digits of sha256 over texts in their order."""
    return digest_of(f"{text}\0" for text in texts)


def continued(fresh: Judgement, overwrite: bool = False) -> Judgement:
    """Return `fresh` with the answers that its file holds, if there is one; without them if they are overwritten.

    Raises ArtefactError if the file holds something else than votes, and unless `overwrite` if it is damaged or holds
    votes on other models, texts or another seed.
    """
    if fresh.path is None or not fresh.path.exists():
        return fresh
    cure = "give another `json_output`"
    try:
        document = json.loads(fresh.path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or not document.keys() >= VOTES_KEYS:
            raise ValueError(f"no file of {command_line('judge')}")
        cure += ", or pass `overwrite`"
        if overwrite:
            return fresh
        if document["format"] != VOTES_FORMAT:
            raise ValueError(f"format {document['format']}")
        votes: list[dict[str, Any]] = [
            {name: tuple(value) if isinstance(value, list) else value for name, value in answer.items()}
            for answer in document["votes"]
        ]
        answers = [Answer(**vote) for vote in votes]
        if wrong := [answer.vote for answer in answers if answer.vote not in VOTES]:
            raise ValueError(f"vote {wrong[0]!r}")
        recorded = {name: document[name] for name in ("simulated", *(setting.name for setting in fields(Setup)))}
    except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        raise ArtefactError(f"{fresh.path}: holds no votes that can be read ({error}); {cure}") from error
    expected = {"simulated": fresh.simulated, **asdict(fresh.setup)}
    for name, value in expected.items():
        if recorded[name] != value and name not in ("data", "column", "labels"):  # the digest says what was read
            held, own = (
                f"{model.get('name')} ({model.get('fingerprint')})" if isinstance(model, dict) else model
                for model in (recorded[name], value)
            )
            raise ArtefactError(f"{fresh.path}: holds votes with {name} {held}, not {own}; {cure}")
    fresh.answers = answers
    return fresh
