"""The Clusters tab: texts of the chosen corpus or graded pairs as points on a map per model, with their groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import gradio as gr
import numpy as np

from cse.app.corpus.bar import CorpusBar
from cse.app.corpus.chosen import chosen_corpus
from cse.app.drawing.canvas import canvas
from cse.app.drawing.components import file_value, script, submit
from cse.app.forms.events import HIDDEN, MAPS, PRIVATE, PROGRESS, QUICK, Newest, guarded, one_line_errors, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.sections.map_link import chosen_row
from cse.app.sections.map_points import LEAST_POINTS, MOST_POINTS, SOURCES, demo_points, maps_value, pinned, points_of
from cse.app.state.app_state import AppState
from cse.app.state.corpora import DEMO_KEY
from cse.app.state.groups import GROUPS
from cse.app.state.groups import LEAST as FEWEST_GROUPS
from cse.app.state.groups import MOST as MOST_GROUPS
from cse.app.state.maps import Points, draw_maps
from cse.app.state.model_map import ModelMap
from cse.app.state.selections import describe, point_rows, table
from cse.corpus.output import csv_text
from cse.methods.settings import MAX_SEED

EMPTY = {"hint": "Press Draw maps to place these texts: near points are texts that the chosen model finds alike."}
CHANGED = "These texts have changed since the maps were drawn; press Draw maps."


class Drawn(NamedTuple):
    """The points that a visitor's maps show; `digest` is the checksum of the texts."""

    source: str = "corpus"
    corpus: str = DEMO_KEY
    key: str = ""
    most: int = MOST_POINTS
    groups: int = GROUPS
    pin: int | None = None
    digest: str = ""


class Requests:
    """Handlers of the tab: draw maps, pin a text, change the texts. A newer request replaces an older one."""

    def __init__(self, state: AppState) -> None:
        """Start without requests."""
        self._state, self._newest = state, Newest()

    def ask(self, request: gr.Request) -> int:
        """Return the number of a visitor's new request, before it is queued."""
        return self._newest.ask(request)

    def map_points(
        self,
        source: str,
        most: int,
        groups: int,
        seed: int,
        pin: str,
        number: int,
        corpus: str,
        key: str,
        request: gr.Request,
        progress: gr.Progress = PROGRESS,
    ) -> Iterator[list[Any]]:
        """Yield the canvas value and the points that it shows each time a map is done."""
        if self._newest.replaced(request, number):
            return
        with one_line_errors():  # a pin has no visible field
            row = pinned(pin)
        points = points_of(self._state, source, "", most, corpus, key, row)
        if source == "corpus":  # models that still encode the texts follow (`map_more`)
            ready = chosen_corpus(self._state, corpus, key).answering(points.columns or self._state.models.columns)
            points = points._replace(columns=ready)
        drawn = Drawn(source, corpus, key, most, groups, row, points.digest)
        maps = draw_maps(self._state, points, seed, groups, reporter(progress))
        for done in self._newest.until_replaced(maps, request, number):
            yield [maps_value(points, done, row, number), drawn]

    def map_more(
        self, source: str, seed: int, pin: str, corpus: str, key: str, drawn: Drawn, request: gr.Request,
        progress: gr.Progress = PROGRESS,
    ) -> Iterator[list[Any]]:  # fmt: skip
        """Draw the maps of further models, as they have encoded the texts whose maps are shown already."""
        if drawn.digest and (source, corpus, key) == (drawn.source, drawn.corpus, drawn.key):
            points = points_of(self._state, source, "", drawn.most, corpus, key, drawn.pin)
            if points.digest == drawn.digest:
                given = source, drawn.most, drawn.groups, seed, pin, self.ask(request), corpus, key
                yield from self.map_points(*given, request, progress)

    def clear(self, request: gr.Request) -> tuple[dict[str, Any], str, int]:
        """Return no maps, no pin, and a new request that stops the current drawing."""
        number = self._newest.ask(request)
        return {**EMPTY, "request": number}, "", number

    def choose(self, event: gr.EventData) -> str:
        """Return the row pinned on the canvas; empty for none."""
        with one_line_errors():
            row = pinned(chosen_row(event))
        return "" if row is None else str(row)

    def bring(self, event: gr.EventData, request: gr.Request) -> tuple[Any, ...]:
        """Show this tab with a sentence of the corpus pinned."""
        return gr.Tabs(selected="clusters"), "corpus", self.choose(event), self._newest.ask(request)

    def describe(self, drawn: Drawn, event: gr.EventData) -> dict[str, Any]:
        """Return the description of the points that are selected on the canvas."""
        points, rows, sent = self._selected(drawn, event)
        found = describe(self._state, points, rows, str(sent.get("model")), drawn.groups)
        return {"selection": found._asdict(), "answers": sent.get("number")}

    def save(self, drawn: Drawn, event: gr.EventData) -> dict[str, Any]:
        """Return the selected points as a CSV file."""
        points, rows, _ = self._selected(drawn, event)
        return file_value("selection.csv", "text/csv", csv_text(*table(self._state, points, rows, drawn.groups)))

    def _selected(self, drawn: Drawn, event: gr.EventData) -> tuple[Points, np.ndarray, dict[str, Any]]:
        points = points_of(self._state, drawn.source, "", drawn.most, drawn.corpus, drawn.key, drawn.pin)
        if drawn.digest and drawn.digest != points.digest:
            raise ValueError(CHANGED)
        sent = event._data if isinstance(event._data, dict) else {}
        return points, point_rows(sent.get("points"), len(points.texts)), sent


def clusters_tab(
    state: AppState, first: dict[str, ModelMap] | None, tabs: gr.Tabs, hook: gr.HTML, bar: CorpusBar
) -> Linked:
    """Add the tab's content, with the `first` maps if given. Returns its part of the address.

    A sentence chosen through the `hook` (cse/app/sections/map_link.py) is shown here.
    """
    with gr.Row():
        with gr.Accordion("Texts and settings", open=False), gr.Row():
            choices = [(label, key) for key, label in SOURCES.items()]
            source = gr.Radio(choices, value="corpus", label="Texts", scale=4, min_width=280)
            most = number_field(MOST_POINTS, "Points at most", LEAST_POINTS, MOST_POINTS)
            groups = number_field(GROUPS, "Groups", FEWEST_GROUPS, MOST_GROUPS)
            seed = number_field(0, "Seed", 0, MAX_SEED)
        button = submit("Draw maps")
    output = canvas(maps_value(demo_points(state), first) if first else EMPTY)
    pin = gr.Textbox(label="Pinned", visible="hidden")  # for the address; a Number cannot be empty
    number = gr.Number(0, precision=0, visible=False)  # a State would be read only when the queued event starts
    drawn = gr.State(Drawn())
    answer = gr.HTML(
        {}, html_template="", js_on_load=script("save", "map_answer"), visible="hidden", apply_default_css=False
    )

    requests, triggers = Requests(state), (button.click, groups.submit, most.submit, seed.submit)
    fields = {
        "The source": source, "The most points": most, "The number of groups": groups, "The seed": seed,
        "The pinned sentence": pin, "The request": number, "The corpus": bar.corpus, "The key": bar.key,
    }  # fmt: skip
    run = refusing(requests.map_points, fields, [output, drawn])
    lane: dict[str, Any] = {"trigger_mode": "multiple", **HIDDEN, **MAPS}
    submitted = gr.on(list(triggers), requests.ask, None, number, trigger_mode="multiple", **QUICK)
    shown = hook.select(requests.bring, None, [tabs, source, pin, number], **QUICK)
    for event in (submitted, shown):
        event.success(run.fn, list(run.inputs), list(run.outputs), **lane)
    kept = ("The source", "The seed", "The pinned sentence", "The corpus", "The key")  # the rest is in `drawn`
    more = refusing(
        requests.map_more, {**{name: fields[name] for name in kept}, "The drawn maps": drawn}, [output, drawn]
    )
    bar.changed.change(more.fn, list(more.inputs), list(more.outputs), show_progress="hidden", **HIDDEN, **MAPS)
    output.select(requests.choose, None, pin, **QUICK)
    for happened, handler in ((output.submit, requests.describe), (output.download, requests.save)):
        happened(guarded(handler), drawn, answer, trigger_mode="always_last", show_progress="hidden", **PRIVATE)
    # In the queue, whose answers come in order: a map that is done already does not come after the cleared canvas.
    # A dropdown's `input` comes, too, when it loses the focus unchanged.
    for changed in (source.input, bar.corpus.select, *(step.success for step in bar.steps)):
        changed(requests.clear, None, [output, pin, number], show_progress="hidden", **HIDDEN)
    given = ("source", "most", "groups", "seed", "pin", "number", "corpus", "key")
    return Linked(
        ("source", "most", "groups", "seed", "pin"), run, triggers, {**HIDDEN, **MAPS}, (pin.change,),
        results=[Result("The maps", "map", given)],
    )  # fmt: skip


def number_field(value: int, label: str, least: int, most: int) -> gr.Number:
    """Return a field for a whole number."""
    return gr.Number(value, label=label, precision=0, minimum=least, maximum=most, min_width=100)
