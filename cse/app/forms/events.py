"""Event handlers for Gradio: one-line errors, progress, and queues (`concurrency_id`) by kind of work."""

from __future__ import annotations

import functools
import html
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import gradio as gr

from cse.app.drawing.components import NUMBERS
from cse.app.models.recent import MAX_VISITORS, Bounds, Recent
from cse.app.server.gradio_adapter import current_request
from cse.training.records import Report

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

PROGRESS = gr.Progress()
ENCODE: dict[str, Any] = {"concurrency_id": "encode", "concurrency_limit": 8}  # each model has a lock
MAPS: dict[str, Any] = {"concurrency_id": "maps", "concurrency_limit": 1}
LINKS: dict[str, Any] = {"concurrency_id": "links", "concurrency_limit": 1}
COMPARISONS: dict[str, Any] = {"concurrency_id": "comparisons", "concurrency_limit": 1}
HIDDEN: dict[str, Any] = {"api_visibility": "private"}
PRIVATE: dict[str, Any] = {**HIDDEN, **ENCODE}
QUICK: dict[str, Any] = {**HIDDEN, "queue": False, "show_progress": "hidden"}  # without a model


class Run(NamedTuple):
    """A handler with its inputs and outputs."""

    fn: Callable[..., Any]
    inputs: Sequence[gr.components.Component]
    outputs: Sequence[gr.components.Component]


def guarded(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function or generator so that its ValueErrors reach the client as one line, without a traceback."""

    @functools.wraps(function)
    def each(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        with one_line_errors():
            yield from cast(Iterator[Any], function(*args, **kwargs))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_line_errors():
            return function(*args, **kwargs)

    return cast(Callable[P, R], each) if inspect.isgeneratorfunction(function) else call


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a ValueError into a message to the visitor."""
    try:
        yield
    except ValueError as error:  # the toast renders HTML, and a message may quote what a client sent
        raise gr.Error(html.escape(str(error), quote=False), print_exception=False) from error


class Newest:
    """The newest request of each visitor, so that older ones can stop. Gradio drops those of closed pages."""

    def __init__(self) -> None:
        self._newest: Recent[int] = Recent(Bounds(MAX_VISITORS))

    def ask(self, request: gr.Request) -> int:
        """Return the number of a visitor's new request, before it is queued."""
        number = next(NUMBERS)
        self._newest.put(request.session_hash, number)
        return number

    def replaced(self, request: gr.Request, number: int) -> bool:
        """True if the visitor has a newer request than `number`; False if the visitor is no longer recorded."""
        return self._newest.get(request.session_hash) not in (None, number)


def newest_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, or its generator, whose list of outputs changes nothing once the visitor has asked again.

    Requests run at once, so the answer to an earlier one may come last.
    """
    newest = Newest()

    def kept(outputs: list[Any], request: Any, number: int) -> list[Any]:
        replaced = request is not None and newest.replaced(request, number)
        return [gr.skip()] * len(outputs) if replaced else outputs

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> list[Any]:
        request = current_request()
        number = 0 if request is None else newest.ask(request)
        return kept(function(*args, **kwargs), request, number)

    @functools.wraps(function)
    def each(*args: Any, **kwargs: Any) -> Iterator[list[Any]]:
        request = current_request()
        number = 0 if request is None else newest.ask(request)
        for outputs in function(*args, **kwargs):
            yield kept(outputs, request, number)

    return each if inspect.isgeneratorfunction(function) else call


def hide() -> Any:
    """Return the update that hides a form."""
    return gr.update(visible=False)


def reporter(progress: gr.Progress) -> Report:
    """Return a function that shows progress on the page."""
    return lambda done, total, name: progress((done, total), desc=name, unit="steps")
