"""The fields of the settings, from the one table of them, with the published values and their sources as hints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from cse.app.forms.events import QUICK
from cse.app.training.request import ADAPT, MOST, OF_ADAPT
from cse.methods.presets import BUNDLED_ROW, preset, source_of
from cse.methods.settings import SETTINGS

SMALL, BASE = BUNDLED_ROW, "bert-base"  # rows of the published settings: the bundled backbone's and the papers'


def setting_fields(method: gr.Radio) -> list[gr.Number]:
    """Add a field for each setting of `MOST`; their hints follow the chosen method. Empty fields mean the hint."""
    fields = [
        gr.Number(
            None, label=label_of(name), info=hint(str(method.value), name), minimum=lowest(name), maximum=MOST[name],
            precision=0 if SETTINGS[name].kind is int else None, min_width=220,
            visible=is_used(str(method.value), name),
        )
        for name in MOST
    ]  # fmt: skip

    def follow(chosen: str) -> list[Any]:
        return [gr.update(info=hint(chosen, name), visible=is_used(chosen, name)) for name in MOST]

    method.change(follow, method, fields, **QUICK)
    return fields


def given(values: Sequence[Any]) -> dict[str, Any]:
    """Return the values of the fields by the name of their setting, empty ones left out."""
    return {name: value for name, value in zip(MOST, values, strict=True) if value is not None}


def label_of(name: str) -> str:
    """Return a setting's name in words."""
    return name.replace("_", " ").capitalize()


def lowest(name: str) -> float:
    """Return the least value of a field."""
    return max(SETTINGS[name].least, 0)


def is_used(method: str, name: str) -> bool:
    """True for a setting that a method has; a prompt length is DCPCSE's alone."""
    if method == ADAPT:
        return name in OF_ADAPT
    return name != "prefix" or bool(preset(method, SMALL)[0].prefix)


def hint(method: str, name: str) -> str:
    """Return a setting's help, its default on the bundled backbone and the published value, each with its source."""
    said = SETTINGS[name].help.split(";")[0].rstrip(".") + "."
    if method == ADAPT or not is_used(method, name):
        return f"{said} Empty: 42."
    here, paper = (value_of(method, backbone, name) for backbone in (SMALL, BASE))
    if here is None and paper is None:
        return f"{said} Empty: no value."
    source = f"{shown(here)} ({source_of(method, SMALL, name)})"
    return f"{said} Empty: {source}; BERT-base: {shown(paper)} ({source_of(method, BASE, name)})."


def value_of(method: str, backbone: str, name: str) -> Any:
    """Return the value of a setting that was published for a method on a backbone; None if there is none."""
    of_method, config = preset(method, backbone)
    return of_method.prefix if name == "prefix" else getattr(config, name)


def shown(value: Any) -> str:
    """Return a value as people write it."""
    return "the backbone's" if value is None else f"{value:g}"
