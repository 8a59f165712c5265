"""How another tab shows a sentence of the demo corpus on the Clusters tab: links, a function of the page, an address.

- A link to `?tab=clusters&pin=ROW`, as Search writes it: it opens in a new tab or without this script too; a plain
  click stays on the page, goes to the tab and pins the sentence there.
- `window.cseShowOnMap(row)` does the same from JavaScript.

`row` counts the sentences of the demo corpus from 0: `Hit.row` of a search in the corpus "demo".
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
    """What hears the links; it stands outside the tabs, since a tab that was never opened is not on the page."""
    return gr.HTML("", html_template="", js_on_load=SCRIPT, apply_default_css=False, visible="hidden")


def chosen_row(event: gr.EventData) -> Any:
    """What a client says was chosen: to be checked."""
    return event._data.get("row") if isinstance(event._data, dict) else None
