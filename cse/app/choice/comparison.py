"""A comparison of two models on a corpus: blind questions, scores of labels, and what each model costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from cse.app import validation
from cse.app.corpus.chosen import FIELD, ChosenCorpus
from cse.app.drawing.ranks import cut
from cse.app.duplicates.near_duplicates import answer_of, vectors_of
from cse.app.models.columns import Column
from cse.app.models.naming import POOLED, title
from cse.app.models.remembered import fingerprint_of
from cse.app.state.ballots import MOST_ASKED, TEXT, Ballot, Facts
from cse.app.state.encodings import Encoding, Order, encode_block
from cse.models.names import BACKBONE
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.analysis.votes import Question, Setup
    from cse.app.state.app_state import AppState
    from cse.corpus.corpus import Corpus
    from cse.encoder.encoder import Encoder

MODELS = ("The first model", "The second model")
LEAST_VOTES, MOST_VOTES, VOTES = 6, 60, 20  # the least that can find a model better: of 5, all 5 are p = .06
UNTRAINED = tuple(Column(name, BACKBONE, pooling) for name, pooling in POOLED.items() if pooling in ("mean", "cls"))
TIMED, RUNS = 32, 3  # texts of a batch, and batches, whose time is measured
GUARDED = 100  # texts of the guard
SEED = 42


def columns_of(state: AppState) -> dict[str, Column]:
    """Return the models that can be compared by name: the visitor's columns, and the untrained start."""
    known = {column.name: column for column in state.models.columns}
    return {**{column.name: column for column in UNTRAINED}, **known}


def compare(
    state: AppState,
    chosen: ChosenCorpus,
    first: str,
    second: str,
    votes: int,
    report: Report = silent,
    least: int = LEAST_VOTES,
) -> Ballot:
    """Return a ballot of `least` or more votes on two models: the texts on whose neighbours they differ most.

    Of more than 5,000 different texts a random sample is compared. Raises FieldError for too few texts, for twice the
    same model, for a model without vectors, and if the models have the same neighbours everywhere.
    """
    from cse.analysis.votes import Judgement, questions

    columns = _columns(state, first, second)
    wanted = validation.whole(votes, "The votes", least, MOST_VOTES)
    drawn, places = sample(chosen)
    texts, labels = drawn.sentences, [chosen.labels[row] if chosen.labels else "" for row in places]
    vectors, facts = [], []
    for step, (field, column) in enumerate(zip(MODELS, columns, strict=True)):
        report(step, 3, f"reading the texts with {title(column.name)}")
        found, measured = _read(state, chosen, column, texts, places, field)
        vectors.append(found)
        facts.append(measured)
    report(2, 3, "comparing neighbours")
    differing = questions(vectors[0], vectors[1], SEED)
    if not differing:
        reason = (
            f"{title(first)} and {title(second)} have the same neighbours for all {len(texts):,} texts: there is "
            "nothing to vote on."
        )
        raise validation.FieldError(MODELS[1], reason)
    judgement = Judgement(_setup(chosen, columns, facts, texts), wanted)
    judgement.scores, note = _scored(vectors, labels)
    shown = tuple(differing[:MOST_ASKED])
    return Ballot(judgement, shown, texts_of(shown, texts), (facts[0], facts[1]), len(differing) / len(texts), note)


def sample(chosen: ChosenCorpus) -> tuple[Corpus, np.ndarray]:
    """Return the different texts to compare, at most 5,000, and (n,) their rows in the corpus.

    Raises FieldError for too few texts.
    """
    from cse.analysis.votes import LEAST_TEXTS, MOST_TEXTS
    from cse.corpus.corpus import Corpus

    try:
        corpus = replace(Corpus.of(list(chosen.texts)), name="The corpus").check(LEAST_TEXTS, "a comparison")
    except ValueError as error:
        raise validation.FieldError(FIELD, str(error)) from error
    drawn = corpus.distinct_sample(MOST_TEXTS, SEED)
    return drawn, drawn.numbers - 1


def texts_of(shown: Sequence[Question], texts: Sequence[str]) -> dict[int, str]:
    """Return the beginning of each text of the questions and their lists, by row."""
    wanted = {row for question in shown for row in (question.row, *question.start, *question.result)}
    return {row: cut(" ".join(texts[row].split()), TEXT) for row in wanted}


def _columns(state: AppState, first: str, second: str) -> tuple[Column, Column]:
    known = columns_of(state)
    one, other = (
        known[validation.one_of(name, field, known)] for field, name in zip(MODELS, (first, second), strict=True)
    )
    if one == other:
        raise validation.FieldError(MODELS[1], f"Both models are {title(first)}; choose two different ones.")
    return one, other


def _read(
    state: AppState, chosen: ChosenCorpus, column: Column, texts: Sequence[str], places: np.ndarray, field: str
) -> tuple[np.ndarray, Facts]:
    """The vectors (n, d) of the sample, and what is measured of the model. Raises FieldError if it fails."""
    try:
        if column in (chosen.columns or state.models.columns):
            vectors = vectors_of(state, chosen, column)[places]
        else:
            vectors = _encoded(state, column, texts)
        return vectors, answer_of(state, column, lambda _, encoder: facts_of(column.name, encoder, texts))
    except ValueError as error:
        raise validation.FieldError(field, str(error)) from error


def _encoded(state: AppState, column: Column, texts: Sequence[str]) -> np.ndarray:
    """The vectors (n, d) of texts by a model that is no column of the page, a block at a time."""
    order, encoding = Order(texts), Encoding(column, len(texts))
    while not encoding.complete:
        encode_block(state.models, texts, order, encoding)
    return encoding.vectors()


def facts_of(name: str, encoder: Encoder, texts: Sequence[str]) -> Facts:
    """Measure a model on texts: time, size and guard."""
    from cse.training.held_out import MIN_HELD_OUT, MIN_WORDS, held_out_score

    timed = []
    for _ in range(RUNS):
        start = time.perf_counter()
        encoder.encode(texts[:TIMED])
        timed.append(1000 * (time.perf_counter() - start) / len(texts[:TIMED]))
    long = [text for text in texts if len(text.split()) >= MIN_WORDS][:GUARDED]
    found = held_out_score(encoder.encode, long).found if len(long) >= MIN_HELD_OUT else None
    return Facts(
        name, fingerprint_of(encoder), round(median(timed), 3), round(4 * encoder.parameter_count / 1e6, 1), found
    )


def _scored(vectors: Sequence[np.ndarray], labels: Sequence[str]) -> tuple[dict[str, dict[str, float]] | None, str]:
    """The scores of labels by side, or None with the reason."""
    from cse.analysis.votes import scores_by_label

    if not any(labels):
        return None, "The corpus has no labels, so no score can tell which model is better."
    try:
        return scores_by_label(vectors, labels), ""
    except ValueError as error:
        return None, f"No scores of labels: {error}."


def _setup(chosen: ChosenCorpus, columns: Sequence[Column], facts: Sequence[Facts], texts: Sequence[str]) -> Setup:
    from cse.analysis.votes import Judged, Setup, texts_digest

    one, other = (
        Judged(column.name, column.pooling, fact.fingerprint) for column, fact in zip(columns, facts, strict=True)
    )
    labels = "label" if chosen.labels else None
    digest = texts_digest(texts)
    return Setup(one, other, chosen.label, None, labels, digest, len(texts), SEED)
