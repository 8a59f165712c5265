"""Answers that a page alone has, to take away as those of the endpoints: votes, a training, scores of labels, times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cse.analysis.votes import RESULT, START
from cse.app.choice.comparison import columns_of
from cse.app.choice.record import Record, record_from, record_of
from cse.app.corpus.chosen import chosen_corpus
from cse.app.corpus.scores import corpus_scores
from cse.app.models.models import divided, plain
from cse.app.models.naming import title
from cse.app.models.remembered import fingerprint_of
from cse.app.scoreboard.model_strip import sts_board
from cse.app.scoreboard.planes import times_of
from cse.app.scoreboard.scores import names_of
from cse.app.state.records import seeds_of

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.app.training.training import Training
    from cse.app.training.trainings import Trainings

OWN = ("ballot", "training")  # answers that say themselves what they are about: their inputs, models and seeds
PAGE_ONLY = (*OWN, "labels", "times")  # which no endpoint gives to programs
NO_VOTES = "There are no votes of yours on this server; press Start voting, and vote."
NO_TIMES = "The time of a sentence is still being measured on this host; try again in a moment."
NO_TRAINING = "There is no training of yours on this server with a step; press Train."


def page_answers(state: AppState, trainings: Trainings) -> dict[str, Callable[..., Any]]:
    """Return the functions by name, as `add_endpoints` returns its own."""

    def ballot(code: str = "", key: str = "") -> dict[str, Any]:
        """Return the visitor's votes, or those of a verdict's `code`. Raises ValueError if there are none."""
        kept = state.ballots.get(key)
        if not code and kept is None:
            raise ValueError(NO_VOTES)
        return plain_ballot(state, record_of(kept) if kept is not None else record_from(code))

    def training(key: str = "") -> dict[str, Any]:
        """Return the visitor's newest training. Raises ValueError if there is none with a step."""
        newest = trainings.newest(key)
        if newest is None or not newest.progress.losses:
            raise ValueError(NO_TRAINING)
        return plain_training(state, newest)

    def labels(corpus: str, key: str = "") -> dict[str, Any]:
        """Return each model's scores on the labels of a corpus."""
        return plain(corpus_scores(state, chosen_corpus(state, corpus, key)))

    def times() -> dict[str, Any]:
        """Return each model's milliseconds of a sentence on this host, and its average score."""
        board = sts_board(state)
        known = {} if board is None else times_of(state, board)
        if board is None or len(known) < 2:
            raise ValueError(NO_TIMES)
        names = names_of(board, state.models.columns)
        rows = {names[label]: (took, board.rows[label].figures[0]) for label, took in known.items()}
        return {name: {"milliseconds": took, "score": figure.value} for name, (took, figure) in rows.items() if figure}

    return {"ballot": ballot, "training": training, "labels": labels, "times": times}


def plain_ballot(state: AppState, record: Record) -> dict[str, Any]:
    """Return a record of votes as JSON values: a list of both models, each with its votes and all that was measured."""
    found, known, sides = record.verdict, columns_of(state), []
    for facts, side in zip(record.models, (START, RESULT), strict=True):
        share, low, high = found.interval(side) if found.decided else (0.0, 0.0, 1.0)
        scores = dict(record.scores[side]) if record.scores else {}
        sides.append(
            {**asdict(facts), "votes": record.counts[side], "share": share, "low": low, "high": high, "labels": scores}
        )
    return {
        "inputs": {"corpus": record.corpus}, "sentence": record.sentence, "decided": found.decided, "p": found.p,
        "compared": record.compared, "differing": record.differing, "sides": sides,
        "fingerprints": {facts.name: facts.fingerprint for facts in record.models},
        "seeds": seeds_of((facts.name, known[facts.name].model) for facts in record.models if facts.name in known),
    }  # fmt: skip


def plain_training(state: AppState, training: Training) -> dict[str, Any]:
    """Return a training as JSON values: losses and guard's scores by step, its end, and the models that it made."""
    request, progress, outcome = training.request, training.progress, training.outcome
    made = outcome.models if outcome else ()
    folders = {str(each.folder) for each in made}
    columns = [column for column in state.models.columns if column.model in folders]
    marks, _ = divided(state.models.apply(lambda _, encoder: fingerprint_of(encoder), columns))
    return {
        "inputs": {"name": request.name, "method": title(request.method), "corpus": request.corpus},
        "state": training.state.value, "step": progress.step, "steps": progress.steps,
        "losses": [list(point) for point in progress.losses], "scores": [list(point) for point in progress.scores],
        "start": progress.start, "sentence": outcome.sentence if outcome else "",
        "table": [list(row) for row in outcome.table] if outcome else [], "settings": dict(request.settings),
        "fingerprints": marks, "seeds": seeds_of((column.name, column.model) for column in columns),
    }  # fmt: skip
