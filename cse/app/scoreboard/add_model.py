"""`+ untrained` and `+ model`: add columns to one visitor's page while the app runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from cse.app.corpus.bar import CorpusBar
from cse.app.drawing import html
from cse.app.drawing.components import submit
from cse.app.forms.events import PRIVATE, QUICK, Run, guarded, hide
from cse.app.models.columns import MOST_COLUMNS, Column, free_name, opened_by
from cse.app.models.models import Failure
from cse.app.models.naming import POOLED, choices, title
from cse.app.scoreboard.model_strip import Description, description
from cse.app.scoreboard.speed import speeds
from cse.models.names import BACKBONE

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState

NOTE = (
    f"Up to {MOST_COLUMNS} models, on your page alone and until you leave it. Press a tab's button again to see them "
    "there."
)


def add_column(state: AppState, name: Any) -> tuple[Column, Description]:
    """Open a model and add it to the current visitor's columns.

    Raises ValueError, in one line without a path, if the model is not admitted, is there already, or fails.
    """
    model, requested = state.admission.model(name), str(name).strip()
    pooling = POOLED.get(requested.lower())
    called = requested.lower() if pooling else Path(model).name
    added = put_column(state, model, requested, (called, requested, f"{requested} again"), pooling)
    if added is None:
        raise ValueError(f"{title(called)} is on your page already.")
    return added


def put_column(
    state: AppState, model: str, requested: str, names: Iterable[str], pooling: str | None = None
) -> tuple[Column, Description] | None:
    """Add a model to the current visitor's columns under the first of the `names` that is free; None if it is one.

    `pooling` is that of a plain backbone. Raises ValueError, and adds nothing, if the model does not open, and as
    `Added.add` does.
    """
    models = state.models
    with models.admitting():
        reading = opened_by(model, pooling=pooling)
    if any(column.opened_by == reading for column in models.columns):
        return None
    column = Column(free_name(names, [column.name for column in models.columns]), *reading, added=requested)
    models.added.add(column)
    answer = models.apply(description, [column])[column.name]
    if isinstance(answer, Failure):
        models.added.remove(column)
        raise ValueError(f"{column.name} was not added: {answer.reason}")
    return column, answer


def add_model_buttons(state: AppState, strip: Run, bar: CorpusBar) -> Any:
    """Add two buttons to the bar: one adds the untrained backbone, one opens a form for any model.

    Returns the events after which the visitor's columns have changed.
    """
    with bar.row:
        untrained = gr.Button(f"+ {title(BACKBONE).lower()}", size="sm", scale=0, min_width=76)
        opener = gr.Button("+ model", size="sm", scale=0, min_width=76)
    with gr.Column(visible=False, elem_classes="cse-sheet", elem_id="add-model") as form:
        with gr.Row(equal_height=True):
            name = gr.Dropdown(
                choices(state.admission.offered()), value=None, label=f"A model: {state.admission.choices()}",
                allow_custom_value=True, scale=4, min_width=240,
            )  # fmt: skip
            add = submit("Add it")
            remove, close = (
                gr.Button(label, scale=0, min_width=100, elem_classes="cse-submit")
                for label in ("Remove mine", "Close")
            )
        status = gr.HTML(html.hint(NOTE), apply_default_css=False, elem_id="added")

    def put(name: Any) -> tuple[Any, str, Any]:
        try:
            column, _ = add_column(state, name)
        except ValueError as error:
            return gr.skip(), html.alert(str(error)), gr.update(visible=True)
        speeds(state)
        return strip.fn(), html.hint(f"{title(column.name)} is on your page. {NOTE}"), gr.skip()

    def take() -> tuple[Any, str]:
        state.models.added.clear()
        return strip.fn(), html.hint(NOTE)

    opener.click(lambda: gr.update(visible=True), None, form, **QUICK)
    close.click(hide, None, form, **QUICK)
    for other in bar.forms:
        opener.click(hide, None, other, **QUICK)
    for button in bar.row.children:
        if isinstance(button, gr.Button) and button not in (opener, untrained):
            button.click(hide, None, form, **QUICK)
    outputs = [*strip.outputs, status]
    added = add.click(guarded(put), [name], [*outputs, form], **PRIVATE)
    compared = untrained.click(guarded(lambda: put(BACKBONE)), None, [*outputs, form], **PRIVATE)
    removed = remove.click(guarded(take), None, outputs, **PRIVATE)
    return added, compared, removed


def rerun(changed: Any, run: Run) -> None:
    """Call `run` again when the columns have changed."""
    for event in changed:
        event.success(run.fn, list(run.inputs), list(run.outputs), **PRIVATE)
