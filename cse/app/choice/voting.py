"""The handlers of a vote: begin, vote, take back, end, resume. Each returns what the page shows then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gradio as gr

from cse.analysis.votes import SAME, SKIP
from cse.app.choice.ballot_html import ballot_html
from cse.app.choice.comparison import compare
from cse.app.choice.record import code_of, record_from, record_json, record_of
from cse.app.choice.verdict_html import verdict_html
from cse.app.corpus.chosen import chosen_corpus
from cse.app.drawing import html
from cse.app.drawing.components import file_value
from cse.app.forms.events import PROGRESS, reporter
from cse.app.state.app_state import AppState
from cse.app.state.ballots import Ballot
from cse.app.state.own_corpora import KEPT

ASK = (
    f"Choose two models and press Start voting. Your votes are kept for {KEPT // 3600} hours after the last one, under "
    "a key that only this browser has."
)
LOST = "There are no votes of yours on this server any more; press Start voting."
HIDDEN, VISIBLE = gr.update(visible=False), gr.update(visible=True)


class View(NamedTuple):
    """The page's content: messages, a question or a verdict, and the buttons of either.

    `place` is the number of answers so far: a vote counts only if it is for the question that was shown. `code` is the
    verdict for the address.
    """

    status: str = ""
    question: str = ""
    verdict: str = ""
    voting: Any = HIDDEN
    after: Any = HIDDEN
    place: int = 0
    code: Any = ""


def view(ballot: Ballot) -> View:
    """Return the view of a ballot: its next question, or its verdict."""
    answers = len(ballot.judgement.answers)
    if ballot.question is not None:
        return View(question=ballot_html(ballot), voting=VISIBLE, place=answers)
    record = record_of(ballot)
    return View(verdict=verdict_html(record), after=VISIBLE, place=answers, code=code_of(record))


class Voting:
    """Handlers for the votes of all visitors, each under the visitor's key."""

    def __init__(self, state: AppState) -> None:
        """Keep the ballots in `state`."""
        self._state, self._ballots = state, state.ballots

    def begin(
        self, first: str, second: str, votes: int, corpus: str, key: str, progress: gr.Progress = PROGRESS
    ) -> Iterator[View]:
        """Compare two models on the corpus, and show the first question."""
        yield View(html.hint("Comparing the models."))
        chosen = chosen_corpus(self._state, corpus, key)
        ballot = compare(self._state, chosen, first, second, votes, reporter(progress))
        self._ballots.put(key, ballot)
        yield view(ballot)

    def resume(self, first: str, second: str, votes: int, code: str, key: str) -> View:
        """Show the verdict of a link, or else the visitor's ballot."""
        ballot = self._ballots.get(key)
        if code and (ballot is None or code_of(record_of(ballot)) != code):
            try:
                return View(verdict=verdict_html(record_from(code), linked=True), code=gr.skip())
            except ValueError as error:
                return View(html.alert(str(error)), code=gr.skip())
        return View(html.hint(ASK)) if ballot is None else view(ballot)

    def changing(self, change: Callable[[Ballot], None]) -> Callable[[float, str], View]:
        """Return a handler that changes the visitor's ballot, unless the page shows an earlier state of it."""

        def changed(place: float, key: str) -> View:
            with self._ballots.lock:
                ballot = self._ballots.get(key)
                if ballot is None:
                    return View(html.alert(LOST))
                if place == len(ballot.judgement.answers):
                    change(ballot)
                return view(ballot)

        return changed

    def save(self, key: str) -> dict[str, Any]:
        """Return the visitor's votes as a file. Raises ValueError if there are none."""
        ballot = self._ballots.get(key)
        if ballot is None:
            raise ValueError(LOST)
        return file_value("verdict.json", "application/json", record_json(ballot))


def vote(name: str) -> Callable[[Ballot], None]:
    """Return the change that counts a vote for list "a" or "b", "s" for the same, or "k" to skip."""

    def give(ballot: Ballot) -> None:
        question = ballot.question
        if question is not None:
            chosen = {"s": SAME, "k": SKIP}.get(name) or question.chosen(second=name == "b")
            ballot.judgement.add(question, ballot.texts, chosen)

    return give


def undo(ballot: Ballot) -> None:
    """Take the last vote back."""
    ballot.judgement.undo()
    ballot.ended = False


def end(ballot: Ballot) -> None:
    """Ask for no more votes."""
    ballot.ended = True
