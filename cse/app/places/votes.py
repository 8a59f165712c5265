"""Blind votes between two models: the fields, a question at a time by buttons or keys, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gradio as gr

from cse.analysis.votes import SAME, SKIP, decisive, p_value
from cse.app import html
from cse.app.corpus.corpora import FIELD
from cse.app.corpus.own import KEPT
from cse.app.events import COMPARISONS, HIDDEN, PROGRESS, QUICK, Linked, Run, refusing, reporter
from cse.app.models.naming import choices, title
from cse.app.results.judge import DEFAULT_VOTES, FIRST, SECOND, Judge, columns_of
from cse.app.state import MANY_ANSWERS, AppState, Ballot, open_session
from cse.app.top import Top
from cse.app.validation import checked_key

MEANING = (
    "You see a text and two lists of the five texts nearest to it, one from each model, and you do not know whose list "
    f"is whose. Of {DEFAULT_VOTES} votes for a list, {decisive(DEFAULT_VOTES)} must favour one model to find it better "
    f"by more than chance. Your votes are kept for {KEPT // 3600} hours, for this browser alone."
)
NO_VOTE = "A verdict needs a vote; give one."
LOST = "There are no votes of yours on this server any more; press Start voting."
BUTTONS = {"a": "A is closer (A)", "s": "The same (S)", "b": "B is closer (B)", "k": "Skip (K)", "u": "Undo (U)"}
TO_QUESTION = "() => document.getElementById('ballot')?.scrollIntoView({block: 'nearest'})"
SHOW, HIDE = gr.update(visible=True), gr.update(visible=False)


class View(NamedTuple):
    """What the page shows: a message, a question or a verdict, and the buttons of either.

    `mark` tells the question from others: a vote counts only for the one that was shown.
    """

    status: str = ""
    question: str = ""
    verdict: str = ""
    asking: Any = HIDE
    after: Any = HIDE
    mark: int = 0


def view(ballot: Ballot) -> View:
    """Return the view of a ballot: its next question, or its verdict."""
    if ballot.question is not None:
        return View(question=question_html(ballot), asking=SHOW, mark=ballot.mark)
    return View(verdict=verdict_html(ballot), after=SHOW, mark=ballot.mark)


def question_html(ballot: Ballot) -> str:
    """Return the next question, and the interval of the votes so far; neither says which model is which."""
    question, texts = ballot.question, ballot.texts
    lists = [[texts[row] for row in rows] for rows in question.lists] if question else []
    return html.drawn(
        "votes", "ballot", asked=texts[question.row] if question else "", lists=list(zip("AB", lists, strict=False)),
        judgement=ballot.judgement,
    )  # fmt: skip


def verdict_html(ballot: Ballot) -> str:
    """Return the verdict of the votes so far, which names the models."""
    setup, votes = ballot.judgement.setup, ballot.judgement.verdict
    said = votes.sentence(title(setup.start.name), title(setup.result.name))
    said = f"Not{said[3:]}" if said.startswith("not distinguishable") else said
    skipped = sum(answer.vote == SKIP for answer in ballot.judgement.answers)
    return html.drawn(
        "votes", "verdict", setup=setup, differing=ballot.differing, skipped=skipped, sentence=said, votes=votes,
        p=p_value(votes.p),
    )  # fmt: skip


class Voting:
    """Handlers for the votes of all visitors, each under the visitor's key."""

    def __init__(self, state: AppState) -> None:
        self._state, self._ballots = state, state.ballots

    def begin(self, first: str, second: str, corpus: str, key: str, progress: gr.Progress = PROGRESS) -> Iterator[View]:
        """Compare two models on the corpus, and show the first question."""
        yield View(html.hint("Comparing the models."))
        asked = Judge.of({"first": first, "second": second})
        session = open_session(self._state, corpus, key, report=reporter(progress))
        self._ballots.put(checked_key(key, "votes"), ballot := asked.ballot(session))
        yield view(ballot)

    def reopen(self, key: str) -> View:
        """Show an opened page the visitor's ballot, if there is one."""
        ballot = self._ballots.get(key)
        return View(*[gr.skip()] * len(View._fields)) if ballot is None else view(ballot)

    def changing(self, name: str) -> Callable[[float, str], View]:
        """Return the handler of a button: for the ballot that the page shows, and all but "end" for its question."""

        def changed(mark: float, key: str) -> View:
            with self._ballots.lock:
                ballot = self._ballots.get(key)
                if ballot is None:
                    return View(html.alert(LOST))
                if name == "end" and not ballot.judgement.answers:
                    return view(ballot)._replace(status=html.hint(NO_VOTE))
                # "end" may be pressed while a vote is sent; another tab may have begun another ballot.
                if mark == ballot.mark or (name == "end" and mark // MANY_ANSWERS == ballot.number):
                    change(ballot, name)
                return view(ballot)

        return changed


def change(ballot: Ballot, name: str) -> None:
    """Count a vote for list "a" or "b", "s" for the same, or "k" to skip; "u" takes the last back, "end" ends."""
    question = ballot.question
    if name in ("u", "end"):
        ballot.ended = name == "end"
        if name == "u":
            ballot.judgement.undo()
    elif question is not None:
        cast = {"s": SAME, "k": SKIP}.get(name) or question.chosen(second=name == "b")
        ballot.judgement.add(question, ballot.texts, cast)


class Votes(NamedTuple):
    """The fields of both models, the part of the address, and what shows an opened page the visitor's ballot."""

    first: gr.Dropdown
    second: gr.Dropdown
    linked: Linked
    reopened: Run


def votes_part(state: AppState, top: Top) -> Votes:
    """Add the votes. Their fields offer the models of the visitor when the page is opened or a model is added."""
    names = list(columns_of(state))
    with gr.Row(equal_height=True):
        first, second = (
            gr.Dropdown(choices(names), value=names[at], label=label, scale=3, min_width=160)
            for at, label in ((0, "First model"), (-1, "Second model"))
        )
        start = gr.Button("Start voting", scale=0, min_width=130, elem_classes="cse-submit")
    gr.HTML(html.hint(MEANING), apply_default_css=False)
    status = gr.HTML("", apply_default_css=False, elem_id="votes-said", elem_classes="cse-result")
    with gr.Column(visible=False, elem_id="voting") as asking:
        question = gr.HTML("", apply_default_css=False, elem_id="ballot")
        with gr.Row():
            cast = {key: gr.Button(name, min_width=110, elem_id=f"vote-{key}") for key, name in BUTTONS.items()}
            last = gr.Button("See the verdict", min_width=130)
    verdict = gr.HTML("", apply_default_css=False, elem_id="verdict")
    with gr.Row(visible=False) as after:
        back = gr.Button("Undo last vote", size="sm", scale=0, min_width=140)
    mark = gr.Number(0, precision=0, visible=False)
    outputs = [status, question, verdict, asking, after, mark]
    voting = Voting(state)
    begun = refusing(voting.begin, {FIRST: first, SECOND: second, FIELD: top.corpus, "The key": top.key}, outputs)
    lane: dict[str, Any] = {"show_progress_on": status, **HIDDEN, **COMPARISONS}
    started = start.click(*begun, **lane)
    started.then(None, js=TO_QUESTION, **HIDDEN)
    for name, button in (*cast.items(), ("end", last), ("u", back)):
        button.click(voting.changing(name), [mark, top.key], outputs, **QUICK)
    return Votes(first, second, Linked((), begun, ()), Run(voting.reopen, [top.key], outputs))
