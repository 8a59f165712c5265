"""Links from other tabs to a sentence of the demo corpus on the Clusters tab.

- A link to `?tab=clusters&pin=ROW`, as Search writes it, also works in a new browser tab and without this script; a
  plain click stays on the page, selects the tab and pins the sentence there.
- `window.cseShowOnMap(row)` does the same from JavaScript.

`row` counts the sentences of the demo corpus from 0: `Hit.position` of a search in the corpus "demo".
"""

from __future__ import annotations

from typing import Any

import gradio as gr

SCRIPT = """
window.cseShowOnMap = row => trigger('select', {row});
document.addEventListener('click', event => {
  const link = event.target.closest && event.target.closest('a[href^="?tab=clusters&pin="]');
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  window.cseShowOnMap(Number(new URLSearchParams(link.search).get('pin')));
});"""


def map_hook() -> gr.HTML:
    """Return the hidden component that handles the links; unopened tabs are not in the page, so it is outside them."""
    return gr.HTML("", html_template="", js_on_load=SCRIPT, apply_default_css=False, visible="hidden")


def chosen_row(event: gr.EventData) -> Any:
    """Return the row that a client sent, unchecked."""
    return event._data.get("row") if isinstance(event._data, dict) else None
