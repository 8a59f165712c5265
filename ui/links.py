"""A page's address says what it shows: the tab and its inputs, written as they are used, restored when opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gradio as gr

from ui.events import HIDDEN, PRIVATE, Run

LONGEST = 2000  # characters of a value that an address still takes
WRITE = """(...values) => {
  if (!window.cseOpened) return;
  const address = new URL(location.href), theme = address.searchParams.get('__theme');
  const query = new URLSearchParams({tab: %(tab)s});
  %(names)s.forEach((name, place) => {
    const text = String(values[place] ?? '');
    if (text.length <= %(longest)d) query.set(name, text);
  });
  if (theme) query.set('__theme', theme);
  if (query.toString() === address.searchParams.toString()) return;
  const change = address.searchParams.has('tab') && !%(quiet)s ? 'pushState' : 'replaceState';
  history[change](null, '', `?${query}`);
}"""
# Gradio reports the first tab as chosen while it draws the page, before the address was read.
OPENED = "() => { window.cseOpened = true; window.addEventListener('popstate', () => location.reload()); }"
COPY = "() => { navigator.clipboard.writeText(location.href); return 'Link copied'; }"


class Linked(NamedTuple):
    """What of a tab is in the address: the `names` of the first inputs of its `run`, written on `triggers`.

    What is written on `quiet` triggers is no step to go back to.
    """

    names: Sequence[str]
    run: Run
    triggers: Sequence[Any]
    lane: Mapping[str, Any] = PRIVATE
    quiet: Sequence[Any] = ()

    def named(self) -> list[gr.components.Component]:
        """The inputs that have a name."""
        return list(self.run.inputs[: len(self.names)])


def copy_button() -> None:
    """A button that copies the page's address."""
    button = gr.Button("Copy link", size="sm", elem_classes="cse-copy")
    button.click(None, None, button, js=COPY, **HIDDEN)


def link(blocks: gr.Blocks, tabs: gr.Tabs, linked: Mapping[str, tuple[gr.Tab, Sequence[Linked]]]) -> None:
    """Keep the address up to date, and fill and run the parts of the tab that it names when the page is opened."""
    parts = [(name, content) for name, (_, contents) in linked.items() for content in contents]
    asked = [(content, gr.State(False)) for _, content in parts if content.names]
    for name, (tab, contents) in linked.items():
        names = [each for content in contents for each in content.names]
        inputs = [component for content in contents for component in content.named()]
        values = {"tab": json.dumps(name), "names": json.dumps(names), "longest": LONGEST}
        steps = [tab.select, *(trigger for content in contents for trigger in content.triggers)]
        for triggers, quiet in ((steps, "false"), ([each for content in contents for each in content.quiet], "true")):
            if triggers:
                gr.on(triggers, None, inputs, None, js=WRITE % {**values, "quiet": quiet}, **HIDDEN)
    for content, state in asked:
        state.change(content.run.fn, list(content.run.inputs), list(content.run.outputs), **content.lane)
    outputs = [
        tabs,
        *(component for _, content in parts for component in content.named()),
        *(state for _, state in asked),
    ]
    restored = blocks.load(restorer(parts), None, outputs, show_progress="hidden", **HIDDEN)
    restored.then(None, js=OPENED, **HIDDEN)


def restorer(parts: Sequence[tuple[str, Linked]]) -> Callable[..., list[Any]]:
    """A handler that gives the tab, every input and whether each part was asked for, as the address has them.

    The `parts` are in the order of the page, each with the name of its tab.
    """

    def restore(request: gr.Request) -> list[Any]:
        address = dict(request.query_params)
        tab = str(address.get("tab"))
        updates = [
            given(component, address[name]) if shown == tab and name in address else gr.skip()
            for shown, content in parts
            for name, component in zip(content.names, content.named(), strict=True)
        ]
        chosen = gr.Tabs(selected=tab) if tab in dict(parts) else gr.skip()
        runs = [
            True if shown == tab and any(name in address for name in content.names) else gr.skip()
            for shown, content in parts
            if content.names
        ]
        return [chosen, *updates, *runs]

    return restore


def given(component: Any, text: str) -> Any:
    """A value of the address for a component; one that the component cannot have leaves it as it is."""
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
        asked = text.split(",") if text else []
        return [known[each] for each in asked] if known.keys() >= set(asked) else gr.skip()
    return text
