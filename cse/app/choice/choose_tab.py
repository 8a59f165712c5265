"""The tab Choose for my data: two models, blind votes by buttons or keys, and the verdict."""

from __future__ import annotations

from typing import NamedTuple

import gradio as gr

from cse.analysis.votes import decisive
from cse.app.choice.comparison import LEAST_VOTES, MODELS, MOST_VOTES, VOTES, columns_of
from cse.app.choice.voting import ASK, Voting, end, undo, vote
from cse.app.corpus.bar import CorpusBar
from cse.app.corpus.chosen import FIELD
from cse.app.drawing import html
from cse.app.drawing.components import heading, saved_file, script, submit
from cse.app.forms.events import COMPARISONS, HIDDEN, QUICK, guarded
from cse.app.forms.links import COPY, Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.naming import choices
from cse.app.state.app_state import AppState

MEANING = (
    "<p>You see a text and two lists of the five texts nearest to it, one from each model, and you do not know whose "
    "list is whose. Vote for the closer list. The verdict says whether your votes favour one model by more than "
    "chance.</p>"
)
BUTTONS = {"a": "A is closer (A)", "s": "The same (S)", "b": "B is closer (B)", "k": "Skip (K)", "u": "Undo (U)"}
TO_QUESTION = "() => document.getElementById('ballot')?.scrollIntoView({block: 'start'})"


class Buttons(NamedTuple):
    """The buttons of a question by key, and those of a verdict."""

    cast: dict[str, gr.Button]
    end: gr.Button
    save: gr.Button
    copy: gr.Button
    back: gr.Button


def choose_tab(state: AppState, tab: gr.Tab, bar: CorpusBar) -> Linked:
    """Add the tab's content. Returns its part of the address."""
    heading("Which model suits these texts?", "Compare two models blindly.", MEANING)
    names = list(columns_of(state))
    with gr.Row(equal_height=True):
        first, second = (
            gr.Dropdown(choices(names), value=names[place], label=label, scale=3, min_width=160)
            for place, label in ((0, "First model"), (-1, "Second model"))
        )
        votes = gr.Slider(LEAST_VOTES, MOST_VOTES, VOTES, step=1, label="Votes", scale=3, min_width=160)
        start = submit("Start voting")
    needed = gr.HTML(needed_html(VOTES), apply_default_css=False, elem_id="votes-needed")
    votes.change(needed_html, votes, needed, trigger_mode="always_last", **QUICK)
    code = gr.Textbox("", label="Verdict", visible="hidden")
    outputs, buttons = shown(code)
    voting, chosen = Voting(state), {MODELS[0]: first, MODELS[1]: second, "The votes": votes}
    begun = refusing(voting.begin, {**chosen, FIELD: bar.corpus, "The key": bar.key}, outputs)
    resumed = refusing(voting.resume, {**chosen, "The verdict": code, "The key": bar.key}, outputs)
    started = start.click(
        begun.fn, list(begun.inputs), list(begun.outputs), show_progress_on=outputs[0], **HIDDEN, **COMPARISONS
    )
    started.then(None, js=TO_QUESTION, **HIDDEN)
    tab.select(resumed.fn, list(resumed.inputs), list(resumed.outputs), **QUICK)
    tab.select(lambda: [gr.update(choices=choices(columns_of(state)))] * 2, None, [first, second], **QUICK)
    connect(voting, buttons, outputs, bar.key)
    verdict = Result("The verdict", "ballot", ("first", "second", "votes", "code", "key"))
    return Linked(
        ("first", "second", "votes", "verdict"),
        resumed,
        (start.click,),
        QUICK,
        (code.change, votes.release),
        results=[verdict],
    )


def needed_html(votes: float) -> str:
    """Return in a sentence what so many votes can find; empty for a number that is not offered."""
    if votes not in range(LEAST_VOTES, MOST_VOTES + 1):
        return ""
    return html.hint(
        f"Of {votes:.0f} votes for a list, {decisive(int(votes))} must favour one model to find it better."
    )


def shown(code: gr.Textbox) -> tuple[list[gr.components.Component], Buttons]:
    """Add what a `View` fills, in its order with the `code` as the last, and the buttons."""
    status = gr.HTML(html.hint(ASK), apply_default_css=False, elem_id="choose-status")
    with gr.Column(visible=False, elem_id="voting") as asking:
        question = gr.HTML("", apply_default_css=False, elem_id="ballot")
        with gr.Row():
            cast = {key: gr.Button(name, min_width=110, elem_id=f"vote-{key}") for key, name in BUTTONS.items()}
            last = gr.Button("See the verdict", min_width=130)
    verdict = gr.HTML("", apply_default_css=False, elem_id="verdict")
    with gr.Row(visible=False) as after:
        others = [
            gr.Button(name, size="sm", scale=0, min_width=140)
            for name in ("Votes (JSON)", "Copy verdict link", "Undo last vote")
        ]
    place = gr.Number(0, precision=0, visible=False)
    gr.HTML("", html_template="", js_on_load=script("vote_keys"), apply_default_css=False, visible="hidden")
    return [status, question, verdict, asking, after, place, code], Buttons(cast, last, *others)


def connect(voting: Voting, buttons: Buttons, outputs: list[gr.components.Component], key: gr.Textbox) -> None:
    """Connect the buttons with their handlers."""
    taken, place = saved_file(), outputs[-2]
    changes = {button: undo if name == "u" else vote(name) for name, button in buttons.cast.items()}
    for button, change in {**changes, buttons.end: end, buttons.back: undo}.items():
        button.click(voting.changing(change), [place, key], outputs, **QUICK)
    buttons.copy.click(None, None, buttons.copy, js=COPY, **HIDDEN)
    buttons.save.click(guarded(voting.save), key, taken, **QUICK)
