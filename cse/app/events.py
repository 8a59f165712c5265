"""Events of the page: errors in one line or at their field, progress, queues by kind of work, and the page's address.

The address holds the tab and its inputs; it is written on use and restored on opening (static/page.js).
"""

from __future__ import annotations

import functools
import html
import inspect
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

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
# By default Gradio drops a press while the one before it is under way.
CHANGES: dict[str, Any] = {"concurrency_id": "changes", "concurrency_limit": 8, "trigger_mode": "always_last"}
LANES = {"encode": ENCODE, "maps": MAPS, "links": LINKS, "comparisons": COMPARISONS, "none": {}}  # of results
HIDDEN: dict[str, Any] = {"api_visibility": "private"}
PRIVATE: dict[str, Any] = {**HIDDEN, **ENCODE}
# Gradio's page tells each output that ever had a status of each new one: an event without progress names none.
SILENT: dict[str, Any] = {**HIDDEN, "show_progress": "hidden", "show_progress_on": []}
QUICK: dict[str, Any] = {**SILENT, "queue": False}  # without a model

# Hidden and outside the tabs, whose content is not in the page until they are opened.
HOOK = """let number = 0;
const ask = (more, filling) => {
  number += 1;
  Object.assign(cse, {wanted: '', filling, asked: {number, address: location.search, ...more}});
  trigger('submit', {});
};
cse.fill = (stay = [], filling = false) => ask({stay}, filling);
window.addEventListener('popstate', () => ask({back: true, ...cse.left()}, false));"""
ASKED = "() => [cse.asked]"  # read when it is sent: an event that waits is repeated with its first data
Whole = Callable[[Mapping[str, str]], Mapping[str, str]]


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


@dataclass
class Asked:
    """A request by its number: whether it overtook the one before it, and whether it is answered."""

    number: int
    overtook: bool
    answered: bool = False


class Newest:
    """The newest request of each visitor, so that older ones can stop. Gradio drops those of closed pages."""

    def __init__(self) -> None:
        self._newest: Recent[Asked] = Recent(Bounds(MAX_VISITORS))

    def ask(self, request: gr.Request | None) -> int:
        """Return the number of a visitor's new request, before it is queued; 0 outside of one."""
        if request is None:
            return 0
        number, visitor = next(NUMBERS), request.session_hash
        before = self._newest.get(visitor)
        self._newest.put(visitor, Asked(number, before is not None and not before.answered))
        return number

    def replaced(self, request: gr.Request | None, number: int) -> bool:
        """True if the visitor has a newer request than `number`; False if the visitor is no longer recorded."""
        newest = self._newest.get(request.session_hash) if request is not None else None
        return newest is not None and newest.number != number

    def overtook(self, request: gr.Request | None, number: int) -> bool:
        """Note that a request is answered; return True if it began while the one before it was not."""
        newest = self._newest.get(request.session_hash) if request is not None else None
        if newest is None or newest.number != number:
            return False
        newest.answered = True
        return newest.overtook


def refusing(
    function: Callable[..., Any],
    fields: Mapping[str, gr.components.Component],
    outputs: Sequence[gr.components.Component],
    *,
    keep: bool = False,
    overtaken: str = "",
) -> Run:
    """Return a run of `function`, or of its generator, whose ValueErrors are shown under the input they concern.

    `fields` are the inputs in order, each by the name that a FieldError gives it; any other error concerns the first
    text box, or else the first input. On an error the outputs are cleared, unless they are to `keep` what they show.
    The run has one output more than `outputs`, a hidden component. The errors of a field outside of its tab, like the
    corpus, are shown above the first HTML of the outputs, or else at the component. Of a visitor's requests, which run
    at once, only the newest is answered: the answer to an earlier one may come last. `overtaken`, with a new number,
    is what both then put into the last output, whose change has the answer checked: the newest may be of an older
    choice, or have read fields before they were filled.
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
        if replaced := newest.replaced(request, number):
            answers, said = [gr.skip()] * len(outputs), gr.skip()
        if overtaken and (replaced or newest.overtook(request, number)):
            answers[-1] = f"{overtaken} {next(NUMBERS)}"
        return [*answers, said]

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
    """Return the empty value of an HTML output, and a chart or fold that is hidden; other components keep theirs."""
    if isinstance(output, gr.Accordion):
        return gr.update(visible=False)
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


class Linked(NamedTuple):
    """The part of a tab that the address holds: the `names` of the first inputs of its `run`, written on `triggers`.

    `quiet` triggers replace the address without a history entry.
    """

    names: Sequence[str]
    run: Run
    triggers: Sequence[Any]
    lane: Mapping[str, Any] = PRIVATE
    quiet: Sequence[Any] = ()

    def named(self) -> list[gr.components.Component]:
        """Return the inputs that have a name."""
        return list(self.run.inputs[: len(self.names)])


class Shared(NamedTuple):
    """What the address of every tab holds: components by their names, also written after the events `steps`.

    `offered` returns the values that a group of checkboxes has besides those it was made with: a visitor's own models.
    """

    fields: Mapping[str, gr.components.Component]
    steps: Sequence[Any] = ()
    offered: Callable[[], Sequence[str]] = tuple


def link(
    opened: Any,
    tabs: gr.Tabs,
    linked: Mapping[str, tuple[gr.Tab, Sequence[Linked]]],
    shared: Shared,
    whole: Whole = dict,
    folds: Mapping[str, str] | None = None,
) -> None:
    """Keep the address up to date, and fill and run the parts of the tab that it names.

    That happens after the event `opened`, on Back and Forward, and when a script asks for it (`cse.fill`), which names
    the fields that `stay` as they are: the address may lack what was just typed into them.
    `whole` adds what a short address stands for. `folds` are the element ids of those that hold a field, by the name of
    its tab and its own.
    """
    parts = [(name, content) for name, (_, contents) in linked.items() for content in contents]
    states = [(content, gr.State((0, {}))) for _, content in parts if content.names]
    for content, state in states:
        content_run = with_given(content.run.fn), [state, *content.run.inputs], list(content.run.outputs)
        state.change(*content_run, **content.lane)
    asked = gr.JSON({}, visible=False)  # at last what the page shows the answer of
    filled = [asked, tabs, *shared.fields.values()]
    filled += [component for _, content in parts for component in content.named()]
    filled += [state for _, state in states]
    hook = gr.HTML("", html_template="", js_on_load=HOOK, apply_default_css=False, visible="hidden")
    opened.then(None, js="() => cse.read()", **HIDDEN)
    restore = restorer(parts, shared, whole)
    fill = hook.submit(restore, asked, filled, js=ASKED, trigger_mode="always_last", **SILENT)
    fill.then(None, js=f"() => cse.filled({json.dumps(folds or {})})", **HIDDEN)
    for name, (tab, contents) in linked.items():
        write_on(tab, name, next(iter(linked)), contents, shared, fill, asked)


def with_given(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with a restored state in front of its inputs, whose values take the place of some of them.

    A slow page runs a part before it shows the values that it was filled with.
    """

    def values(state: tuple[int, dict[int, Any]], shown: tuple[Any, ...]) -> list[Any]:
        return [state[1].get(place, value) for place, value in enumerate(shown)]

    def call(state: tuple[int, dict[int, Any]], *shown: Any) -> Any:
        return function(*values(state, shown))

    def steps(state: tuple[int, dict[int, Any]], *shown: Any) -> Any:
        yield from function(*values(state, shown))

    made: Any = functools.wraps(function)(steps if inspect.isgeneratorfunction(function) else call)
    signature = inspect.signature(function)
    state = inspect.Parameter("state", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    made.__signature__ = signature.replace(parameters=[state, *signature.parameters.values()])
    return made


def write_on(
    tab: gr.Tab, name: str, first: str, contents: Sequence[Linked], shared: Shared, filled: Any, asked: gr.JSON
) -> None:
    """Write a tab's address when it is selected, on the triggers of its parts, and when a shared field is edited.

    It is written after the event `filled`, too. The value of `asked` is the address that was read last.
    """
    names = [*shared.fields, *(field for content in contents for field in content.names)]
    fields = [*shared.fields.values(), *(component for content in contents for component in content.named())]
    inputs, initial = [asked, *fields], [component.value for component in fields]

    def script(method: str, **moment: bool) -> dict[str, Any]:
        values = {"tab": name, "first": first, "names": names, "initial": initial, "method": method, **moment}
        return {"js": f"(asked, ...values) => cse.write({json.dumps(values)}, asked, values)", **HIDDEN}

    tab.select(None, inputs, None, **script("pushState", chosen=True))
    steps = [field.input for field in shared.fields.values()]  # type: ignore[attr-defined]
    steps += [trigger for content in contents for trigger in content.triggers]
    gr.on(steps, None, inputs, None, **script("pushState"))
    if quiet := [trigger for content in contents for trigger in content.quiet]:
        gr.on(quiet, None, inputs, None, **script("replaceState"))
    filled.then(None, inputs, None, **script("replaceState", filled=True))
    for event in shared.steps:
        event.success(None, inputs, None, **script("pushState"))


def restorer(parts: Sequence[tuple[str, Linked]], shared: Shared, whole: Whole = dict) -> Callable[[Any], list[Any]]:
    """Return a handler that gives tab, shared fields and inputs of an address, and a new state of each part to run.

    Before them it returns what was `asked`: the address, its number, and the fields that stay as they are.

    A state is a number and the values of the part's inputs by their places, without those that stay as they are.

    The `parts` are in the order of the page, each with the name of its tab. `whole` returns an address with what it
    stands for. What is asked may say that it is `back`: inputs that the address lacks get their initial values, and all
    parts of the tab run. It may have other `places`, those of a lesson that was left, with their addresses before it:
    their parts run of which the lesson has `filled` a field.
    """
    known, fields, names = dict(parts), shared.fields, {field for _, content in parts for field in content.names}

    def values_of(query: Any) -> dict[str, str]:
        return dict(parse_qsl(str(query)[1:], True))

    def restore(asked: Any) -> list[Any]:
        sent = asked if isinstance(asked, dict) else {}
        address, back = whole(values_of(sent.get("address", ""))), bool(sent.get("back"))
        stay, places, edited = (sent.get(name) for name in ("stay", "places", "filled"))
        before = places if back and isinstance(places, dict) and isinstance(edited, list) else {}
        again: dict[str, tuple[Mapping[str, str], Any]] = {
            place: (values_of(query), edited) for place, query in before.items()
        }
        named = {field: value for field, value in address.items() if not isinstance(stay, list) or field not in stay}
        tab = str(address.get("tab"))
        if "tab" in address and tab not in known:
            gr.Warning(f"This address asks for {html.escape(tab[:60])}, which is no place of this page.")
        if back and tab not in known:
            tab = parts[0][0]
        again[tab] = named, names if back else address
        chosen = restored(list(fields), list(fields.values()), named, back, shared.offered())
        filled = list(zip(fields.values(), chosen, strict=True))  # several parts may read a field
        updates, runs = list[Any](), list[Any]()
        for name, content in parts:
            texts, edited = again.get(name, ({}, ()))
            runs_again = any(field in edited for field in content.names)
            values = restored(content.names, content.named(), texts, back) if runs_again else None
            updates += [gr.skip()] * len(content.names) if values is None else values
            filled += zip(content.named(), values or (), strict=False)
            if content.names:
                kept = {
                    place: value
                    for place, component in enumerate(content.run.inputs)
                    for field, value in filled
                    if field is component and value != gr.skip()
                }
                runs.append(gr.skip() if values is None else (next(NUMBERS), kept))
        selected = gr.Tabs(selected=tab) if tab in known else gr.skip()
        return [sent, selected, *chosen, *updates, *runs]

    return restore


def restored(
    names: Sequence[str], components: Sequence[Any], address: Mapping[str, str], back: bool, offered: Sequence[str] = ()
) -> list[Any]:
    """Return the values of components in the address; without one they stay, with `back` they get their initial ones.

    Warns of what the address names and the components do not take.
    """
    values = []
    for name, component in zip(names, components, strict=True):
        value = given(component, address[name], offered) if name in address else component.value if back else gr.skip()
        if name in address and (missing := refused(component, address[name], value)):
            gr.Warning(f"This address asks for {html.escape(missing)}.")
        values.append(value)
    return values


def refused(component: Any, text: str, value: Any) -> str:
    """Return what a component does not take of a value of the address, whose parsed `value` it gets; "" for nothing."""
    what = text if value == gr.skip() else ""
    if isinstance(component, gr.CheckboxGroup) and value != gr.skip():
        what = ", ".join(name for name in text.split(",") if name and name not in map(str, value))
        return what and f"{what[:60]}, which is no model here"
    why = "which is not here"
    if isinstance(component, (gr.Slider, gr.Number)):
        why = (
            f"which goes from {component.minimum or 0:g} to {component.maximum:g}" if component.maximum else "no number"
        )
    return what and f"{what[:60]} as the {str(component.label).lower()}, {why}"


def given(component: Any, text: str, offered: Sequence[str] = ()) -> Any:
    """Parse a value of the address for a component; an invalid value leaves the component as it is.

    Checkboxes get those of the values that they have, or that are `offered` besides those they were made with.
    """
    if isinstance(component, (gr.Slider, gr.Number)):
        try:
            number = float(text)
        except ValueError:
            return gr.skip()
        within = (component.minimum or 0) <= number <= (component.maximum or number)
        return (int(number) if number.is_integer() else number) if within else gr.skip()
    if isinstance(component, (gr.Dropdown, gr.Radio)):
        return text if text in [value for _, value in component.choices] else gr.skip()
    if isinstance(component, gr.CheckboxGroup):
        known = {str(value): value for _, value in component.choices} | {name: name for name in offered}
        named = [known[name] for name in text.split(",") if name in known]
        return named if named or not text else gr.skip()
    return text
