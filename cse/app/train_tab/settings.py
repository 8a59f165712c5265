"""The fields of the settings, from the one table of them, with the published values and their sources as hints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from cse.adaptation.adapt import AdaptRequest
from cse.app.forms.events import QUICK
from cse.app.training.request import ADAPT, MOST, OF_ADAPT
from cse.app.validation import FieldError
from cse.methods.presets import BUNDLED_ROW, preset, source_of
from cse.methods.settings import SETTINGS

BASE = "bert-base"  # the papers' row of the published settings
LONGEST = 12  # characters of a number


def setting_fields(method: gr.Radio) -> list[gr.Textbox]:
    """Add a field for each setting of `MOST`, whose hints follow the chosen method; an empty one keeps the default.

    They are text boxes, since an empty number would be shown as 0.
    """
    fields = [
        gr.Textbox("", label=label_of(name), max_length=LONGEST, min_width=220, **hints(str(method.value), name))
        for name in MOST
    ]

    def follow(chosen: str) -> list[Any]:
        return [gr.update(**hints(chosen, name)) for name in MOST]

    method.change(follow, method, fields, **QUICK)
    return fields


def hints(method: str, name: str) -> dict[str, Any]:
    """Return the hint of a setting, its default within the empty field, and whether the method has the setting."""
    used = is_used(method, name)
    here = value_of(method, BUNDLED_ROW, name) if used else None
    return {"info": hint(method, name) if used else "", "placeholder": shown(here), "visible": used}


def given(values: Sequence[str]) -> dict[str, float]:
    """Return the numbers in the fields by the name of their setting. Raises FieldError for a text that is none."""
    return {
        name: number(text, label_of(name)) for name, text in zip(MOST, values, strict=True) if text and text.strip()
    }


def number(text: str, field: str) -> float:
    """Return the number in a field."""
    try:
        return float(text)
    except ValueError:
        raise FieldError(field, f"{field} is {text[:LONGEST]!r}; give a number, or nothing.") from None


def label_of(name: str) -> str:
    """Return a setting's name in words."""
    return name.replace("_", " ").capitalize()


def is_used(method: str, name: str) -> bool:
    """True for a setting that a method has; a prompt length is DCPCSE's alone."""
    if method == ADAPT:
        return name in OF_ADAPT
    return name != "prefix" or bool(preset(method, BUNDLED_ROW)[0].reading.prefix)


def hint(method: str, name: str) -> str:
    """Return a setting's help, its default on the bundled backbone and the published value, each with its source."""
    meaning = SETTINGS[name].help.split(";")[0].rstrip(".")
    here, there = (f"{shown(value_of(method, row, name))} ({source(method, row, name)})" for row in (BUNDLED_ROW, BASE))
    return f"{meaning}. Empty: {here}." if here == there else f"{meaning}. Empty: {here}. BERT-base: {there}."


def source(method: str, row: str, name: str) -> str:
    """Return where the value of a setting comes from."""
    return "this project" if method == ADAPT else source_of(method, row, name)


def value_of(method: str, backbone: str, name: str) -> Any:
    """Return the value of a setting that was published for a method on a backbone; None if there is none."""
    if method == ADAPT:
        return AdaptRequest("").seed
    of_method, config = preset(method, backbone)
    return of_method.reading.prefix if name == "prefix" else getattr(config, name)


def shown(value: Any) -> str:
    """Return a value as people write it."""
    return "none" if value is None else f"{value:g}"
