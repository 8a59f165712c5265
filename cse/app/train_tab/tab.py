"""The Train tab: a method and a press; then curves, changing neighbours and the result, found again after a reload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import gradio as gr

from cse.app.corpus.chosen import chosen_corpus
from cse.app.drawing import html
from cse.app.drawing.components import heading
from cse.app.forms.events import PRIVATE, QUICK, Run
from cse.app.forms.links import Linked, Result
from cse.app.train_tab.form import TrainForm, train_form
from cse.app.train_tab.own_files import own_files
from cse.app.train_tab.results import LANE, Results
from cse.app.training.estimate import in_words, seconds_of, texts_per_second
from cse.app.training.request import TrainingRequest, checked
from cse.app.training.rules import REFUSED, UNOWNED

if TYPE_CHECKING:
    from cse.app.corpus.bar import CorpusBar
    from cse.app.state.app_state import AppState
    from cse.app.training.rules import Rules
    from cse.app.training.trainings import Trainings


class TrainTab(NamedTuple):
    """`changed` are the events of a new column; `resume` shows an opened page what its visitor may, has and trains."""

    linked: list[Linked]
    changed: Sequence[Any]
    resume: Any


def train_tab(state: AppState, trainings: Trainings, bar: CorpusBar, strip: Run) -> TrainTab:
    """Add the tab's content; to those who may not train it says who may, and which option allows it.

    It is built for visitors, and shows its form to the owner when the page is opened.
    """
    heading("Train a model on your corpus")
    linked: list[Linked] = []
    visitors, owner = trainings.visitors, trainings.owner
    refusal = gr.HTML(
        html.hint(REFUSED if owner.allowed else UNOWNED), apply_default_css=False, visible=not visitors.allowed
    )
    if not owner.allowed:
        results = None
    else:
        with gr.Row(elem_classes="cse-train", visible=visitors.allowed) as work:
            with gr.Column(scale=2, min_width=300):
                form = train_form(state, owner)
            with gr.Column(scale=3, min_width=300):
                results = Results(state, trainings, bar.key)
        results.changes.render()
        newest = Result("The newest training", "training", ("key",))
        linked = [
            begin_by(state, trainings, bar, form, results),
            Linked((), Run(results.drawn, [bar.key], results.outputs), (), results=[newest]),
        ]
    files = own_files(state, trainings, bar.key)
    numbers = [files.attached, *([results.attached] if results else [])]
    changed = [
        number.change(strip.fn, None, list(strip.outputs), show_progress="hidden", **PRIVATE) for number in numbers
    ]

    def permitted() -> list[Any]:
        rules = trainings.rules
        shown = [gr.update(visible=not rules.allowed), gr.update(visible=rules.allowed)]
        return [*shown, *form.bounded(rules), *files.permitted(rules, owner)]

    def resume(after: Any) -> None:
        if results is None:
            return
        if visitors != owner:
            outputs = [refusal, work, form.minutes, form.promise, *files.components]
            after(permitted, None, outputs, **QUICK)
        results.resume(after)

    return TrainTab(linked, changed, resume)


def begin_by(state: AppState, trainings: Trainings, bar: CorpusBar, form: TrainForm, results: Results) -> Linked:
    """Make the form estimate, begin, stop and resume trainings. Returns the part of the address: the method."""

    def train(corpus: str, key: str, *values: Any) -> list[Any]:
        try:
            request = requested(state, trainings.rules, corpus, key, form.values(*values))
            expected = expected_of(state, request)
            trainings.begin(key, request, expected)
        except (ValueError, OSError) as error:
            return [html.alert(str(error)), *results.unchanged()]
        return [html.hint(estimate_words(request, expected)), *results.drawn(key)]

    def resume(key: str) -> list[Any]:
        try:
            trainings.resume(key)
        except ValueError as error:
            return [html.alert(str(error)), *results.drawn(key)]
        return ["", *results.drawn(key)]

    def estimate(*given: Any) -> str:
        *values, corpus, key = given
        try:
            request = requested(state, trainings.rules, corpus, key, form.values(*values))
        except ValueError as error:
            return html.hint(str(error))
        return html.hint(estimate_words(request, expected_of(state, request)))

    results.buttons(form)
    inputs, outputs = [bar.corpus, bar.key, *form.fields], [form.status, *results.outputs]
    form.start.click(train, inputs, outputs, **LANE)
    form.stop.click(trainings.stop, bar.key, None, **LANE)
    form.resume.click(resume, bar.key, outputs, **LANE)
    estimated = Run(estimate, [*form.fields, bar.corpus, bar.key], [form.status])
    form.method.input(estimate, list(estimated.inputs), form.status, **LANE)
    return Linked(("method",), estimated, [form.method.input], LANE)


def requested(state: AppState, rules: Rules, corpus: str, key: str, values: Mapping[str, Any]) -> TrainingRequest:
    """Return the request of a page's values on the corpus that it has chosen. Raises ValueError as `checked` does."""
    rules.check()  # before a folder is looked for
    found = chosen_corpus(state, corpus, key)
    start = state.admission.model(values["start"])
    return checked(rules, found.texts, found.labels, corpus=found.label, **{**values, "start": start})


def expected_of(state: AppState, request: TrainingRequest) -> float | None:
    """Return the seconds that a training is estimated to take here, or None if no model could be timed."""
    speed = texts_per_second(state, request.method, request.texts)
    return None if speed is None else seconds_of(request, speed)


def estimate_words(request: TrainingRequest, seconds: float | None) -> str:
    """Return the estimate in a sentence."""
    if seconds is None:
        return "The time cannot be estimated here."
    return (
        f"{in_words(seconds).capitalize()} for {len(request.texts):,} texts, estimated from the speed at which this "
        "machine encodes them now."
    )
