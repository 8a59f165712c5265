"""The "?" at a term, which a click or a key opens and Escape closes, and the sheets of all terms."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cse.app.drawing import html
from cse.app.drawing.terms import OF_SCORES, TERMS


def question(name: str) -> str:
    """Return the "?" of a term."""
    return ask(*asking(name))


def asking(name: str) -> tuple[str, str]:
    """Return what `ask` takes for a term: the id of its sheet and its question."""
    return place_of(name), TERMS[name].question


def term(name: str, shown: str = "") -> str:
    """Return a term, or other words for it, with its "?"."""
    return f'<span class="cse-asking">{html.escape(shown or name)}{question(name)}</span>'


def terms(*names: str) -> str:
    """Return a line of terms with their "?"."""
    return f'<p class="cse-terms">{"".join(map(term, names))}</p>' if names else ""


def of_scores(scores: Iterable[str]) -> tuple[str, ...]:
    """Return the terms of scores, each once."""
    return tuple(dict.fromkeys(name for score in scores for name in OF_SCORES.get(score, ())))


def place_of(name: str) -> str:
    """Return the id of a term's sheet."""
    return f"term-{re.sub(r'[^a-z]+', '-', name.lower()).strip('-')}"


def ask(place: str, label: str) -> str:
    """Return the "?" that opens the sheet of the id `place`; screen readers say `label`."""
    return f'<button type="button" class="cse-term" popovertarget="{place}" aria-label="{html.escape(label)}"></button>'


def sheet(place: str, name: str, inside: str) -> str:
    """Return a sheet of HTML that is closed at first."""
    label = html.escape(name)
    return (
        f'<div popover class="cse-popover" id="{place}" role="dialog" aria-label="{label}"><h2>{label}</h2>'
        f"{inside}</div>"
    )


def glossary_html() -> str:
    """Return the sheets of all terms, once for the page."""
    return "".join(
        sheet(place_of(name), found.question, f"{found.picture}<p>{html.escape(found.sentence)}</p>")
        for name, found in TERMS.items()
    )
