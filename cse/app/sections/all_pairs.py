"""A heat map of all pairs of a list of sentences, for one model or the difference of two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import gradio as gr
import numpy as np

from cse.analysis.calibration import percentiles
from cse.app import validation
from cse.app.drawing.components import heading, script, submit
from cse.app.drawing.palette import MODELS
from cse.app.drawing.ramps import COSINES, DIFFERENCES, tints
from cse.app.forms.events import HIDDEN, PROGRESS, private, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.columns import Column
from cse.app.models.models import Failure, plain
from cse.app.models.naming import TITLES, choices
from cse.app.state.app_state import AppState
from cse.training.records import Report, silent

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder

LEAST, MOST = 2, 40
LIST = """A man is playing a guitar on stage.
Someone plays the guitar for an audience.
The restaurant is open on Sundays.
You can eat there on Sundays.
She planted tomatoes in the garden.
The train to Berlin leaves at noon."""
MEASURES = {"cosine": "Cosine", "percentile": "Percentile"}
ABOUT = (
    "Type sentences and see which of them a model finds alike. Percentiles are among random pairs of the demo corpus."
)
NOTHING = ""  # no model is subtracted
SWITCH = "(value, model, minus, measure) => ({...value, model, minus, measure})"


class AllPairs(NamedTuple):
    """A model's (N, N) cosines of N sentences, and the percentile of each, 0 to 100 (`cse.analysis.calibration`)."""

    cosines: np.ndarray
    percentiles: np.ndarray


def all_pairs(state: AppState, text: str, report: Report = silent) -> tuple[list[str], dict[str, AllPairs | Failure]]:
    """Return the N sentences of the list, and each model's similarities of all pairs."""
    from cse.vectors import unit_rows

    sentences = validation.lines(text, LEAST, MOST)

    def of_model(column: Column, encoder: Encoder) -> AllPairs:
        rows = unit_rows(state.models.reader(encoder).encode(sentences))
        cosines = rows @ rows.T
        return AllPairs(cosines, percentiles(cosines, state.demo.random_cosines(encoder)))

    return sentences, state.models.apply(of_model, report=report)


def pairs_value(
    sentences: Sequence[str],
    answers: Mapping[str, AllPairs | Failure],
    model: str,
    minus: str = NOTHING,
    measure: str = "cosine",
) -> dict[str, Any]:
    """Return the value of `all_pairs.js`, which shows `model` or its difference from `minus`, texts as plain text."""
    models = [{"name": name, **value} for name, value in plain(answers, plain_pairs).items()]
    return {"sentences": list(sentences), "models": models, "model": model, "minus": minus, "measure": measure}


def plain_pairs(found: AllPairs) -> dict[str, Any]:
    """Return a model's matrices as JSON values, rounded."""
    return {"cosines": found.cosines.round(4).tolist(), "percentiles": found.percentiles.round(2).tolist()}


def pairs_map(value: dict[str, Any]) -> gr.HTML:
    """Return a component that shows a `pairs_value`, or nothing yet."""
    return gr.HTML(
        value, html_template='<div class="cse-pairs"></div>', js_on_load=script("elements", "all_pairs"),
        apply_default_css=False, elem_id="all-pairs", elem_classes="cse-result",
        ramps={"values": tints(COSINES), "differences": tints(DIFFERENCES)}, titles=TITLES, colours=MODELS,
    )  # fmt: skip


def subtrahends(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the choices of the model to subtract: nothing, or a model."""
    return [("none", NOTHING), *choices(names)]


def list_section(state: AppState, first: dict[str, AllPairs] | None) -> Linked:
    """Add the list of sentences and the map of their pairs. Returns its part of the address."""
    heading("All pairs of a list", ABOUT, words=["percentile"])
    with gr.Row(equal_height=True):
        box = gr.Textbox(
            LIST, label=f"Sentences, one per line ({LEAST} to {MOST})", lines=6, max_lines=12, scale=4, min_width=240
        )
        button = submit("Compare all pairs")
    names = [column.name for column in state.models.columns]
    with gr.Row():
        model = gr.Radio(choices(names), value=names[0], label="Model", min_width=240, elem_id="pairs-model")
        minus = gr.Radio(subtrahends(names), value=NOTHING, label="Compare with", min_width=240, elem_id="pairs-minus")
        measures = [(label, key) for key, label in MEASURES.items()]
        measure = gr.Radio(measures, value="cosine", label="Show", min_width=240, elem_id="pairs-measure")
    output = pairs_map(pairs_value(LIST.splitlines(), first, names[0]) if first else {})

    def draw(text: str, model: str, minus: str, measure: str, progress: gr.Progress = PROGRESS) -> tuple[Any, ...]:
        sentences, answers = all_pairs(state, text, reporter(progress))
        value = pairs_value(sentences, answers, model, minus, measure)
        return value, gr.update(choices=choices(answers)), gr.update(choices=subtrahends(answers))

    switches = [model, minus, measure]
    fields = {validation.LIST: box, "The model": model, "The model subtracted": minus, "The value": measure}
    run = refusing(draw, fields, [output, model, minus])
    submitted, switched = (button.click, box.submit), [switch.input for switch in switches]
    private(submitted, run)
    gr.on(switched, None, [output, *switches], output, js=SWITCH, show_progress="hidden", **HIDDEN)  # in the browser
    table = Result("All pairs of the list", "pairs", ("lines",))
    return Linked(("list", "model", "minus", "value"), run, (*submitted, *switched), results=[table])
