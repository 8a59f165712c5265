"""The page's address holds the tab and its inputs; it is written on use and restored on opening (static/page.js)."""

from __future__ import annotations

import functools
import html
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gradio as gr

from cse.app.events import HIDDEN, PRIVATE, SILENT, Run
from cse.app.html import NUMBERS
from cse.app.server.gradio_adapter import data_of

# Hidden and outside the tabs, whose content is not in the page until they are opened.
HOOK = """cse.fill = (stay = []) => trigger('submit', {stay});
window.addEventListener('popstate', () => trigger('select', {}));"""
Whole = Callable[[Mapping[str, str]], Mapping[str, str]]


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
    """What the address of every tab holds: components by their names, also written after the events `steps`."""

    fields: Mapping[str, gr.components.Component]
    steps: Sequence[Any] = ()


def link(
    opened: Any,
    tabs: gr.Tabs,
    linked: Mapping[str, tuple[gr.Tab, Sequence[Linked]]],
    shared: Shared,
    whole: Whole = dict,
) -> None:
    """Keep the address up to date, and fill and run the parts of the tab that it names.

    That happens after the event `opened`, on Back and Forward, and when a script asks for it (`cse.fill`), which names
    the fields that `stay` as they are: the address may lack what was just typed into them.
    `whole` adds what a short address stands for.
    """
    parts = [(name, content) for name, (_, contents) in linked.items() for content in contents]
    states = [(content, gr.State((0, {}))) for _, content in parts if content.names]
    for content, state in states:
        content_run = with_given(content.run.fn), [state, *content.run.inputs], list(content.run.outputs)
        state.change(*content_run, **content.lane)
    filled = [tabs, *shared.fields.values()]
    filled += [component for _, content in parts for component in content.named()]
    filled += [state for _, state in states]
    last: dict[str, Any] = {"trigger_mode": "always_last", **SILENT}
    hook = gr.HTML("", html_template="", js_on_load=HOOK, apply_default_css=False, visible="hidden")
    opened.then(None, js="() => cse.read()", **HIDDEN)
    hook.select(restorer(parts, shared.fields, back=True, whole=whole), None, filled, **last)
    fill = hook.submit(restorer(parts, shared.fields, whole=whole), None, filled, **last)
    fill.then(None, js="() => { window.cseOpened = true; }", **HIDDEN)
    for name, (tab, contents) in linked.items():
        write_on(tab, name, next(iter(linked)), contents, shared, fill)


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


def write_on(tab: gr.Tab, name: str, first: str, contents: Sequence[Linked], shared: Shared, filled: Any) -> None:
    """Write a tab's address when it is selected, on the triggers of its parts, and when a shared field is edited."""
    names = [*shared.fields, *(field for content in contents for field in content.names)]
    inputs = [*shared.fields.values(), *(component for content in contents for component in content.named())]

    def script(method: str, **moment: bool) -> dict[str, Any]:
        values = {"tab": name, "first": first, "names": names, "method": method, **moment}
        return {"js": f"(...values) => cse.write({json.dumps(values)}, values)", **HIDDEN}

    tab.select(None, inputs, None, **script("pushState", chosen=True))
    steps = [field.input for field in shared.fields.values()]  # type: ignore[attr-defined]
    steps += [trigger for content in contents for trigger in content.triggers]
    gr.on(steps, None, inputs, None, **script("pushState"))
    if quiet := [trigger for content in contents for trigger in content.quiet]:
        gr.on(quiet, None, inputs, None, **script("replaceState"))
    filled.then(None, inputs, None, **script("replaceState", filled=True))
    for event in shared.steps:
        event.success(None, inputs, None, **script("pushState"))


def restorer(
    parts: Sequence[tuple[str, Linked]],
    shared: Mapping[str, gr.components.Component],
    back: bool = False,
    whole: Whole = dict,
) -> Callable[..., list[Any]]:
    """Return a handler that reads tab, shared fields and inputs from the address, and a new state of each part to run.

    A state is a number and the values of the part's inputs by their places, without those that stay as they are.

    The `parts` are in the order of the page, each with the name of its tab. With `back`, inputs that the address lacks
    get their initial values, and all parts of the tab run. `whole` returns an address with what it stands for.
    """
    known = dict(parts)

    def restore(request: gr.Request, event: gr.EventData) -> list[Any]:
        address = whole(dict(request.query_params))
        stay = data_of(event).get("stay")
        named = {field: value for field, value in address.items() if not isinstance(stay, list) or field not in stay}
        tab = str(address.get("tab"))
        if back and tab not in known:
            tab = parts[0][0]
        chosen = restored(list(shared), list(shared.values()), named, back)
        filled = list(zip(shared.values(), chosen or (), strict=False))  # several parts may read a field
        updates, runs = list[Any](), list[Any]()
        for name, content in parts:
            asked = back or any(field in address for field in content.names)
            here = name == tab and asked and chosen is not None
            values = restored(content.names, content.named(), named, back) if here else None
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
        return [selected, *(chosen or [gr.skip()] * len(shared)), *updates, *runs]

    return restore


def restored(
    names: Sequence[str], components: Sequence[Any], address: Mapping[str, str], back: bool
) -> list[Any] | None:
    """Return the values of components in the address; without one they stay, with `back` they get their initial ones.

    Returns None, after a warning, if the address names a value that a dropdown lacks.
    """
    values = []
    for name, component in zip(names, components, strict=True):
        value = given(component, address[name]) if name in address else component.value if back else gr.skip()
        if isinstance(component, gr.Dropdown) and name in address and value != address[name]:
            what = html.escape(f"{address[name][:60]} as the {str(component.label).lower()}")
            gr.Warning(f"This address asks for {what}, which is not here.")
            return None
        values.append(value)
    return values


def given(component: Any, text: str) -> Any:
    """Parse a value of the address for a component; an invalid value leaves the component as it is."""
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
        known = {str(value): value for _, value in component.choices}
        named = text.split(",") if text else []
        return [known[each] for each in named] if known.keys() >= set(named) else gr.skip()
    return text
