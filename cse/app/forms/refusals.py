"""Errors of input: the reason is shown until its field is edited, and earlier results are cleared.

It stands under the field, or above the run's output if the field is outside of the tab.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import gradio as gr

from cse.app.drawing.components import NUMBERS, script
from cse.app.forms.events import Run, newest_only
from cse.app.validation import FieldError


def refusing(
    function: Callable[..., Any],
    fields: Mapping[str, gr.components.Component],
    outputs: Sequence[gr.components.Component],
    *,
    keep: bool = False,
) -> Run:
    """Return a run of `function`, or of its generator, whose ValueErrors are shown under the input they concern.

    `fields` are the inputs in order, each by the name that a FieldError gives it (`field_of`). On an error the outputs
    are cleared, unless they are to `keep` what they show. The run has one output more than `outputs`, a hidden
    component. The errors of a field outside of its tab, like the corpus, are shown above the first HTML of the outputs,
    or else at the component. Of a visitor's requests only the newest is answered.
    """
    inputs = list(fields.values())
    for field in inputs:
        field.elem_id = field.elem_id or f"field-{next(NUMBERS)}"  # the script finds it by this
    place = gr.HTML(
        {}, html_template="<div></div>", js_on_load=script("refusals"), visible="hidden", apply_default_css=False
    )

    output = next((each.elem_id for each in outputs if isinstance(each, gr.HTML)), None)

    def notice(**refusal: str | None) -> dict[str, Any]:
        return {"fields": [field.elem_id for field in inputs], "number": next(NUMBERS), **refusal}

    def answered(results: Any) -> list[Any]:
        return [*([results] if len(outputs) == 1 else results), notice()]

    def refused(error: ValueError) -> list[Any]:
        about = str(field_of(error, fields).elem_id)
        shown = [gr.skip()] * len(outputs) if keep else list(map(emptied, outputs))
        return [*shown, notice(about=about, reason=str(error), output=output)]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> list[Any]:
        try:
            return answered(function(*args, **kwargs))
        except ValueError as error:
            return refused(error)

    @functools.wraps(function)
    def each(*args: Any, **kwargs: Any) -> Iterator[list[Any]]:
        try:
            yield from map(answered, function(*args, **kwargs))
        except ValueError as error:
            yield refused(error)

    return Run(newest_only(each if inspect.isgeneratorfunction(function) else call), inputs, [*outputs, place])


def field_of(error: ValueError, fields: Mapping[str, gr.components.Component]) -> gr.components.Component:
    """Return the input of a FieldError; for any other error the first text box, or else the first input."""
    if isinstance(error, FieldError) and error.field in fields:
        return fields[error.field]
    return next(iter([*(field for field in fields.values() if isinstance(field, gr.Textbox)), *fields.values()]))


def emptied(output: gr.components.Component) -> Any:
    """Return the empty value of an HTML output, and a chart that is hidden; other components keep theirs."""
    if isinstance(output, gr.Plot):
        return gr.update(value=None, visible=False)
    if not isinstance(output, gr.HTML):
        return gr.skip()
    return {} if isinstance(output.value, dict) else ""
