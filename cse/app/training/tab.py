"""The Train tab: a method and a press; then curves, changing neighbours and the result, found again after a reload."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import gradio as gr

from cse.app.drawing import html
from cse.app.drawing.components import heading, result
from cse.app.forms.events import HIDDEN, PRIVATE, Run, one_line_errors
from cse.app.training.asking import asked_for, estimate_words, expected_of
from cse.app.training.columns import attach, made_by
from cse.app.training.form import train_form
from cse.app.training.rules import REFUSED
from cse.app.training.training import Training
from cse.app.training.view import EMPTY, changes_html, training_html

if TYPE_CHECKING:
    from cse.app.corpus.bar import CorpusBar
    from cse.app.models.state import AppState
    from cse.app.training.trainings import Trainings

TICK = 1.5  # seconds between two looks at a training
NUMBERS = itertools.count(1)  # an event fires when its state changes
LANE: dict[str, Any] = {**HIDDEN, "concurrency_id": "training", "concurrency_limit": 8, "show_progress": "hidden"}
FETCH = "() => document.querySelector('#fetched-model a, a#fetched-model, #fetched-model')?.click()"


class TrainTab(NamedTuple):
    """`changed` is the event of a new column; `resume` shows an opened page the visitor's training and models."""

    changed: Any
    resume: Any


def mark_of(training: Training | None) -> tuple[Any, ...]:
    """Return a value that differs where the page has to be drawn again."""
    if training is None:
        return ()
    seconds = int(training.seconds // 10) if training.running else 0
    return (id(training), training.state, training.progress.step, len(training.lines), seconds, id(training.changes))


def train_tab(state: AppState, trainings: Trainings, bar: CorpusBar, strip: Run) -> TrainTab | None:
    """Add the tab's content; None where this server does not train."""
    heading("Train a model on your corpus")
    if not trainings.rules.allowed:
        gr.HTML(html.hint(REFUSED), apply_default_css=False)
        return None
    with gr.Row(elem_classes="cse-train"):
        with gr.Column(scale=2, min_width=300):
            form = train_form(state, trainings.rules)
        with gr.Column(scale=3, min_width=300):
            shown = result("training", html.hint(EMPTY))
            with gr.Row(visible=False) as taken:
                fetch = gr.Button("Download (.zip)", scale=0, min_width=150)
                which = gr.Dropdown([], label="Model", visible=False, scale=1, min_width=150)
            fetched = gr.DownloadButton("", visible="hidden", elem_id="fetched-model")
            command = gr.Textbox("", label="The command that repeats this", visible=False, buttons=["copy"], lines=2)
    changes = result("changes", "")
    timer, mark, attached = gr.Timer(TICK, active=False), gr.State(()), gr.State(0)
    page = [shown, changes, timer, mark, attached, form.start, form.stop, form.resume, taken, which, command]

    def drawn(key: str, mark: Any = None) -> list[Any]:
        """Return the updates of the page by the visitor's newest training; nothing where it shows that already."""
        training = trainings.newest(key)
        if training is None or mark == mark_of(training):
            return [gr.skip()] * len(page)
        made = training.outcome.models if training.outcome else ()
        fresh = next(NUMBERS) if put_columns(key) else gr.skip()
        names = [each.name for each in made]
        return [
            training_html(training), changes_html(training), gr.Timer(active=training.running), mark_of(training), fresh,
            gr.update(interactive=not training.running), gr.update(interactive=training.running),
            gr.update(interactive=training.resumable), gr.update(visible=bool(made)),
            gr.update(choices=names, value=names[0] if names else None, visible=len(names) > 1),
            gr.update(value=training.request.command, visible=True),
        ]  # fmt: skip

    def put_columns(key: str) -> bool:
        try:
            return bool(attach(state, made_by(trainings, key)))
        except ValueError as error:
            gr.Warning(html.escape(str(error)))
            return False

    def train(corpus: str, key: str, *values: Any) -> list[Any]:
        try:
            request = asked_for(state, trainings.rules, corpus, key, form.values(*values))
            expected = expected_of(state, request)
            trainings.begin(key, request, expected)
        except (ValueError, OSError) as error:
            return [html.alert(str(error)), *[gr.skip()] * len(page)]
        return [html.hint(estimate_words(request, expected)), *drawn(key)]

    def resume(key: str) -> list[Any]:
        with one_line_errors():
            trainings.resume(key)
        return drawn(key)

    def archive(key: str, name: str) -> Any:
        with one_line_errors():
            return trainings.archive(key, name)

    asked = [bar.corpus, bar.key, *form.fields]
    form.start.click(train, asked, [form.said, *page], **LANE)
    form.stop.click(trainings.stop, bar.key, None, **LANE)
    form.resume.click(resume, bar.key, page, **LANE)
    timer.tick(drawn, [bar.key, mark], page, **LANE)
    fetch.click(archive, [bar.key, which], fetched, **LANE).success(None, js=FETCH, **HIDDEN)
    described = attached.change(strip.fn, None, list(strip.outputs), **PRIVATE)
    return TrainTab(described, lambda after: after(drawn, bar.key, page, **LANE))
