"""Events of the page: errors in one line or at their field, progress, and queues (`concurrency_id`) by kind of work."""

from __future__ import annotations

import functools
import html
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import gradio as gr

from cse.app.html import NUMBERS
from cse.app.models.recent import MAX_VISITORS, Bounds, Recent
from cse.app.server.gradio_adapter import current_request
from cse.app.validation import FieldError
from cse.training.records import Report

PROGRESS = gr.Progress()
ENCODE: dict[str, Any] = {"concurrency_id": "encode", "concurrency_limit": 8}  # each model has a lock
MAPS: dict[str, Any] = {"concurrency_id": "maps", "concurrency_limit": 1}
LINKS: dict[str, Any] = {"concurrency_id": "links", "concurrency_limit": 1}
COMPARISONS: dict[str, Any] = {"concurrency_id": "comparisons", "concurrency_limit": 1}
CHANGES: dict[str, Any] = {"concurrency_id": "changes", "concurrency_limit": 8}
LANES = {"encode": ENCODE, "maps": MAPS, "links": LINKS, "comparisons": COMPARISONS, "none": {}}  # of results
HIDDEN: dict[str, Any] = {"api_visibility": "private"}
PRIVATE: dict[str, Any] = {**HIDDEN, **ENCODE}
# Gradio's page tells each output that ever had a status of each new one: an event without progress names none.
SILENT: dict[str, Any] = {**HIDDEN, "show_progress": "hidden", "show_progress_on": []}
QUICK: dict[str, Any] = {**SILENT, "queue": False}  # without a model


class Run(NamedTuple):
    """A handler with its inputs and outputs."""

    fn: Callable[..., Any]
    inputs: list[Any]
    outputs: list[Any]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a ValueError into a message to the visitor, without a traceback."""
    try:
        yield
    except ValueError as error:  # the toast renders HTML, and a message may quote what a client sent
        raise gr.Error(html.escape(str(error), quote=False), print_exception=False) from error


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function or generator so that its ValueErrors reach the client as one line."""
    if not inspect.isgeneratorfunction(function):
        return one_line_errors()(function)

    @functools.wraps(function)
    def steps(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with one_line_errors():
            yield from function(*args, **kwargs)

    return steps


class Newest:
    """The newest request of each visitor, so that older ones can stop. Gradio drops those of closed pages."""

    def __init__(self) -> None:
        self._newest: Recent[int] = Recent(Bounds(MAX_VISITORS))

    def ask(self, request: gr.Request | None) -> int:
        """Return the number of a visitor's new request, before it is queued; 0 outside of one."""
        if request is None:
            return 0
        number = next(NUMBERS)
        self._newest.put(request.session_hash, number)
        return number

    def replaced(self, request: gr.Request | None, number: int) -> bool:
        """True if the visitor has a newer request than `number`; False if the visitor is no longer recorded."""
        return request is not None and self._newest.get(request.session_hash) not in (None, number)


def refusing(
    function: Callable[..., Any],
    fields: Mapping[str, gr.components.Component],
    outputs: Sequence[gr.components.Component],
    *,
    keep: bool = False,
) -> Run:
    """Return a run of `function`, or of its generator, whose ValueErrors are shown under the input they concern.

    `fields` are the inputs in order, each by the name that a FieldError gives it; any other error concerns the first
    text box, or else the first input. On an error the outputs are cleared, unless they are to `keep` what they show.
    The run has one output more than `outputs`, a hidden component. The errors of a field outside of its tab, like the
    corpus, are shown above the first HTML of the outputs, or else at the component. Of a visitor's requests, which run
    at once, only the newest is answered: the answer to an earlier one may come last.
    """
    inputs = list(fields.values())
    for component in inputs:
        component.elem_id = component.elem_id or f"field-{next(NUMBERS)}"  # the script finds it by this
    usual = next((component for component in inputs if isinstance(component, gr.Textbox)), inputs[0])
    above = next((output.elem_id for output in outputs if isinstance(output, gr.HTML)), None)
    notice = gr.HTML(
        {}, html_template="<div></div>", js_on_load="cse.refusals(element, props, watch)", visible="hidden",
        apply_default_css=False,
    )  # fmt: skip
    newest = Newest()

    def answer(request: gr.Request | None, number: int, compute: Callable[[], Any]) -> list[Any]:
        said: dict[str, Any] = {"fields": [component.elem_id for component in inputs], "number": next(NUMBERS)}
        try:
            results = compute()
            answers = [results] if len(outputs) == 1 else list(results)
        except ValueError as error:
            about = fields.get(error.field, usual) if isinstance(error, FieldError) else usual
            answers = [gr.skip() if keep else emptied(output) for output in outputs]
            said |= {"about": about.elem_id, "reason": str(error), "output": above}
        return [gr.skip()] * (len(outputs) + 1) if newest.replaced(request, number) else [*answers, said]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> list[Any]:
        request = current_request()
        return answer(request, newest.ask(request), functools.partial(function, *args, **kwargs))

    @functools.wraps(function)
    def steps(*args: Any, **kwargs: Any) -> Iterator[list[Any]]:
        request, step = current_request(), functools.partial(next, function(*args, **kwargs))
        number = newest.ask(request)
        while True:
            try:
                yield answer(request, number, step)
            except StopIteration:
                return

    return Run(steps if inspect.isgeneratorfunction(function) else call, inputs, [*outputs, notice])


def emptied(output: gr.components.Component) -> Any:
    """Return the empty value of an HTML output, and a chart that is hidden; other components keep theirs."""
    if isinstance(output, gr.Plot):
        return gr.update(value=None, visible=False)
    if not isinstance(output, gr.HTML):
        return gr.skip()
    return {} if isinstance(output.value, dict) else ""


def reporter(progress: gr.Progress) -> Report:
    """Return a function that shows progress on the page, after the first of `total` steps with the time to go."""
    begun = time.monotonic()

    def report(done: int, total: int, name: str) -> None:
        left = (time.monotonic() - begun) / done * (total - done) if done else 0.0
        progress((done, total), desc=f"{name}, about {max(1, round(left))} s to go" if done else name)

    return report
