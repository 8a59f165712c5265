"""The secret key of a visitor, made and stored by the browser; the server keeps the visitor's corpus under it.

It is the same in all tabs and after a reload. The page's address, which visitors share, does not contain it.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from cse.app.forms.events import HIDDEN

# 128 random bits. `randomUUID` is missing on pages that come over plain HTTP from another machine. If the browser
# refuses to store the key, it lasts as long as the page.
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
    """Return the hidden component that holds the key."""
    return gr.Textbox("", visible=False)


def known(blocks: gr.Blocks, key: gr.Textbox) -> Any:
    """Return the event after which an opened page has its key."""
    return blocks.load(None, None, key, js=SCRIPT, show_progress="hidden", **HIDDEN)
