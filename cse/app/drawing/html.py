"""HTML of results. Every text that is not a constant goes through `escape`."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from cse.app.drawing.palette import MODELS, pale
from cse.app.models.models import Failure
from cse.app.models.naming import BEFORE, title

T = TypeVar("T")

WIDTH = 17.0
SHOWN = 300  # characters of a user's line in a label
LONG = 160  # characters that take about three lines; static/elements.js has the same number


def escape(text: str) -> str:
    """Escape `text` for HTML."""
    return html.escape(text, quote=True)


def model(name: str) -> str:
    """Return a model's name after a mark of its colour."""
    return f"{chip(name)}{escape(title(name))}"


def chip(name: str) -> str:
    """Return the mark of a model's colour."""
    return f'<i class="cse-chip" {painted(name)}></i>'


def painted(name: str) -> str:
    """Return the attribute of an element in a model's colour, which the page's styles give to those not bundled."""
    return f'style="{colour(name)}"' if name.removesuffix(BEFORE) in MODELS else f'data-model="{escape(name)}"'


def colour_styles(colours: Mapping[str, str]) -> str:
    """Return styles that give the marks of models their colours, whatever signs are in their names."""
    rules = (f'[data-model="{css_string(name)}"]{{--cse-model:{shade}}}' for name, shade in colours.items())
    return f"<style>{''.join(rules)}</style>" if colours else ""


def css_string(text: str) -> str:
    """Return a text for a string of CSS inside HTML, with every sign but letters and digits escaped."""
    return "".join(sign if sign.isascii() and sign.isalnum() else f"\\{ord(sign):x} " for sign in text)


def colour(name: str) -> str:
    """Return the style declaration of a model's colour; empty for one without a colour."""
    own = MODELS.get(name.removesuffix(BEFORE))
    return "" if own is None else f"--cse-model:{pale(own) if name.endswith(BEFORE) else own}"


def shortened(text: str) -> str:
    """Return escaped `text`, cut to `SHOWN` characters."""
    return escape(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def folded(text: str) -> str:
    """Return escaped `text`; a long one shows three lines until a click or a key opens it."""
    return folding(escape(text), len(text))


def folding(inside: str, length: int) -> str:
    """Return HTML of a text of `length` characters, as `folded` does."""
    if length <= LONG:
        return inside
    return f'<details class="cse-long"><summary><span>{inside}</span></summary></details>'


def columns(results: Mapping[str, T | Failure], body: Callable[[T], str], *, width: float = WIDTH) -> str:
    """Return a column per model, at least `width` rem wide: its name and `body` of its result, or its failure."""
    sections = []
    for name, result in results.items():
        inside = failure(result) if isinstance(result, Failure) else body(result)
        sections.append(f'<section class="cse-card"><h3>{model(name)}</h3>{inside}</section>')
    return f'<div class="cse-columns" style="--cse-column:{width}rem">{"".join(sections)}</div>'


def fold(name: str, inside: str, *, opened: bool = False) -> str:
    """Return HTML that a press on its name shows and hides."""
    return f'<details class="cse-fold"{" open" if opened else ""}><summary>{name}</summary>{inside}</details>'


def table(inside: str, name: str, kind: str = "cse-table") -> str:
    """Return a table of the class `kind` with the caption `name`; a wide one scrolls in its box, by keys too."""
    label = escape(name)
    return (
        f'<div class="cse-scroll" role="group" tabindex="0" aria-label="{label}">'
        f'<table class="{kind}"><caption class="cse-hidden">{label}</caption>{inside}</table></div>'
    )


def headed(heads: Iterable[str | None], rows: Iterable[str], name: str, kind: str = "cse-table") -> str:
    """Return a `table` of the rows under headings, all HTML; None is the empty corner above the names of rows."""
    head = "".join("<td></td>" if each is None else f'<th scope="col">{each}</th>' for each in heads)
    return table(f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>", name, kind)


def row(cells: Iterable[str], name: str | None = None) -> str:
    """Return a row of a table after its `name`, if it has one, all HTML."""
    head = "" if name is None else f'<th scope="row">{name}</th>'
    return f"<tr>{head}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def failure(failed: Failure) -> str:
    """Return the reason a model has no result."""
    return f'<p class="cse-failure"><b>Not available.</b> {escape(failed.reason)}</p>'


def failures(failed: Mapping[str, Failure]) -> str:
    """Return a line per model without a result, with the reason."""
    return "".join(
        f'<p class="cse-failure"><b>{escape(title(name))}.</b> {escape(failure.reason)}</p>'
        for name, failure in failed.items()
    )


def alert(text: str) -> str:
    """Return an error line that screen readers announce."""
    return f'<p class="cse-failure" role="alert">{escape(text)}</p>'


def bar(share: float, mark: float | None = None) -> str:
    """Return a bar filled to `share` in [0, 1], with a line at `mark` if given."""
    line = "" if mark is None else f'<b style="left:{100 * mark:.1f}%"></b>'
    return f'<span class="cse-bar"><i style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></i>{line}</span>'


def axis(ticks: Mapping[float, str]) -> str:
    """Return the labels below a picture, by their place in percent of its width; the outer ones stay inside."""
    labels = "".join(f'<span style="left:{place:.1f}%">{text}</span>' for place, text in ticks.items())
    return f'<div class="cse-axis cse-inside" aria-hidden="true">{labels}</div>'


def verdict(text: str) -> str:
    """Return the sentence that a view's numbers say; empty for none."""
    return f'<p class="cse-says">{escape(text)}</p>' if text else ""


def hint(text: str) -> str:
    """Return a muted line in place of a result."""
    return f'<p class="cse-hint">{escape(text)}</p>'
