"""Two models on a corpus: the texts on whose nearest ones they differ most, as questions; and a verdict's code."""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.analysis.votes import (
    LEAST_TEXTS,
    MOST_TEXTS,
    RESULT,
    SAME,
    START,
    VOTES,
    Judged,
    Judgement,
    Setup,
    Verdict,
    p_value,
    questions,
    texts_digest,
    verdict,
)
from cse.app import validation
from cse.app.corpus.chosen import FIELD
from cse.app.models.models import Column, Failure, fingerprint_of
from cse.app.models.naming import POOLED, title
from cse.app.result import Result, choice, records, whole
from cse.app.state.app_state import MAX_ASKED, MAX_SHOWN, Ballot
from cse.app.state.corpora import Encoding, Order, encode_block
from cse.corpus.corpus import Corpus
from cse.models.names import BACKBONE

if TYPE_CHECKING:
    from cse.analysis.votes import Question
    from cse.app.session import Session
    from cse.app.state.app_state import AppState

LEAST_VOTES, MOST_VOTES, DEFAULT_VOTES = 6, 60, 20  # of 5 votes, all 5 are p = .06
UNTRAINED = tuple(Column(name, BACKBONE, pooling) for name, pooling in POOLED.items() if pooling in ("mean", "cls"))
FIRST, SECOND = MODELS = ("The first model", "The second model")
SEED = 42
LONGEST, NAME = 1900, 120  # characters of a code, which the address holds, and of a name in it
MOST, MOST_COUNTED = 10**9, 10**5  # the largest number and count
UNREADABLE = "This code holds no verdict; copy it again from the page that made it."


@dataclass(frozen=True)
class Judge(Result):
    """Blind questions on two models, and what votes on them say."""

    key = "judge"
    title = "Which of two suits these texts?"
    summary = "The texts on whose five nearest two models differ most, with both lists: records of text, model, place."
    lane = "comparisons"
    live = False
    ships = False
    separable = False

    first: str = choice("First model", "simcse", FIRST, "the name of a model.", ())
    second: str = choice("Second model", "untrained (mean)", SECOND, "the name of another one.", ())
    votes: int = whole("Votes", DEFAULT_VOTES, "The votes", "how many, 6 to 60.", LEAST_VOTES, MOST_VOTES, folded=True)

    def frame(self, session: Session) -> pd.DataFrame:
        """Return the five nearest of each text asked about: question, row, text, model, place, near, neighbour."""
        ballot = self.ballot(session)
        numbers, texts = session.corpus.numbers, session.corpus.texts
        return pd.DataFrame(
            {
                "question": place, "row": numbers[asked.row], "text": texts[asked.row], "model": name, "place": rank,
                "near": numbers[near], "neighbour": texts[near],
            }
            for place, asked in enumerate(ballot.questions[: self.votes], start=1)
            for name, rows in ((self.first, asked.start), (self.second, asked.result))
            for rank, near in enumerate(rows, start=1)
        )  # fmt: skip

    def answer(self, frame: pd.DataFrame) -> Any:
        """Return the records."""
        return records(frame)

    def ballot(self, session: Session) -> Ballot:
        """Return a ballot on both models. Of more than 5,000 different texts a random sample is compared.

        Raises FieldError for too few texts, for twice the same model, for a model without vectors, and if the models
        have the same neighbours everywhere.
        """
        chosen, columns = session.corpus, self._columns(session.state)
        try:
            whole = replace(Corpus.of(list(chosen.texts)), name="The corpus").check(LEAST_TEXTS, "a comparison")
        except ValueError as error:
            raise validation.FieldError(FIELD, str(error)) from error
        drawn = whole.distinct_sample(MOST_TEXTS, SEED)
        texts, rows = drawn.sentences, drawn.numbers - 1
        vectors, judged = [], []
        for step, (field, column) in enumerate(zip(MODELS, columns, strict=True)):
            session.report(step, 3, f"reading the texts with {title(column.name)}")
            found, fingerprint = _vectors(session, column, texts, rows, field)
            vectors.append(found)
            judged.append(Judged(column.name, column.pooling, fingerprint))
        session.report(2, 3, "comparing neighbours")
        differing = questions(vectors[0], vectors[1], SEED)
        if not differing:
            reason = (
                f"{title(self.first)} and {title(self.second)} have the same neighbours for all {len(texts):,} texts: "
                "there is nothing to vote on."
            )
            raise validation.FieldError(SECOND, reason)
        setup = Setup(judged[0], judged[1], chosen.label, None, None, texts_digest(texts), len(texts), SEED)
        shown = tuple(of_corpus(question, rows) for question in differing[:MAX_ASKED])
        told = {row for question in shown for row in (question.row, *question.start, *question.result)}
        cut = {row: shortened(chosen.texts[row]) for row in told}
        return Ballot(Judgement(setup, self.votes), shown, cut, len(differing) / len(texts))

    def _columns(self, state: AppState) -> tuple[Column, Column]:
        known = columns_of(state)
        one, other = (
            known[validation.one_of(name, field, known)]
            for field, name in zip(MODELS, (self.first, self.second), strict=True)
        )
        if one == other:
            raise validation.FieldError(SECOND, f"Both models are {title(one.name)}; choose two different ones.")
        return one, other


def columns_of(state: AppState) -> dict[str, Column]:
    """Return the models that can be compared by name: the visitor's columns, and the untrained start."""
    known = {column.name: column for column in state.models.columns}
    return {**{column.name: column for column in UNTRAINED}, **known}


def of_corpus(question: Question, rows: np.ndarray) -> Question:
    """Return a question on a sample as one on the corpus; `rows` are those of the sample in it."""
    near = (tuple(int(rows[row]) for row in side) for side in (question.start, question.result))
    start, result = near
    return replace(question, row=int(rows[question.row]), start=start, result=result)


def shortened(text: str) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 1]}…"


def _vectors(
    session: Session, column: Column, texts: Sequence[str], rows: np.ndarray, field: str
) -> tuple[np.ndarray, str]:
    """The vectors (n, d) of the sample, and the model's fingerprint. Raises FieldError if it fails."""
    models, chosen, vectors = session.state.models, session.corpus, None
    try:
        if column not in (chosen.columns or models.columns) or column not in chosen.ready([column]):
            order, encoding = Order(texts), Encoding(column, len(texts))
            while not encoding.complete:  # a block at a time, so that others may use the model
                encode_block(models, texts, order, encoding)
            vectors = encoding.vectors()
    except ValueError as error:
        raise validation.FieldError(field, f"{title(column.name)}: {error}") from error
    answer = models.apply(
        lambda column, encoder: (
            chosen.vectors(column, encoder)[rows] if vectors is None else vectors, fingerprint_of(encoder)
        ),
        [column],
    )[column.name]  # fmt: skip
    if isinstance(answer, Failure):
        raise validation.FieldError(field, f"{title(column.name)}: {answer.reason}")
    return answer


@dataclass(frozen=True)
class Record:
    """What a verdict shows, without texts: both models by name and fingerprint, and the `counts` of each vote.

    It fits into a link.
    """

    models: tuple[str, str]
    fingerprints: tuple[str, str]
    counts: Mapping[str, int]
    corpus: str
    compared: int
    differing: float

    @classmethod
    def of(cls, ballot: Ballot) -> Record:
        """Return the record of a ballot."""
        setup, votes = ballot.judgement.setup, [answer.vote for answer in ballot.judgement.answers]
        return cls(
            (setup.start.name, setup.result.name), (setup.start.fingerprint, setup.result.fingerprint),
            {vote: votes.count(vote) for vote in VOTES}, setup.data, setup.compared, round(ballot.differing, 4),
        )  # fmt: skip

    @property
    def verdict(self) -> Verdict:
        """The verdict of the counts."""
        return verdict(vote for vote in (START, RESULT, SAME) for _ in range(self.counts[vote]))

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, with the models' names."""
        said = self.verdict.sentence(*map(title, self.models))
        return f"Not{said[3:]}" if said.startswith("not distinguishable") else said

    @property
    def p(self) -> str:
        """The p of the sign test, as papers print it."""
        return p_value(self.verdict.p)

    @property
    def code(self) -> str:
        """The record as letters for an address; empty if they would be too many."""
        packed = zlib.compress(json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")).encode(), 9)
        code = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        return code if len(code) <= LONGEST else ""

    @classmethod
    def read(cls, code: str) -> Record:
        """Return the record of a code. Raises ValueError for anything that `code` does not make."""
        try:
            if len(code) > LONGEST:
                raise ValueError(UNREADABLE)
            packed = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
            value = json.loads(zlib.decompressobj().decompress(packed, 20 * LONGEST))
            if set(value) != {each.name for each in fields(cls)} or set(value["counts"]) != set(VOTES):
                raise ValueError(UNREADABLE)
            (one, other), (mark, another) = (map(_text, value[name]) for name in ("models", "fingerprints"))
            counts = {vote: _count(value["counts"][vote]) for vote in VOTES}
            compared, differing = _count(value["compared"]), _number(value["differing"])
            return cls((one, other), (mark, another), counts, _text(value["corpus"]), compared, differing)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, zlib.error, binascii.Error) as error:
            raise ValueError(UNREADABLE) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(UNREADABLE)
    return value[:NAME]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or abs(value) > MOST:
        raise ValueError(UNREADABLE)
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_COUNTED:
        raise ValueError(UNREADABLE)
    return value
