"""Columns as HTML. Every text that is not written here goes through `escape`."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import TypeVar

from ui.models import Failure

T = TypeVar("T")

WIDTH = 17.0
SHOWN = 300  # characters of a user's line in a label


def escape(text: str) -> str:
    """`text` with nothing in it that HTML could read as markup."""
    return html.escape(text, quote=True)


def shortened(text: str) -> str:
    """Escaped `text`, cut where it is too long for a label."""
    return escape(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def columns(answers: Mapping[str, T | Failure], body: Callable[[T], str], *, width: float = WIDTH) -> str:
    """A card per model, `width` rem wide or wider: its name and `body` of its answer, or why there is none."""
    cards = []
    for name, answer in answers.items():
        inside = failure(answer) if isinstance(answer, Failure) else body(answer)
        cards.append(f'<section class="cse-card"><h3>{escape(name)}</h3>{inside}</section>')
    return f'<div class="cse-columns" style="--cse-column:{width}rem">{"".join(cards)}</div>'


def failure(answer: Failure) -> str:
    """The reason a model has no answer."""
    return f'<p class="cse-failure"><b>Not available.</b> {escape(answer.reason)}</p>'


def bar(share: float, kind: str = "") -> str:
    """A bar filled to `share` in [0, 1]; `kind` is a further class."""
    return f'<span class="cse-bar {kind}"><i style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></i></span>'


def hint(text: str) -> str:
    """A muted line in place of a result that was not asked for yet."""
    return f'<p class="cse-hint">{escape(text)}</p>'
