"""How handlers meet Gradio: errors as one line, progress, one queue for everything that runs a model."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import gradio as gr

from cse.progress import Report

P = ParamSpec("P")
R = TypeVar("R")

PROGRESS = gr.Progress()
ENCODE: dict[str, Any] = {"concurrency_id": "encode", "concurrency_limit": 1}
PRIVATE: dict[str, Any] = {"api_visibility": "private", **ENCODE}


class Run(NamedTuple):
    """A handler with what it reads and fills."""

    fn: Callable[..., Any]
    inputs: Sequence[gr.components.Component]
    outputs: Sequence[gr.components.Component]


def guarded(function: Callable[P, R]) -> Callable[P, R]:
    """`function` whose ValueErrors reach the page or the client as one line, without a traceback."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ValueError as error:  # the toast renders HTML, and a message may quote what a client sent
            raise gr.Error(html.escape(str(error), quote=False), print_exception=False) from error

    return call


def private(triggers: Sequence[Any], run: Run, examples: Any = None) -> None:
    """`run` on any of the triggers and once an example is filled in, hidden from the API."""
    gr.on(list(triggers), run.fn, list(run.inputs), list(run.outputs), **PRIVATE)
    if examples is not None:
        examples.load_input_event.success(run.fn, list(run.inputs), list(run.outputs), **PRIVATE)


def reporter(progress: gr.Progress) -> Report:
    """Reports a step of several on the page."""
    return lambda done, total, name: progress((done, total), desc=name, unit="steps")
