"""Two models on a corpus: the texts on whose nearest ones they differ most, as questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cse.analysis.votes import LEAST_TEXTS, MOST_TEXTS, Judged, Judgement, Setup, questions, texts_digest
from cse.app import validation
from cse.app.corpus.corpora import FIELD
from cse.app.models.models import Column
from cse.app.models.naming import POOLED, title
from cse.app.result import Result, choice, records, whole
from cse.app.state import MAX_ASKED, MAX_SHOWN, Ballot
from cse.corpus.corpus import Corpus
from cse.models.names import BACKBONE

if TYPE_CHECKING:
    from cse.app.state import AppState, Session

LEAST_VOTES, MOST_VOTES, DEFAULT_VOTES = 6, 60, 20  # of 5 votes, all 5 are p = .06
UNTRAINED = tuple(Column(name, BACKBONE, pooling) for name, pooling in POOLED.items() if pooling in ("mean", "cls"))
FIRST, SECOND = MODELS = ("The first model", "The second model")
SEED = 42


@dataclass(frozen=True)
class Judge(Result):
    """Blind questions on two models, and what votes on them say."""

    key = "judge"
    title = "Which of two suits these texts?"
    lane = "comparisons"
    live = False
    ships = False

    first: str = choice("First model", "simcse", FIRST, "the name of a model.", ())
    second: str = choice("Second model", "untrained (mean)", SECOND, "the name of another one.", ())
    votes: int = whole("Votes", DEFAULT_VOTES, "The votes", "how many, 6 to 60.", LEAST_VOTES, MOST_VOTES, folded=True)

    def frame(self, session: Session) -> pd.DataFrame:
        """Return the five nearest of each text asked about: question, row, text, model, place, near, neighbour."""
        ballot = self.ballot(session)
        numbers, texts = session.corpus.numbers, session.corpus.texts
        return pd.DataFrame(
            {
                "question": count, "row": numbers[asked.row], "text": texts[asked.row], "model": name, "place": rank,
                "near": numbers[near], "neighbour": texts[near],
            }
            for count, asked in enumerate(ballot.questions[: self.votes], start=1)
            for name, rows in ((self.first, asked.start), (self.second, asked.result))
            for rank, near in enumerate(rows, start=1)
        )  # fmt: skip

    def answer(self, frame: pd.DataFrame) -> Any:
        return records(frame)

    def ballot(self, session: Session) -> Ballot:
        """Return a ballot on both models. Of more than 5,000 different texts a random sample is compared."""
        chosen, known = session.corpus, columns_of(session.state)
        names = zip(MODELS, (self.first, self.second), strict=True)
        columns = [known[validation.one_of(name, field, known)] for field, name in names]
        if columns[0] == columns[1]:
            raise validation.FieldError(SECOND, f"Both models are {title(self.first)}; choose two different ones.")
        try:
            corpus = replace(Corpus.of(list(chosen.texts)), name="The corpus").check(LEAST_TEXTS, "a comparison")
        except ValueError as error:
            raise validation.FieldError(FIELD, str(error)) from error
        sample = corpus.distinct_sample(MOST_TEXTS, SEED)
        texts, rows = sample.sentences, sample.numbers - 1
        vectors, judged = [], []
        for step, (field, column) in enumerate(zip(MODELS, columns, strict=True)):
            session.report(step, 3, f"reading the texts with {title(column.name)}")
            of_model, fingerprint = _vectors(session, column, texts, rows, field)
            vectors.append(of_model)
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
        asked = []
        for question in differing[:MAX_ASKED]:  # by rows of the corpus instead of the sample's
            start, result = (tuple(int(rows[row]) for row in near) for near in (question.start, question.result))
            asked.append(replace(question, row=int(rows[question.row]), start=start, result=result))
        told = {row for question in asked for row in (question.row, *question.start, *question.result)}
        lines = {row: " ".join(chosen.texts[row].split()) for row in told}
        cut = {row: line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 1]}…" for row, line in lines.items()}
        return Ballot(Judgement(setup, self.votes), tuple(asked), cut, len(differing) / len(texts), corpus=chosen.key)


def columns_of(state: AppState) -> dict[str, Column]:
    """Return the models that can be compared by name: the visitor's columns, and the untrained start."""
    return {column.name: column for column in (*UNTRAINED, *state.models.columns)}


def _vectors(
    session: Session, column: Column, texts: Sequence[str], rows: np.ndarray, field: str
) -> tuple[np.ndarray, str]:
    """The vectors (n, d) of the sample, and the model's fingerprint. Raises FieldError if it fails."""
    chosen = session.corpus
    if chosen.ready([column]):
        answers = session.each(lambda column, encoder: chosen.vectors(column, encoder)[rows], [column])
    else:
        answers = session.encoded(texts, [column], documents=True)
    if column.name not in answers:
        raise validation.FieldError(field, f"{title(column.name)}: {session.failed.pop(column.name)}")
    return answers[column.name], session.models[column.name]
