"""Blind votes between two models in a JSON file, written after every vote and continued later."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.errors import ArtefactError, command_line
from cse.judging.questions import Question
from cse.judging.verdict import RESULT, SKIP, START, VOTES, Verdict, verdict
from cse.storage.writing import digest, write_json

if TYPE_CHECKING:
    import numpy as np

FORMAT = 1
KEYS = {"format", "texts_sha256", "votes"}  # of a file of votes
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
    """A vote on a text: "start", "result", "same" or "skip"; `first` is the model whose list was A."""

    text: str
    vote: str
    first: str
    start: tuple[str, ...]
    result: tuple[str, ...]


@dataclass
class Judgement:
    """Setup, answers so far and, for labelled texts, the scores of both models; kept in `path` if there is one.

    `simulated` is true if labels voted, not a person.
    """

    setup: Setup
    wanted: int
    path: Path | None = None
    simulated: bool = False
    scores: dict[str, dict[str, float]] | None = None
    answers: list[Answer] = field(default_factory=list)

    @property
    def counted(self) -> int:
        """The number of votes; skipped texts do not count."""
        return sum(answer.vote != SKIP for answer in self.answers)

    def open(self, questions: Iterable[Question], texts: Texts) -> Iterator[Question]:
        """Yield the questions whose texts are not answered."""
        answered = {answer.text for answer in self.answers}
        return (question for question in questions if texts[question.row] not in answered)

    def add(self, question: Question, texts: Texts, vote: str) -> None:
        """Count a vote, "start", "result", "same" or "skip", and save. Raises ValueError for another one."""
        if vote not in VOTES:
            raise ValueError(f"vote {vote!r}: choose {', '.join(VOTES)}")
        lists = (tuple(texts[row] for row in rows) for rows in (question.start, question.result))
        self.answers.append(Answer(texts[question.row], vote, RESULT if question.swapped else START, *lists))
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
        found = self.verdict
        return {
            "format": FORMAT,
            "verdict": {
                "sentence": found.sentence(), "better": found.better, "ahead": found.ahead, **asdict(found),
                "finished": self.counted >= self.wanted,
            },
            "wanted": self.wanted,
            "simulated": self.simulated,
            **asdict(self.setup),
            "scores": self.scores,
            "votes": [asdict(answer) for answer in self.answers],
        }  # fmt: skip

    def save(self) -> None:
        """Write everything to `path` atomically, if there is one."""
        if self.path is not None:
            write_json(self.path, self.to_json())

    def collect(self, questions: Iterable[Question], texts: Texts, vote: Callable[[Question, int], str | None]) -> None:
        """Ask `vote` for each question that is not answered, with the votes so far, until enough are given.

        Saves after each vote; stops where `vote` returns None.
        """
        for question in self.open(questions, texts):
            if self.counted >= self.wanted:
                return
            given = vote(question, self.counted)
            if given is None:
                return
            self.add(question, texts, given)


def scores_by_label(vectors: Sequence[np.ndarray], labels: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the `label_scores` of "start" and "result" by their `vectors`, (N, d) each."""
    from cse.evaluation.label_scores import label_scores

    return {side: label_scores(each, labels) for side, each in zip((START, RESULT), vectors, strict=True)}


def texts_digest(texts: Iterable[str]) -> str:
    """Return 12 hex digits of sha256 over texts in their order."""
    return digest(*(f"{text}\0" for text in texts))


def continued(fresh: Judgement, overwrite: bool = False) -> Judgement:
    """Return `fresh` with the answers that its file holds, if there is one; without them if they are overwritten.

    Raises ArtefactError if the file holds something else than votes, and unless `overwrite` if it is damaged or holds
    votes on other models, texts or another seed.
    """
    if fresh.path is None or not fresh.path.exists():
        return fresh
    cure = "give another `json_output`"
    try:
        found = json.loads(fresh.path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not found.keys() >= KEYS:
            raise ValueError(f"no file of {command_line('judge')}")
        cure += ", or pass `overwrite`"
        if overwrite:
            return fresh
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}")
        answers = [_read(answer) for answer in found["votes"]]
        recorded = {name: found[name] for name in ("simulated", *(each.name for each in fields(Setup)))}
    except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        raise ArtefactError(f"{fresh.path}: holds no votes that can be read ({error}); {cure}") from error
    wanted = {"simulated": fresh.simulated, **asdict(fresh.setup)}
    for name, value in wanted.items():
        if recorded[name] != value and name not in ("data", "column", "labels"):  # the digest says what was read
            other = f"votes with {name} {_shown(recorded[name])}, not {_shown(value)}"
            raise ArtefactError(f"{fresh.path}: holds {other}; {cure}")
    fresh.answers = answers
    return fresh


def _read(answer: dict[str, Any]) -> Answer:
    if answer["vote"] not in VOTES:
        raise ValueError(f"vote {answer['vote']!r}")
    return Answer(**{**answer, "start": tuple(answer["start"]), "result": tuple(answer["result"])})


def _shown(value: Any) -> str:
    return f"{value.get('name')} ({value.get('fingerprint')})" if isinstance(value, dict) else str(value)
