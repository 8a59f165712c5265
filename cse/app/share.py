"""The panel Share: the link to the page as it is, and files of what the open place shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import gradio as gr

from cse.app import validation
from cse.app.drawing.components import saved_file
from cse.app.files import FORMS, WIDTHS, file_of
from cse.app.forms.events import QUICK, guarded
from cse.app.show import Shown, ask, lane_of

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState


def address_of(request: gr.Request | None) -> str:
    """Return the URL of the visitor's page from the referer header, or the default address without one."""
    page = urlsplit((request.headers.get("referer") or "") if request else "")
    if page.scheme not in ("http", "https") or not page.netloc:
        return "http://127.0.0.1:7860/"
    return f"{page.scheme}://{page.netloc}{page.path or '/'}"


def share_forms(state: AppState, panel: gr.Column, places: Mapping[str, tuple[gr.Tab, Sequence[Shown]]]) -> None:
    """Add a form for each place that has results; only that of the open place is shown."""
    groups: dict[str, gr.Column] = {}
    with panel:
        for name, (_, shown) in places.items():
            if shown:
                with gr.Column(visible=not groups) as groups[name]:
                    place_form(state, shown)
    for name, (tab, _) in places.items():
        tab.select(
            lambda name=name: {group: gr.update(visible=other == name) for other, group in groups.items()},
            None,
            [*groups.values()],
            **QUICK,
        )


def place_form(state: AppState, shown: Sequence[Shown]) -> None:
    """Add the choice of a place's result and of a form of file, and the button that saves it."""
    labels = [each.kind.title for each in shown]
    result = gr.Radio(labels, value=labels[0], label="Result", visible=len(labels) > 1)
    with gr.Row(equal_height=True):
        form = gr.Dropdown(list(FORMS), value=FORMS[0], label="As", min_width=160)
        width = gr.Dropdown(list(WIDTHS), value=list(WIDTHS)[-1], label="Width of figures", min_width=160)
        save = gr.Button("Save", variant="primary", scale=0, min_width=100)
    saved = saved_file()
    fields = list({id(field): field for each in shown for field in each.fields.values()}.values())

    def file(request: gr.Request, label: str, form: str, width: str, *values: Any) -> dict[str, Any]:
        chosen = shown[labels.index(validation.one_of(label, "The result", labels))]
        known = dict(zip(map(id, fields), values, strict=True))
        sent = {name: known[id(field)] for name, field in chosen.fields.items()}
        validation.one_of(form, "The form", FORMS)
        validation.one_of(width, "The width", WIDTHS)
        return file_of(ask(state, chosen.kind, sent), form, width, address_of(request))

    saving: Callable[..., Any] = guarded(file)
    save.click(saving, [result, form, width, *fields], saved, **lane_of(shown[0].kind))
