"""The page's address holds the tab and its inputs; it is written on use and restored on opening."""

from __future__ import annotations

import functools
import html
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gradio as gr

from cse.app.drawing.components import NUMBERS
from cse.app.forms.events import HIDDEN, PRIVATE, Run

KEPT = ("lesson", "step", "present", "__theme")  # names that stay in the address whatever the visitor does
LONGEST = 2000  # characters of a value in the address
# Selecting a tab adds no history entry if the address names it already, as after opening or Back. A tab that is not
# shown writes no address.
WRITE = """(...values) => {
  const tab = %(tab)s, address = new URL(location.href);
  if (%(chosen)s) window.cseTab = tab;
  if (!window.cseOpened || window.cseTab !== tab) return;
  if (%(chosen)s && (address.searchParams.get('tab') || %(first)s) === tab) return;
  const query = new URLSearchParams({tab});
  let cut = false;
  %(names)s.forEach((name, place) => {
    const text = String(values[place] ?? '');
    if (text.length <= %(longest)d) query.set(name, text);
    else cut = true;
  });
  window.cseCut = cut;
  %(kept)s.filter(name => address.searchParams.has(name))
    .forEach(name => query.set(name, address.searchParams.get(name)));
  if (query.toString() !== address.searchParams.toString()) history[%(method)s](null, '', `?${query}`);
}"""
# Gradio reports the first tab as selected while it draws the page, before the address is read. An address that names
# nothing is not read: whatever happens later, Gradio goes through all outputs of the events that a page had.
OPENED = "() => { window.cseOpened = true; }"
READ = "() => { if (location.search) dispatchEvent(new Event('cse-filled')); else window.cseOpened = true; }"
# A plain click on a link to a place of this page, such as from a text to its point on the map, stays on the page.
HOOK = """window.addEventListener('popstate', () => trigger('select', {}));
window.addEventListener('cse-filled', () => trigger('submit', {}));
document.addEventListener('click', event => {
  const link = event.target.closest && event.target.closest('a[href^="?tab="]');
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const query = new URLSearchParams(link.search), corpus = new URLSearchParams(location.search).get('corpus');
  if (corpus && !query.has('corpus')) query.set('corpus', corpus);
  history.pushState(null, '', `?${query}`);
  dispatchEvent(new Event('cse-filled'));
});"""
Whole = Callable[[Mapping[str, str]], Mapping[str, str]]
COPY = f"""async () => {{
  try {{
    await navigator.clipboard.writeText(location.href);
  }} catch {{  // a page that came by plain HTTP from another machine has no clipboard
    return 'Not copied: the browser does not allow it. Copy the address of the page';
  }}
  return window.cseCut ? 'Link copied, without texts of more than {LONGEST:,} characters' : 'Link copied';
}}"""


class Linked(NamedTuple):
    """The part of a tab that the address holds: the `names` of the first inputs of its `run`, written on `triggers`.

    `quiet` triggers replace the address without a
    history entry. The events `filled` fill the inputs, too.
    """

    names: Sequence[str]
    run: Run
    triggers: Sequence[Any]
    lane: Mapping[str, Any] = PRIVATE
    quiet: Sequence[Any] = ()
    filled: Sequence[Any] = ()

    def named(self) -> list[gr.components.Component]:
        """Return the inputs that have a name."""
        return list(self.run.inputs[: len(self.names)])


def copy_button() -> None:
    """Add a button that copies the page's address."""
    button = gr.Button("Copy link", size="sm", elem_classes="cse-copy")
    button.click(None, None, button, js=COPY, **HIDDEN)


def back_hook() -> gr.HTML:
    """Return a hidden component that listens to Back, Forward, and scripts that wrote an address ("cse-filled").

    It is outside the tabs, whose content is not in the page until they are opened.
    """
    return gr.HTML("", html_template="", js_on_load=HOOK, apply_default_css=False, visible="hidden")


class Shared(NamedTuple):
    """What the address of every tab holds: components by their names, also written after the events `steps`."""

    fields: Mapping[str, gr.components.Component]
    steps: Sequence[Any] = ()


def link(
    opened: Any,
    back: gr.HTML,
    tabs: gr.Tabs,
    linked: Mapping[str, tuple[gr.Tab, Sequence[Linked]]],
    shared: Shared,
    whole: Whole = dict,
) -> None:
    """Keep the address up to date, and fill and run the parts of the tab that it names.

    That happens after the event `opened`, on Back and Forward, and when a script asks for it (the `back` hook).
    `whole` adds what a short address stands for.
    """
    parts = [(name, content) for name, (_, contents) in linked.items() for content in contents]
    states = [(content, gr.State((0, {}))) for _, content in parts if content.names]
    for name, (tab, contents) in linked.items():
        write_on(tab, name, next(iter(linked)), contents, shared)
    for content, state in states:
        inputs, outputs = [state, *content.run.inputs], list(content.run.outputs)
        state.change(with_given(content.run.fn), inputs, outputs, **content.lane)
    filled = [
        tabs,
        *shared.fields.values(),
        *(component for _, content in parts for component in content.named()),
        *(state for _, state in states),
    ]
    fill = restorer(parts, shared.fields, whole=whole)
    opened.then(None, js=READ, **HIDDEN)
    last: dict[str, Any] = {"trigger_mode": "always_last", "show_progress": "hidden", **HIDDEN}
    back.select(restorer(parts, shared.fields, back=True, whole=whole), None, filled, **last)
    back.submit(fill, None, filled, **last).then(None, js=OPENED, **HIDDEN)


def with_given(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with a restored state in front of its inputs, whose values take the place of some of them.

    A slow page runs a part before it shows the values that it was filled with.
    """
    signature = inspect.signature(function)
    state = inspect.Parameter("state", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def values(state: tuple[int, dict[int, Any]], shown: tuple[Any, ...]) -> list[Any]:
        _, kept = state
        return [kept.get(place, value) for place, value in enumerate(shown)]

    @functools.wraps(function)
    def call(state: tuple[int, dict[int, Any]], *shown: Any) -> Any:
        return function(*values(state, shown))

    @functools.wraps(function)
    def each(state: tuple[int, dict[int, Any]], *shown: Any) -> Any:
        yield from function(*values(state, shown))

    made: Any = each if inspect.isgeneratorfunction(function) else call
    made.__signature__ = signature.replace(parameters=[state, *signature.parameters.values()])
    return made


def write_on(tab: gr.Tab, name: str, first: str, contents: Sequence[Linked], shared: Shared) -> None:
    """Write a tab's address when it is selected, on the triggers of its parts, and when a shared field is edited.

    An address without a tab shows the `first` one.
    """
    names = [*shared.fields, *(each for content in contents for each in content.names)]
    inputs = [*shared.fields.values(), *(component for content in contents for component in content.named())]
    values = {"tab": json.dumps(name), "first": json.dumps(first), "names": json.dumps(names), "longest": LONGEST}
    values["kept"] = json.dumps(KEPT)

    def script(method: str, chosen: str = "false") -> str:
        return WRITE % {**values, "method": json.dumps(method), "chosen": chosen}

    edited = [each.input for each in shared.fields.values()]  # type: ignore[attr-defined]
    steps = [*edited, *(trigger for content in contents for trigger in content.triggers)]
    quiet = [trigger for content in contents for trigger in content.quiet]
    tab.select(None, inputs, None, js=script("pushState", "true"), **HIDDEN)
    for triggers, method in ((steps, "pushState"), (quiet, "replaceState")):
        if triggers:
            gr.on(triggers, None, inputs, None, js=script(method), **HIDDEN)
    filled = [event for content in contents for event in content.filled]
    for event in (*filled, *shared.steps):
        event.success(None, inputs, None, js=script("pushState"), **HIDDEN)


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

    def restore(request: gr.Request) -> list[Any]:
        address = whole(dict(request.query_params))
        tab = str(address.get("tab"))
        if back and tab not in dict(parts):
            tab = parts[0][0]
        updates, runs = list[Any](), list[Any]()
        chosen = restored(list(shared), list(shared.values()), address, back)
        filled = list(zip(shared.values(), chosen or (), strict=False))  # several parts may read a field
        for shown, content in parts:
            named = [name for name in content.names if name in address]
            here = shown == tab and (back or bool(named)) and chosen is not None
            values = restored(content.names, content.named(), address, back) if here else None
            updates += [gr.skip()] * len(content.names) if values is None else values
            filled += zip(content.named(), values or (), strict=False)
            if content.names:
                read = list(enumerate(content.run.inputs))
                known = {place: value for place, each in read for field, value in filled if field is each}
                kept = {place: value for place, value in known.items() if value != gr.skip()}
                runs.append(gr.skip() if values is None else (next(NUMBERS), kept))
        return [
            gr.Tabs(selected=tab) if tab in dict(parts) else gr.skip(),
            *(chosen or [gr.skip()] * len(shared)),
            *updates,
            *runs,
        ]

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
