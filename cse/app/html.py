"""HTML of the page, in which every text is escaped: templates, marks of models, terms, and components of Gradio."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape as escape
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr
import jinja2
from markupsafe import Markup

from cse.app.models.naming import BEFORE, title
from cse.models.names import BACKBONE

if TYPE_CHECKING:
    from cse.app.models.models import Column

# Colours of topics, twelve in each scheme, and of models: distinct for every kind of colour vision (tested).
LIGHT = (
    "#4e3bd8", "#eb4e76", "#768900", "#620000", "#6276ff", "#4e764e",
    "#764e00", "#89769d", "#3b0089", "#274e3b", "#624e76", "#3b273b",
)  # fmt: skip
DARK = (  # each as near to that above as twelve allow
    "#b19deb", "#eb2789", "#c4d800", "#9d764e", "#008989", "#9d9d14",
    "#ebd89d", "#76b1b1", "#8962eb", "#9debd8", "#d8d8ff", "#c49d89",
)  # fmt: skip
# Of ordered values, in red, green and blue: the least, the middle and the most.
TINTS = {
    "light": [(122, 137, 160), (210, 92, 25), (105, 0, 55)], "dark": [(100, 118, 145), (232, 138, 62), (255, 236, 140)],
}  # fmt: skip
# Of the bundled models: at least 3:1 on the backgrounds of both schemes.
MODELS = {"simcse": "#3d8eff", "promptbert": "#eb2f00", "dcpcse": "#178267", "conpvp": "#ca499f"}
# Of readings of the backbone alone.
UNTRAINED = {
    "untrained (mean)": "#888888", "untrained (cls)": "#a08c6a", "untrained (first-last)": "#5f7f8f",
    "untrained (static)": "#967a96", "untrained (prompt)": "#7c8a62",
}  # fmt: skip
OWN = ("#6655ff", "#777744", "#bb7788", "#779955")  # of other models, in the order of the page's columns
TEMPLATES = Path(__file__).parent / "templates"
STATIC = Path(__file__).parent / "static"
FILE = (
    '<div class="cse-taken"><p role="status"></p><pre tabindex="0" hidden aria-label="Code"></pre>'
    '<button type="button" class="cse-copy-code" hidden>Copy</button></div>'
)
MAX_STEM = 80  # characters of a file name
NUMBERS = itertools.count(1)  # make equal values differ, since pages and events watch for a changed one
LEAST_SHOWN = 0.0005  # a probability, which is 0.1 % when rounded
LONG = 160  # characters that take about three lines; static/map.js has the same number


@lru_cache
def templates() -> jinja2.Environment:
    """Return the templates; every text that they show is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "title": title,
        "model": lambda name: Markup(model(name)),
        "folded": lambda text: Markup(folding(escape(text), len(text))),
        "term": lambda *words: Markup(term(*words)),
        "explained": lambda text, names: Markup(explained(text, names)),
        "painted": lambda name: Markup(painted(name)),
        "bar": lambda *shares: Markup(bar(*shares)),
        "likely": likely,
        "printed": printed,
    }
    return environment


def drawn(file: str, part: str, /, **values: Any) -> Markup:
    """Return what the macro `part` of a template makes of these values; "" if it has no such macro."""
    if not (TEMPLATES / f"{file}.html").is_file():
        return Markup()
    macro = getattr(templates().get_template(f"{file}.html").make_module(values), part, None)
    return Markup(macro() if macro else "")


def printed(form: str, value: float) -> str:
    """Return a number in a form of `%`, with a minus sign for a hyphen, and without a sign where 0 is shown."""
    shown = form % value
    return shown.lstrip("+-") if not float(shown) else shown.replace("-", "\N{MINUS SIGN}")


def likely(probability: float) -> str:
    """Return the probability of a token in percent."""
    return f"{100 * probability:.1f} %" if probability >= LEAST_SHOWN else "< 0.1 %"


def model(name: str) -> str:
    """Return a model's name after a mark of its colour, which the page's styles give to those not bundled."""
    first, blank, rest = escape(title(name)).partition(" ")
    return f'<span class="cse-named"><i class="cse-chip" {painted(name)}></i>{first}</span>{blank}{rest}'


def painted(name: str) -> str:
    """Return the attribute of an element that has a model's colour."""
    own = colour_of(name)
    return f'style="--cse-model:{own}"' if own else f'data-model="{escape(name)}"'


def colour_of(name: str) -> str:
    """Return the colour of a bundled model, a pale one before its training, or of a reading; empty for other models."""
    own = {**MODELS, **UNTRAINED}.get(name.removesuffix(BEFORE), "")
    return pale(own) if own and name.endswith(BEFORE) else own


def pale(colour: str) -> str:
    """Return the colour of a model before its training: a third of its own, two thirds of grey."""
    mixed = ((int(colour[at : at + 2], 16) + 2 * 0x9A) // 3 for at in (1, 3, 5))
    return f"#{''.join(f'{part:02x}' for part in mixed)}"


def colour_styles(columns: Iterable[Column]) -> str:
    """Return styles that give the marks of models that are neither bundled nor untrained their colours."""
    own = [column.name for column in columns if column.name not in MODELS and column.model != BACKBONE]
    signs = ("".join(s if s.isascii() and s.isalnum() else f"\\{ord(s):x} " for s in name) for name in own)
    rules = [f'[data-model="{name}"]{{--cse-model:{shade}}}' for name, shade in zip(signs, cycle(OWN), strict=False)]
    return f"<style>{''.join(rules)}</style>" if rules else ""


def folding(inside: str, length: int) -> str:
    """Return HTML of a text of `length` characters; a long one shows three lines until a click or a key opens it."""
    if length <= LONG:
        return inside
    return f'<details class="cse-long"><summary><span>{inside}</span></summary></details>'


def alert(text: str) -> str:
    """Return an error line that screen readers announce."""
    return f'<p class="cse-failure" role="alert">{escape(text)}</p>'


def bar(share: float, mark: float | None = None) -> str:
    """Return a bar filled to `share` in [0, 1], with a line at `mark` if given."""
    line = "" if mark is None else f'<b style="left:{100 * mark:.1f}%"></b>'
    return f'<span class="cse-bar"><i style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></i>{line}</span>'


def verdict(text: str) -> str:
    """Return the sentence that a view's numbers say; empty for none."""
    return f'<p class="cse-says">{escape(text)}</p>' if text else ""


def hint(text: str) -> str:
    """Return a muted line in place of a result."""
    return f'<p class="cse-hint">{escape(text)}</p>'


@lru_cache
def terms() -> dict[str, tuple[str, str]]:
    """Return the terms that the page explains, each with a question and the sentence that answers it."""
    return json.loads((TEMPLATES / "terms.json").read_text(encoding="utf-8"))


def term(name: str, shown: str = "") -> str:
    """Return a term, or other words for it, with the "?" that opens its sheet."""
    return f'<span class="cse-asking">{escape(shown or name)}{question(name, terms()[name][0])}</span>'


def explained(text: str, names: Iterable[str]) -> str:
    """Return a text with a "?" after the first place of each of these terms that it has."""
    shown = str(escape(text))
    for name in names:
        if at := re.search(rf"\b{re.escape(str(escape(name)))}\b(?!-)", shown):
            shown = f"{shown[: at.start()]}{term(name)}{shown[at.end() :]}"
    return shown


def question(name: str, label: str) -> str:
    """Return the "?" that opens the sheet of a name; screen readers say `label`."""
    opens = f'popovertarget="{sheet_id(name)}" aria-label="{escape(label)}"'
    return f'<button type="button" class="cse-term" {opens}></button>'


def sheet(name: str, heading: str, text: str) -> str:
    """Return a sheet under its heading, which is closed at first."""
    label, key = escape(heading), sheet_id(name)
    return (
        f'<div popover class="cse-popover" id="{key}" role="dialog" aria-label="{label}"><h2>{label}</h2>'
        f"<p>{escape(text)}</p>"
        f'<button type="button" popovertarget="{key}" popovertargetaction="hide">Close</button></div>'
    )


def sheet_id(name: str) -> str:
    """Return the id of a name's sheet."""
    return f"term-{re.sub(r'[^a-z]+', '-', name.lower()).strip('-')}"


def script(*names: str) -> str:
    """Return these scripts of `static`, concatenated in this order; they share one scope."""
    return "\n".join((STATIC / f"{name}.js").read_text(encoding="utf-8") for name in names)


def heading(text: str, more: str = "", words: Sequence[str] = ()) -> gr.HTML:
    """Return the heading of a part of a place; a "?" opens `more`; `words` are terms that the part uses."""
    about = question(text, f"About: {text}") + sheet(text, text, more) if more else ""
    terms = f'<p class="cse-terms">{"".join(map(term, words))}</p>' if words else ""
    inside = f'<div class="cse-part-head"><h2>{escape(text)}</h2>{about}{terms}</div>'
    return gr.HTML(inside, apply_default_css=False)


def settings(name: str = "Options") -> gr.Accordion:
    """Return the folded fields beside the examples."""
    return gr.Accordion(name, open=False, elem_classes="cse-settings")


def result(elem_id: str, first: str, js: str | None = None) -> gr.HTML:
    """Return the output of a result as HTML; it shows `first` when the page opens, where the script `js` runs."""
    return gr.HTML(first, apply_default_css=False, elem_id=elem_id, elem_classes="cse-result", js_on_load=js)


def saved_file() -> gr.HTML:
    """Return the component; a value of `file_value` saves or shows a text."""
    return gr.HTML({}, html_template=FILE, js_on_load="cse.savedFile(element, props, watch)")


def file_stem(*words: str) -> str:
    """Return words as a file name without its suffix, of at most `MAX_STEM` characters and without signs of paths."""
    plain = (re.sub(r"[^\w.]+|^\.+", "-", word).strip("-.") for word in words)
    return "-".join(filter(None, plain))[:MAX_STEM]


def file_value(
    name: str, kind: str, text: str, lacking: Sequence[str] = (), notes: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the value that saves `text` as a file of the MIME type `kind`; without a kind it is shown as code."""
    value = {"file": name, "type": kind, "text": text, "lacking": list(lacking), "number": next(NUMBERS)}
    return value if notes is None else value | {"notes": list(notes), "base64": True}
