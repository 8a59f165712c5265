"""The newest training of a visitor on the page: drawn again while it runs, and what it made to take away."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import gradio as gr

from cse.app.drawing import html
from cse.app.drawing.components import NUMBERS, result
from cse.app.forms.events import HIDDEN, one_line_errors
from cse.app.models.columns import Column
from cse.app.scoreboard.add_model import put_column
from cse.app.train_tab.view import EMPTY, changes_html, training_html
from cse.app.training.training import Training

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.app.train_tab.form import TrainForm
    from cse.app.training.outcome import Made
    from cse.app.training.trainings import Trainings

TICK = 1.5  # seconds between two looks at a training
OFTEN = 10  # seconds after which the time that is left is shown anew
LANE: dict[str, Any] = {**HIDDEN, "concurrency_id": "training", "concurrency_limit": 8, "show_progress": "hidden"}
FETCH = "() => setTimeout(() => document.querySelector('#fetched-model')?.click(), 200)"


def mark_of(training: Training) -> tuple[Any, ...]:
    """Return a value that differs where the page has to be drawn again."""
    seconds = int(training.seconds // OFTEN) if training.running else 0
    return id(training), training.state, training.progress.step, len(training.lines), seconds, id(training.changes)


class Results:
    """The components that show a visitor's newest training; `attached` changes when a model became a column."""

    def __init__(self, state: AppState, trainings: Trainings, key: gr.Textbox) -> None:
        """Add the components."""
        self._state, self._trainings, self._key = state, trainings, key
        shown = result("training", html.hint(EMPTY))
        with gr.Row(visible=False, equal_height=True) as taken:
            which = gr.Dropdown([], label="Model", visible=False, scale=1, min_width=150)
            fetch = gr.Button("Download (.zip)", size="sm", scale=0, min_width=170)
        fetched = gr.DownloadButton("Model", visible="hidden", elem_id="fetched-model")
        command = gr.Textbox(
            "", label="The command that repeats this", visible=False, buttons=["copy"], lines=2, interactive=False
        )
        self._mark, self.attached, self._timer = gr.State(()), gr.State(0), gr.Timer(TICK, active=False)
        self.changes = result("changes", "")
        self.changes.unrender()  # beneath both columns of the tab
        self.outputs: list[Any] = [shown, self.changes, self._timer, self._mark, self.attached, taken, which, command]
        fetch.click(self._archive, [key, which], fetched, **LANE).success(None, js=FETCH, **HIDDEN)

    def buttons(self, form: TrainForm) -> None:
        """Draw the results while a training runs, with the buttons that can be pressed then."""
        self.outputs += [form.start, form.stop, form.resume]
        self._timer.tick(self.drawn, [self._key, self._mark], self.outputs, **LANE)

    def resume(self, after: Any) -> None:
        """Show an opened page the visitor's training, and make columns of the visitor's models."""
        after(self.drawn, self._key, self.outputs, **LANE)

    def unchanged(self) -> list[Any]:
        """Return updates that change nothing."""
        return [gr.skip()] * len(self.outputs)

    def drawn(self, key: str, mark: Any = None) -> list[Any]:
        """Return the updates of the outputs by the visitor's newest training; none where `mark` is that already."""
        training = self._trainings.newest(key)
        attached = next(NUMBERS) if mark is None and self._attach(key) else gr.skip()
        if training is None:
            return [attached if output is self.attached else gr.skip() for output in self.outputs]
        found = mark_of(training)
        if mark == found:
            return self.unchanged()
        made = training.outcome.models if training.outcome else ()
        names = [each.name for each in made]
        if made and self._attach(key):
            attached = next(NUMBERS)
        return [
            training_html(training), changes_html(training), gr.Timer(active=training.running), found, attached,
            gr.update(visible=bool(made)),
            gr.update(choices=names, value=names[0] if names else None, visible=len(names) > 1),
            gr.update(value=training.request.command, visible=True),
            gr.update(interactive=not training.running), gr.update(interactive=training.running),
            gr.update(interactive=training.resumable),
        ]  # fmt: skip

    def _attach(self, key: str) -> bool:
        try:
            return any([attach(self._state, made) for made in made_by(self._trainings, key)])
        except ValueError as error:
            gr.Warning(html.escape(str(error)))
            return False

    def _archive(self, key: str, name: str) -> str:
        with one_line_errors():
            return str(self._trainings.archive(key, name))


def made_by(trainings: Trainings, key: str) -> list[Made]:
    """Return the models of a key: those of finished trainings, the newest first, and those of own files."""
    trained = [made for training in trainings.of(key) if training.outcome for made in training.outcome.models]
    return [*trained, *trainings.opened.of(key)]


def attach(state: AppState, made: Made, name: str = "") -> Column | None:
    """Add a model to the columns of the current visitor's page under a name, its own by default.

    A taken name gets a number. Returns None if the model is a column already. Raises ValueError as `put_column`.
    """
    name = name or made.name
    numbered = (f"{name} {number}" for number in itertools.count(2))
    added = put_column(state, str(made.folder), name, itertools.chain([name], numbered))
    return added and added[0]
