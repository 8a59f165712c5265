"""Refused input: the reason stands under its field until that is edited, and what was shown before goes."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gradio as gr

from cse.app.drawing.components import script
from cse.app.forms.events import Run

NUMBERS = itertools.count(1)  # the same answer twice is two


def refusing(
    function: Callable[..., Any], inputs: Sequence[gr.components.Component], outputs: Sequence[gr.components.Component]
) -> Run:
    """A run of `function`, or of its generator, whose ValueErrors stand under the input they are about.

    The outputs are empty then. Which input it is, `field_of` says. It fills a hidden component more than `outputs`.
    """
    for field in inputs:
        field.elem_id = field.elem_id or f"field-{field._id}"  # the script finds it by this
    place = gr.HTML(
        {}, html_template="<div></div>", js_on_load=script("refusals"), visible="hidden", apply_default_css=False
    )

    def told(**refusal: str) -> dict[str, Any]:
        return {"fields": [field.elem_id for field in inputs], "number": next(NUMBERS), **refusal}

    def answered(results: Any) -> list[Any]:
        return [*([results] if len(outputs) == 1 else results), told()]

    def refused(error: ValueError) -> list[Any]:
        about = str(field_of(str(error), inputs).elem_id)
        return [*map(emptied, outputs), told(about=about, reason=str(error))]

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

    return Run(each if inspect.isgeneratorfunction(function) else call, inputs, [*outputs, place])


def field_of(message: str, inputs: Sequence[gr.components.Component]) -> gr.components.Component:
    """The input whose label a message begins with, after a "The"; otherwise the first text box, or the first input."""
    about = message.removeprefix("The ").casefold()
    named = [field for field in inputs if field.label and about.startswith(str(field.label).casefold())]
    return next(iter([*named, *(field for field in inputs if isinstance(field, gr.Textbox)), *inputs]))


def emptied(output: gr.components.Component) -> Any:
    """What an output shows while its input is refused: nothing; what is no HTML stays."""
    if not isinstance(output, gr.HTML):
        return gr.skip()
    return {} if isinstance(output.value, dict) else ""
