"""The templates of the page, in which every text is escaped."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from cse.app.drawing import html
from cse.app.drawing.glossary import term
from cse.app.models.naming import title

TEMPLATES = Path(__file__).parents[1] / "templates"


@lru_cache
def templates() -> jinja2.Environment:
    """Return the templates; every text that they show is escaped."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.filters |= {
        "title": title,
        "model": lambda name: Markup(html.model(name)),
        "colour": html.colour,
        "folded": lambda text: Markup(html.folded(text)),
        "term": lambda *given: Markup(term(*given)),
        "bar": lambda share, *mark: Markup(html.bar(float(share), *mark)),
    }
    return found
