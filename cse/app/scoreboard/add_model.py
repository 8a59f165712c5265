"""`+ model`: add columns to one visitor's page while the app runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from cse.app.drawing import html
from cse.app.drawing.components import submit
from cse.app.forms.events import PRIVATE, Run, guarded
from cse.app.models.models import Column, Failure, free_name, opened_by
from cse.app.models.visitors import MOST_COLUMNS
from cse.app.scoreboard.model_strip import Description, description
from cse.app.scoreboard.speed import speeds

if TYPE_CHECKING:
    from cse.app.models.state import AppState

NOTE = f"Up to {MOST_COLUMNS} models, on your page alone and until you leave it. Ask again in a tab to see them there."


def add_column(state: AppState, name: Any) -> tuple[Column, Description]:
    """Open a model and add it to the current visitor's columns.

    Raises ValueError, in one line without a path, if the model is not admitted, is there already, or fails.
    """
    model, requested, models = state.admission.model(name), str(name).strip(), state.models
    with models.admitting():
        reading = opened_by(model)
    if any(column.opened_by == reading for column in models.columns):
        raise ValueError(f"{Path(model).name} is on your page already.")
    taken = [column.name for column in models.columns]
    column = Column(free_name((Path(model).name, requested, f"{requested} again"), taken), *reading, added=requested)
    return column, described(state, column)


def described(state: AppState, column: Column) -> Description:
    """Add a column to the current visitor's page and describe it. Raises ValueError, and adds nothing, if it fails."""
    state.models.added.add(column)
    answer = state.models.apply(description, [column])[column.name]
    if isinstance(answer, Failure):
        state.models.added.remove(column)
        raise ValueError(f"{column.name} was not added: {answer.reason}")
    return answer


def add_model_row(state: AppState, strip: Run) -> Any:
    """Add the form beneath the strip. Returns the events after which the visitor's columns have changed."""
    with gr.Accordion("+ model", open=False, elem_id="add-model"):
        with gr.Row(equal_height=True):
            name = gr.Dropdown(
                state.admission.offered(), value=None, label=f"A model: {state.admission.choices()}",
                allow_custom_value=True, scale=4, min_width=240,
            )  # fmt: skip
            add, remove = submit("Add it"), gr.Button("Remove mine", scale=0, min_width=130, elem_classes="cse-submit")
        said = gr.HTML(html.hint(NOTE), apply_default_css=False, elem_id="added")

    def put(name: Any) -> tuple[Any, str]:
        try:
            column, _ = add_column(state, name)
        except ValueError as error:
            return gr.skip(), html.failure(Failure(str(error)))
        speeds(state)
        return strip.fn(), html.hint(f"{column.name} is on your page. {NOTE}")

    def take() -> tuple[Any, str]:
        state.models.added.clear()
        return strip.fn(), html.hint(NOTE)

    outputs = [*strip.outputs, said]
    added = add.click(guarded(put), [name], outputs, **PRIVATE)
    removed = remove.click(guarded(take), None, outputs, **PRIVATE)
    return added, removed


def rerun(changed: Any, run: Run) -> None:
    """Call `run` again when the columns have changed."""
    for event in changed:
        event.success(run.fn, list(run.inputs), list(run.outputs), **PRIVATE)
