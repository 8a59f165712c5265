"""The form of the Train tab: the method, the name of the result, the buttons, and the settings folded away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gradio as gr

from cse.app.drawing import html
from cse.app.models.naming import choices
from cse.app.train_tab.settings import given, setting_fields
from cse.app.training.request import ADAPT, LONGEST_NAME
from cse.app.training.rules import Rules
from cse.models.names import BACKBONE

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState

METHODS = {
    ADAPT: "Adapt (recommended): the best of several ways at grouping and finding your texts, or your model as it is",
    "simcse": "SimCSE", "promptbert": "PromptBERT", "dcpcse": "DCPCSE", "conpvp": "ConPVP",
}  # fmt: skip


@dataclass(frozen=True)
class TrainForm:
    """The fields of a request, and the buttons; `status` is the line under them, `promise` the bounds of a training."""

    method: gr.Radio
    fields: Sequence[gr.components.Component]
    start: gr.Button
    stop: gr.Button
    resume: gr.Button
    status: gr.HTML
    minutes: gr.Slider
    promise: gr.HTML

    @staticmethod
    def bounded(rules: Rules) -> list[Any]:
        """Return the updates of `minutes` and `promise` by the rules for a client."""
        return [gr.update(maximum=rules.minutes, value=min(30, rules.minutes)), html.hint(rules.promise)]

    @staticmethod
    def values(method: str, name: str, start: str, minutes: float, *settings: Any) -> dict[str, Any]:
        """Return the values of the `fields` by what `checked` calls them."""
        return {"method": method, "name": name, "start": start, "minutes": minutes, "settings": given(settings)}


def train_form(state: AppState, rules: Rules) -> TrainForm:
    """Add the form."""
    method = gr.Radio([(label, name) for name, label in METHODS.items()], value=ADAPT, label="Method")
    name = gr.Textbox("", label="Name of the result", placeholder="my model", max_length=LONGEST_NAME)
    with gr.Row():
        start = gr.Button("Train", variant="primary", scale=2, min_width=140)
        stop = gr.Button("Stop", scale=1, min_width=90, interactive=False)
        resume = gr.Button("Resume", scale=1, min_width=90, interactive=False)
    status = gr.HTML("", apply_default_css=False, elem_id="train-said")
    with gr.Accordion("Settings: the published ones, unless you change them", open=False):
        origin = gr.Dropdown(
            choices(state.admission.offered()), value=BACKBONE, label="Model to start from", allow_custom_value=True,
            info="A backbone or sentence model; Adapt takes a trained model, too.",
        )  # fmt: skip
        minutes = gr.Slider(
            1, rules.minutes, min(30, rules.minutes), step=1, label="Minutes at most",
            info="Adapt leaves out what does not fit; any other method ends there.",
        )  # fmt: skip
        with gr.Row():
            fields = setting_fields(method)
    promise = gr.HTML(html.hint(rules.promise), apply_default_css=False)
    return TrainForm(method, [method, name, origin, minutes, *fields], start, stop, resume, status, minutes, promise)
