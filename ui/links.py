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


def link(blocks: gr.Blocks, tabs: gr.Tabs, linked: Mapping[str, tuple[gr.Tab, Linked]]) -> None:
    """Keep the address up to date, and fill and run the tab that it names when the page is opened."""
    asked = {name: gr.State(False) for name, (_, content) in linked.items() if content.names}
    for name, (tab, content) in linked.items():
        values = {"tab": json.dumps(name), "names": json.dumps(list(content.names)), "longest": LONGEST}
        for triggers, quiet in (([tab.select, *content.triggers], "false"), (list(content.quiet), "true")):
            if triggers:
                gr.on(triggers, None, content.named(), None, js=WRITE % {**values, "quiet": quiet}, **HIDDEN)
        if name in asked:
            run = content.run
            asked[name].change(run.fn, list(run.inputs), list(run.outputs), **content.lane)
    inputs = [component for _, content in linked.values() for component in content.named()]
    contents = {name: content for name, (_, content) in linked.items()}
    outputs = [tabs, *inputs, *asked.values()]
    restored = blocks.load(restorer(contents), None, outputs, show_progress="hidden", **HIDDEN)
    restored.then(None, js=OPENED, **HIDDEN)


def restorer(contents: Mapping[str, Linked]) -> Callable[..., list[Any]]:
    """A handler that gives the tab, every input and whether each tab was asked for, as the address has them."""

    def restore(request: gr.Request) -> list[Any]:
        address = dict(request.query_params)
        tab = str(address.get("tab"))
        updates = [
            given(component, address[name]) if shown == tab and name in address else gr.skip()
            for shown, content in contents.items()
            for name, component in zip(content.names, content.named(), strict=True)
        ]
        chosen = gr.Tabs(selected=tab) if tab in contents else gr.skip()
        used = tab in contents and any(name in address for name in contents[tab].names)
        runs = [True if used and name == tab else gr.skip() for name, content in contents.items() if content.names]
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
    return text
