"""Your model: a start, an adaptation with one verdict, the dial between its axes, blind votes, and taking it away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr
import pandas as pd
from markupsafe import Markup

from cse.adaptation.choice import BOTH, MIN_TEXTS
from cse.adaptation.workspace import CANDIDATE
from cse.app import html
from cse.app.corpus.corpora import FIELD
from cse.app.events import CHANGES, HIDDEN, QUICK, SILENT, Linked, Run, one_line_errors, refusing
from cse.app.html import heading, result
from cse.app.models.models import error_line, opened_by
from cse.app.models.naming import BEFORE, POOLED, choices, title
from cse.app.places.votes import votes_part
from cse.app.results import adaptation
from cse.app.results.judge import Judge, columns_of
from cse.app.server.gradio_adapter import current_request
from cse.app.show import Answer, Shown, page_html, plot_value
from cse.app.state import attach, choices_of, chosen_corpus
from cse.app.top import Top, model_choices, stem_of
from cse.app.training.request import ADAPT, MAX_NAME, MODEL, REFUSED, TEXTS, UNOWNED, Made, TrainingRequest, checked
from cse.app.training.training import State, Training, how_to_open
from cse.app.validation import FieldError
from cse.corpus.corpus import check_texts
from cse.models.names import BACKBONE, BUNDLED_NAMES, resolve

if TYPE_CHECKING:
    from cse.app.state import AppState

TICK, OFTEN = 1.5, 10  # seconds between two looks at a training, and after which the time that is left is shown anew
LANE: dict[str, Any] = {**SILENT, "concurrency_id": "training", "concurrency_limit": 8}
FETCH = "() => setTimeout(() => document.querySelector('#fetched-model')?.click(), 200)"
# A chart that appears with its place has measured no width yet.
RESIZED = "() => setTimeout(() => dispatchEvent(new Event('resize')), 200)"
NOT_TRIED = "left out"  # the beginning of the command's line on a stage that it has not tried
START = "The model"  # its field
PLAIN = ("mean", "cls")  # readings of the untrained backbone that can be adapted
PUBLISHED = "As its paper has it, with the settings for the start's size; the command has all others."
PRESS = "Press Adapt: the first answer stands here in about half a minute."
ABOUT = (
    "The chosen corpus is read, a fifth of it held out, and several cheap changes of the model are tried on the rest. "
    "A first answer comes in about half a minute; training, which may add about two points, begins then and can be "
    "stopped with what is there."
)


def start_of(state: AppState, name: Any) -> tuple[str, str | None]:
    """Return the model to start from and its reading, None for its own. Raises ValueError for what is not admitted."""
    column = next((column for column in state.models.columns if column.name == name), None)
    if column is not None:
        return column.model, column.pooling
    pooling = POOLED.get(str(name).strip().lower())
    return state.admission.model(name), pooling if pooling in PLAIN else None


def reading_html(state: AppState, name: Any) -> str:
    """Return how the start is read, from its configuration alone; nothing is downloaded for that."""
    known = [*state.admission.offered(), *(column.name for column in state.models.columns)]
    if name not in known:
        return html.hint(f"{str(name)[:60]} is opened, and its reading found, when you press a button.")
    model = ""
    try:
        model, pooling = start_of(state, name)
        reference = resolve(model, pooling, lenient=True)
    except (ValueError, OSError) as error:
        return html.hint(error_line(error, model, str(name)))
    read = reference.recorded.pooling if reference.recorded else reference.pooling
    how = {"mean": "by the mean of its tokens", "cls": "at its first token"}.get(read or "", "as it was trained")
    trained = reference.kind.value in ("backbone", "sentence-transformers")
    more = "" if trained else " It is trained already, so that its vectors are adapted and its weights stay."
    more = " It is the backbone of the bundled models, which no method has trained." if name == BACKBONE else more
    return html.hint(f"{title(str(name))} is read {how}.{more}")


def requested(state: AppState, corpus: str, key: str, start: Any, **values: Any) -> TrainingRequest:
    """Return the request of a page's values on the corpus that it has chosen. Raises ValueError as `checked` does."""
    rules = state.trainings.rules
    rules.check()  # before a folder is looked for
    chosen = chosen_corpus(state, corpus, key)
    try:
        model, pooling = start_of(state, start)
    except ValueError as error:
        raise FieldError(START, str(error)) from error
    saved = f"{stem_of(chosen.label)}.csv", chosen.text_name, chosen.label_name
    return checked(
        rules, chosen.texts, chosen.labels, corpus=chosen.label, start=model, pooling=pooling, saved=saved, **values
    )


def in_words(training: Training) -> str:
    """Return the state of a training in words, with the time to go."""
    progress, spent = training.progress, f"{training.seconds / 60:.1f} minutes"
    steps = f"step {progress.step:,} of {progress.steps:,}" if progress.steps else ""
    if training.running and training.stopping:
        return "Stopping: what is there is being kept." if progress.answered else "Stopping."
    if training.state is State.RUNNING:
        lines = (line for line in reversed(training.lines) if not line.startswith(TEXTS))  # a file of the page's own
        last = next(lines, "reading the texts")
        what = steps or ("keeping what is best" if last.startswith(NOT_TRIED) else adaptation.on_page(last))
        left = f", about {max(1, round(seconds / 60))} min left" if (seconds := progress.seconds_left) else ""
        return f"{'Training' if steps else 'At work'}: {what}{left if progress.step >= 3 else ''}; {spent} so far."
    if training.state is State.STOPPED:
        without = training.request.method == ADAPT
        return "Stopped: there is no model yet." if without else f"Stopped at {steps or 'once'}."
    if training.state is State.FAILED:
        return f"Failed after {spent}."
    return f"Stopped after {spent}, with what was there." if training.stopping else f"Finished in {spent}."


def training_html(training: Training, quotes: bool = True) -> str:
    """Return the state of a training, the first answer while it runs, and its one verdict at the end.

    It `quotes` texts of its corpus while that is there: a visitor may have removed it.
    """
    request, progress, outcome = training.request, training.progress, training.outcome
    scored, share = None, progress.step / progress.steps if progress.steps else 0.0
    report, made = (outcome.report, outcome.models) if outcome else (None, ())
    if report:
        scored = adaptation.report_frame(report).assign(verdict="")  # the heading says it
    elif training.running and progress.answered:
        scored = adaptation.first_answer(progress.stages, request.purpose)
    table = "" if scored is None else page_html(Answer(adaptation.Adaptation(), scored, {}))
    method = "Adapt" if request.method == ADAPT else title(request.method)
    return html.drawn(
        "adaptation", "training", name=request.name, method=method, corpus=request.corpus, words=in_words(training),
        failure=training.failure, share=share if training.running else None, candidates=Markup(table),
        lines=training.lines, sentence=adaptation.on_page(outcome.sentence) if outcome else "",
        changed=report["changed"] if report and quotes else (),
        models=[model.name for model in made if model.folder.name != CANDIDATE],
        judged=[model.name for model in made if model.folder.name == CANDIDATE],
    )  # fmt: skip


def dial_of(training: Training, dial: float | None = None) -> tuple[pd.DataFrame, float, dict[str, Any] | None]:
    """Return the places of the dial that a finished adaptation has tried, the place that is shown, and their chart."""
    report = training.outcome.report if training.outcome else None
    frame = adaptation.report_frame(report) if report else pd.DataFrame()
    points = adaptation.dial_points(frame) if report else frame
    if points.empty:
        return points, 0.0, None
    own = points.loc[points["chosen"] | points["judged"], "dial"]
    taken = training.dial if dial is None else dial
    shown = taken if taken is not None else float(own.iloc[0]) if len(own) else 0.0
    return points, shown, adaptation.Adaptation(shown).charts(frame)[0]


def turned_at(training: Training, points: pd.DataFrame, dial: float) -> Made | None:
    """Return the model that a place of the dial is made of; None where that is made already or none is."""
    folder = MODEL if points["chosen"].any() else CANDIDATE if points["judged"].any() else None
    models = {made.folder.name: made for made in training.outcome.models} if training.outcome else {}
    row = adaptation.at_dial(points, dial)
    there = row["chosen"] or row["judged"] or f"dial{row['dial']:g}" in models
    return None if there else models.get(folder or "")


class Trainer:
    """The handlers of the place; `drawn` is the number of the updates by a training, `page` of those by a new model."""

    drawn, page = 16, 3

    def __init__(self, state: AppState) -> None:
        self._state, self._trainings = state, state.trainings
        self.unchanged = [gr.skip()] * (self.drawn + self.page)

    def draw(self, key: str, known: Any, models: list[str]) -> list[Any]:
        """Return the updates by the visitor's newest training; none where `known` is its mark already."""
        training = self._trainings.newest(key)
        if training is None:
            return [*self.unchanged[self.page :], *self._added(key, models, known)] if known == () else self.unchanged
        running, ticks = training.running, int(training.seconds // OFTEN)
        quotes = training.request.corpus in dict(choices_of(self._state, key))
        now = (
            id(training), training.state, training.progress.step, len(training.progress.stages), training.lines[-1:],
            training.stopping, training.asks, ticks if running else 0, quotes, training.dial,
        )  # fmt: skip
        if now == known:
            return self.unchanged
        points, dial, spec = dial_of(training)
        names = [made.name for made, request in self._trainings.models(key) if request]  # the others were brought
        name, slider = names[0] if names else "", gr.update(visible=False)
        if spec:
            ends = points["dial"].min(), points["dial"].max()
            slider = gr.update(visible=True, minimum=ends[0], maximum=ends[1], value=dial)
        commands = "".join(f'<br><code class="cse-code">{html.escape(line)}</code>' for line in training.commands)
        asks = training.asks.partition(":")[0]  # what the stage of minutes takes and may add
        begun = f"First answer. {asks[:1].upper()}{asks[1:]}. It has begun: keep the answer, or let it go on."
        return [
            training_html(training, quotes), gr.update(visible=bool(asks)), html.verdict(begun if asks else ""), slider,
            gr.update(value=spec and plot_value(spec), visible=spec is not None),
            *self.said(training, points, dial), gr.update(visible=bool(names)),
            gr.update(choices=names, value=name or None), self.opening(key, name),
            f'<p class="cse-note">To repeat this, on the corpus as <i>Corpus</i> saves it:{commands}</p>',
            gr.Timer(active=running), now, gr.update(visible=running), gr.update(interactive=not running),
            gr.update(interactive=not running),
            *(self.unchanged[: self.page] if running else self._added(key, models, known)),
        ]  # fmt: skip

    def _added(self, key: str, models: list[str], mark: Any) -> list[Any]:
        """Add the visitor's models to the page, and return the updates of what lists models.

        An opened page, which knows no mark yet, has those that its address names, where all of these are there.
        """
        fresh, others = attach(self._state, key)
        for reason in others:
            gr.Warning(html.escape(reason))
        if not fresh:
            return self.unchanged[: self.page]
        known = columns_of(self._state)
        refused = tuple(name for name in fresh if name in known and Path(known[name].model).name == CANDIDATE)
        better = [name for name in fresh if not name.startswith(refused)]  # who wants to see the others ticks them
        newest = next((name for name in fresh if not name.endswith(BEFORE)), fresh[0])
        training = self._trainings.newest(key)
        start = opened_by(training.request.start, pooling=training.request.pooling) if training else None
        starts = [name for name, column in known.items() if column.opened_by == start]
        before = next((name for name in (*starts, f"{newest}{BEFORE}") if name in known), next(iter(known)))
        chosen, request = [*models, *better], current_request()
        if mark == () and request is not None:
            columns = [name for _, name in model_choices(self._state.models.columns)]
            named = str(request.query_params.get("models", "")).split(",")
            chosen = named if all(name in columns for name in named) else chosen
        return [
            gr.update(choices=model_choices(self._state.models.columns), value=chosen),
            gr.update(choices=choices(known), value=before),
            gr.update(choices=choices(known), value=newest),
        ]  # fmt: skip

    def opening(self, key: str, name: str) -> str:
        """Return how the .zip of a model is opened."""
        folder = next((made.folder for made, _ in self._trainings.models(key) if made.name == name), None)
        return html.hint(how_to_open(folder)) if folder else ""

    def awaited(self, corpus: str, key: str) -> Any:
        """Return the update of the place of the first answer: when it comes, or why this corpus has none."""
        if self._trainings.newest(key) is not None:
            return gr.skip()
        try:
            chosen = chosen_corpus(self._state, corpus, key)
            check_texts(chosen.label, chosen.texts, MIN_TEXTS, "an adaptation")
        except ValueError as error:
            return html.hint(str(error))
        return html.hint(PRESS)

    def beginning(self, option: str) -> Callable[..., list[Any]]:
        """Return the handler that begins an adaptation for a "purpose", or a training by a "method" as published."""

        def begin(
            corpus: str, key: str, start: str, name: str, value: str, minutes: float, models: list[str]
        ) -> list[Any]:
            values = {"name": name, "minutes": minutes, option: value}
            self._trainings.begin(key, requested(self._state, corpus, key, start, **values))
            return self.draw(key, None, models)

        begin.__name__ = "adapt" if option == "purpose" else "train"  # their names as functions of the page
        return begin

    def said(self, training: Training, points: pd.DataFrame, dial: float) -> tuple[str, Any]:
        """Return the updates of what a place of the dial gains, and of the button that takes it."""
        if points.empty:
            return "", gr.update(visible=False)
        takes = turned_at(training, points, dial) is not None
        return html.hint(adaptation.dial_sentence(points, dial)), gr.update(visible=takes)

    def turn(self, key: str, dial: float) -> tuple[Any, ...]:
        """Show the place of the dial that was tried and is the nearest to what is set."""
        training = self._trainings.newest(key)
        points, dial, spec = dial_of(training, dial) if training else (pd.DataFrame(), dial, None)
        if training is None or spec is None:
            return gr.skip(), gr.skip(), "", gr.update(visible=False)
        place = float(adaptation.at_dial(points, dial)["dial"])
        return place, gr.update(value=plot_value(spec)), *self.said(training, points, place)

    def take(self, key: str, dial: float, models: list[str]) -> list[Any]:
        """Make the model of a place of the dial."""
        training = self._trainings.newest(key)
        points = dial_of(training)[0] if training else pd.DataFrame()
        if training and len(points) and (made := turned_at(training, points, dial)):
            with one_line_errors():
                training.turn(made, float(adaptation.at_dial(points, dial)["dial"]))
        return self.draw(key, None, models)

    def stop(self, key: str, models: list[str]) -> list[Any]:
        """End the visitor's training with what it has."""
        self._trainings.stop(key)
        return self.draw(key, None, models)

    def go_on(self, key: str) -> Any:
        """Let the visitor's training continue after its first answer."""
        self._trainings.go_on(key)
        return gr.update(visible=False)

    def archive(self, key: str, name: str) -> str:
        """Return the .zip of a model."""
        with one_line_errors():
            return str(self._trainings.archive(key, name))

    def permitted(self) -> list[Any]:
        """Return the updates by the rules for the client: the refusal, the form, its minutes and its bounds."""
        rules = self._trainings.rules
        most = max(1, rules.minutes)
        return [
            gr.update(visible=not rules.allowed), gr.update(visible=rules.allowed),
            gr.update(maximum=most, value=min(30, most)), html.hint(rules.promise),
        ]  # fmt: skip


def your_model_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place; an opened page shows what its visitor may, has and trains. Returns its results."""
    visitors, owner, trainer = state.trainings.visitors, state.trainings.owner, Trainer(state)
    scale = adaptation.Adaptation.asks()["dial"]
    refusal = gr.HTML(
        html.hint(REFUSED if owner.allowed else UNOWNED), apply_default_css=False, visible=not visitors.allowed,
        elem_id="training-refused",
    )  # fmt: skip
    with gr.Column(visible=visitors.allowed, elem_id="own-training") as work:
        heading("A model to start from, and your corpus", more=ABOUT, words=("grouping", "finding"))
        with gr.Row(equal_height=True, elem_id="model-start"):
            offered = choices(state.admission.offered())
            start = gr.Dropdown(offered, value=BACKBONE, label="Start", allow_custom_value=True, min_width=200)
            name = gr.Textbox("", label="Name of the result", placeholder="my model", max_length=MAX_NAME)
            purpose = gr.Dropdown(adaptation.PURPOSES, value=BOTH, label="What for", min_width=160)
            minutes = gr.Slider(1, max(2, owner.minutes), min(30, owner.minutes), step=1, label="Minutes at most")
            begin = gr.Button("Adapt", variant="primary", scale=0, min_width=110, elem_classes="cse-submit")
            stop = gr.Button("Stop", scale=0, min_width=90, visible=False, elem_classes="cse-submit")
        reading = gr.HTML(reading_html(state, BACKBONE), apply_default_css=False, elem_id="start-reading")
        with gr.Accordion("Methods as published", open=False):
            gr.HTML(html.hint(PUBLISHED), apply_default_css=False)
            with gr.Row(equal_height=True):
                method = gr.Radio(choices(BUNDLED_NAMES), value=BUNDLED_NAMES[0], label="Method", scale=3)
                train = gr.Button("Train", scale=0, min_width=110, elem_classes="cse-submit")
        promise = gr.HTML(html.hint(visitors.promise), apply_default_css=False)
        heading("Is it better, and at what?", words=("dial",))
        with gr.Column(visible=False, elem_id="first-answer") as asking:
            asked = gr.HTML("", apply_default_css=False)
            with gr.Row():
                keep = gr.Button("Keep this answer", scale=0, min_width=220)
                go_on = gr.Button("Continue with training", variant="primary", scale=0, min_width=260)
        shown = result("training", html.hint(PRESS))
        dial = gr.Slider(
            scale.low, scale.high, 0, step=scale.step, label="Dial: finding ← → grouping", visible=False, elem_id="dial"
        )
        plot = gr.Plot(show_label=False, visible=False, elem_classes="cse-plot", elem_id="dial-plot")
        turned = gr.HTML("", apply_default_css=False, elem_id="dial-said")
        take = gr.Button("Take this place", scale=0, min_width=170, visible=False, elem_id="take-dial")
    with gr.Column(visible=False, elem_id="take-it") as taken:
        heading("Take it away")
        with gr.Row(equal_height=True):
            which = gr.Dropdown([], label="Model", min_width=200)
            fetch = gr.Button("Download (.zip)", scale=0, min_width=170, elem_classes="cse-submit")
        opens = gr.HTML("", apply_default_css=False, elem_id="opened-by")
        command = gr.HTML("", apply_default_css=False, elem_id="repeating")
    with gr.Accordion("Which one do you prefer? Twenty blind votes", open=False, elem_id="votes") as fold:
        votes = votes_part(state, top)
    fetched = gr.DownloadButton("Model", visible="hidden", elem_id="fetched-model")
    mark, timer = gr.State(()), gr.Timer(TICK, active=False)
    outputs = [
        shown, asking, asked, dial, plot, turned, take, taken, which, opens, command, timer, mark, stop, begin, train,
        top.models, votes.first, votes.second,
    ]  # fmt: skip
    fields = {FIELD: top.corpus, "The key": top.key, START: start, "The name": name}
    others = {"Minutes": minutes, "The models": top.models}
    choice = ((begin, "purpose", {"What for": purpose}), (train, "method", {"The method": method}))
    for button, option, field in choice:
        run = refusing(trainer.beginning(option), {**fields, **field, **others}, outputs, keep=True)
        button.click(*run, **LANE)
    for button in (stop, keep):
        button.click(trainer.stop, [top.key, top.models], outputs, **LANE)
    go_on.click(trainer.go_on, top.key, asking, **QUICK)
    for event in (timer.tick, top.corpus.change):  # a visitor may have removed the texts
        event(trainer.draw, [top.key, mark, top.models], outputs, **LANE)
    top.changed.change(trainer.awaited, [top.corpus, top.key], shown, **SILENT, **CHANGES)
    start.change(lambda name: reading_html(state, name), start, reading, **QUICK)
    turning = Run(trainer.turn, [top.key, dial], [dial, plot, turned, take])
    set_dial = gr.HTML("", html_template="", js_on_load="cse.live('#dial', trigger)", visible="hidden")
    set_dial.submit(*turning, trigger_mode="always_last", **QUICK)
    take.click(trainer.take, [top.key, dial, top.models], outputs, **LANE)
    plot.change(None, None, None, js=RESIZED, **HIDDEN)
    which.change(trainer.opening, [top.key, which], opens, **QUICK)
    fetch.click(trainer.archive, [top.key, which], fetched, **LANE).success(None, js=FETCH, **HIDDEN)
    known = top.opened.then(trainer.draw, [top.key, gr.State(()), top.models], outputs, **LANE)
    known.then(*votes.reopened, **QUICK)
    # Whoever has opened it meanwhile keeps it open.
    known.then(lambda key: gr.update(open=True) if state.ballots.get(key) else gr.skip(), top.key, fold, **QUICK)
    if visitors != owner:
        top.opened.then(trainer.permitted, None, [refusal, work, minutes, promise], **QUICK)
    judged: dict[str, Any] = {"first": votes.first, "second": votes.second, "corpus": top.corpus, "key": top.key}
    return [
        Shown(adaptation.Adaptation, {"dial": dial, "key": top.key}, Linked((), turning, ())),
        Shown(Judge, judged, votes.linked),
    ]
