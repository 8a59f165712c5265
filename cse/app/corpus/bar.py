"""The corpus bar, one line above the tabs: the choice of a corpus, and the progress of a visitor's own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from cse.app.corpus.chosen import choices_of
from cse.app.corpus.export import export_form
from cse.app.corpus.texts_form import texts_form
from cse.app.drawing import html
from cse.app.forms.events import HIDDEN, QUICK, hide
from cse.app.models.naming import title
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO_KEY, OWN_KEY
from cse.app.state.encodings import Encoding
from cse.app.state.own_corpora import GONE, UNDO, OwnCorpus
from cse.app.validation import counted

CHANGES: dict[str, Any] = {"concurrency_id": "changes", "concurrency_limit": 8}
BUTTONS = ("Upload", "Paste", "Export")
POLL = 1.0  # seconds between looks at an encoding
STEPS = 1000  # more than the encodings of one corpus
TO_UNDO = "() => requestAnimationFrame(() => document.getElementById('corpus-undo')?.focus())"
# The browser reports no choice in a dropdown; what waits for an edit of this one (static/refusals.js) hears of it.
EDITED = "() => document.getElementById('corpus').dispatchEvent(new Event('input'))"


class CorpusBar(NamedTuple):
    """The chosen corpus, the visitor's key, and a number that changes when texts or vectors of the choice changed.

    The `row` takes further buttons; only one of its `forms` is open at a time. The address is written
    after the events `steps`, too; `resume` shows an opened page the visitor's corpus.
    """

    corpus: gr.Dropdown
    key: gr.Textbox
    changed: gr.State
    row: gr.Row
    forms: Sequence[gr.Column]
    steps: Sequence[Any] = ()
    resume: Any = None


def corpus_bar(state: AppState, key: gr.Textbox) -> CorpusBar:
    """Add the bar and the forms that it opens."""
    with gr.Row(elem_id="corpus-bar") as row:
        corpus = gr.Dropdown(choices_of(state), value=DEMO_KEY, label="Corpus", elem_id="corpus", scale=0)
        upload, paste, save = (gr.Button(name, size="sm", scale=0, min_width=76) for name in BUTTONS)
        remove = gr.Button("Remove", size="sm", scale=0, min_width=76, visible=False)
        undo = gr.Button("Undo", size="sm", scale=0, min_width=76, visible=False, elem_id="corpus-undo")
        gone = gr.HTML("", apply_default_css=False, elem_id="corpus-gone")
        status = gr.HTML("", apply_default_css=False, elem_id="corpus-status")
    form, used = texts_form(state, corpus, key, (upload, paste))
    export = export_form(state, corpus, key, save)
    for button, other in ((upload, export), (paste, export), (save, form)):
        button.click(hide, None, other, **QUICK)
    number = gr.Number(0, precision=0, visible="hidden")  # a State takes no value outside of the queue
    changed, timer, undoable = gr.State(0), gr.Timer(POLL, active=False), gr.Timer(UNDO, active=False)
    shown = [status, number, timer, remove]

    def follow(corpus: str, key: str) -> tuple[Any, ...]:
        """Return updates of what depends on the choice."""
        own = state.own_corpora.corpus(key) if corpus == OWN_KEY else None
        running = own is not None and own.current is not None
        mine = gr.update(visible=own is not None)
        return status_html(corpus, own), version(state, corpus, own), gr.Timer(active=running), mine

    def resume(key: str, request: gr.Request) -> Any:
        bare = not dict(request.query_params)
        mine = bare and state.own_corpora.corpus(key) is not None
        choices = choices_of(state, key)
        return gr.update(choices=choices, value=OWN_KEY) if mine else gr.update(choices=choices)

    number.change(lambda number: number, number, changed, show_progress="hidden", **HIDDEN, **CHANGES)
    corpus.change(follow, [corpus, key], shown, **QUICK)
    timer.tick(follow, [corpus, key], shown, **QUICK)
    used.success(follow, [corpus, key], shown, **QUICK)  # the choice may have been the visitor's own before
    offered = [gone, undo, undoable]
    removed = remove.click(partial(put_aside, state), key, [corpus, *offered], **QUICK)
    removed.success(None, js=TO_UNDO, **HIDDEN)  # the button that had the focus is gone
    undone = undo.click(partial(bring_back, state), key, [corpus, *offered], **QUICK)
    for end in (undoable.tick, used.success):
        end(lambda: ("", hide(), gr.Timer(active=False)), None, offered, **QUICK)
    for chosen in (corpus.change, used.success):
        chosen(None, js=EDITED, **HIDDEN)

    def resume_after(event: Any) -> Any:
        return event(resume, key, corpus, show_progress="hidden", **HIDDEN)

    return CorpusBar(corpus, key, changed, row, (form, export), (used, removed, undone), resume_after)


def put_aside(state: AppState, key: str) -> tuple[Any, ...]:
    """Remove the texts of a key, and its votes, which hold some; return updates of the choice and of what undoes it."""
    ballot = state.ballots.get(key)

    def drop_ballot() -> None:
        if state.ballots.get(key) is ballot:
            state.ballots.drop(key)

    own = state.own_corpora.set_aside(key, drop_ballot)
    said = "" if own is None else told(f"{own.label} is removed; Undo brings it back for {UNDO} seconds.")
    chosen = gr.update(choices=choices_of(state), value=DEMO_KEY)
    return chosen, said, gr.update(visible=own is not None), gr.Timer(active=own is not None)


def bring_back(state: AppState, key: str) -> tuple[Any, ...]:
    """Undo a removal; return the same updates."""
    own = state.own_corpora.restore(key)
    if own is None:
        said = html.alert("These texts are gone; upload or paste them again.")
        return gr.skip(), said, hide(), gr.Timer(active=False)
    chosen = gr.update(choices=choices_of(state, key), value=OWN_KEY)
    return chosen, told(f"{own.label} is back."), hide(), gr.Timer(active=False)


def told(text: str) -> str:
    """Return a line that screen readers announce."""
    return f'<p class="cse-note" role="status">{html.escape(text)}</p>'


def version(state: AppState, corpus: str, own: OwnCorpus | None) -> int:
    """Return a number that differs if another corpus is chosen, or if the visitor's `own` one has other vectors."""
    if corpus == OWN_KEY:
        return 0 if own is None else own.number * STEPS + own.complete
    return -1 - [DEMO_KEY, *state.corpora].index(corpus)


def status_html(corpus: str, own: OwnCorpus | None) -> str:
    """Return what was left out of a visitor's own corpus and the models' progress with it, empty for other corpora."""
    if corpus != OWN_KEY:
        return ""
    if own is None:
        return html.alert(GONE)
    encodings = own.encodings.values()
    failed = "".join(html.alert(f"{title(each.column.name)}: {each.failure}") for each in encodings if each.failure)
    left_out = (
        f"{counted(own.without_text, 'row')} without a text {'was' if own.without_text == 1 else 'were'} left out"
    )
    missing = f'<p class="cse-note">{left_out}.</p>' if own.without_text else ""
    ready = ", ".join(html.escape(title(each.column.name)) for each in encodings if each.complete)
    waiting = [each for each in encodings if not each.ended]
    if not waiting:
        return missing + failed
    more = f"{len(waiting) - 1} more to come" if len(waiting) > 1 else ""
    parts = (f"{ready} ready" if ready else "", progress(waiting[0]), more)
    return missing + failed + f'<p class="cse-note" role="status">{" · ".join(filter(None, parts))}</p>'


def progress(encoding: Encoding) -> str:
    """Return a model's progress as a bar and in words."""
    left, name = encoding.seconds_left(), html.escape(title(encoding.column.name))
    when = "" if left is None else f", {duration(left)} to go"
    return f"{name} {html.bar(encoding.done / encoding.total)} {encoding.done:,} of {encoding.total:,}{when}"


def duration(seconds: float) -> str:
    """Return a time in words."""
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"
