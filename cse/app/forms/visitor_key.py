"""The secret key of a visitor: his browser makes and keeps it, and the server finds by it what it keeps for him.

It is the same in all tabs and after a reload. It is no part of the page's address, which a visitor shares.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from cse.app.forms.events import HIDDEN

# 128 random bits. `randomUUID` is missing where a page comes over plain HTTP from another machine, and a browser may
# refuse to store: the key then lasts as long as the page.
SCRIPT = """() => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const fresh = Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
  try {
    const kept = localStorage.getItem('cse-visitor');
    if (/^[0-9a-f]{32}$/.test(kept)) return kept;
    localStorage.setItem('cse-visitor', fresh);
  } catch {}
  return fresh;
}"""


def visitor_key() -> gr.Textbox:
    """Where the page holds the key, for handlers that need it."""
    return gr.Textbox("", visible=False)


def known(blocks: gr.Blocks, key: gr.Textbox) -> Any:
    """The event after which a page that was opened holds its key."""
    return blocks.load(None, None, key, js=SCRIPT, show_progress="hidden", **HIDDEN)
