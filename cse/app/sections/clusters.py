"""The Clusters tab: sentences of the demo corpus, graded pairs or pasted lines as points on a map per model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gradio as gr
import numpy as np

from cse.app import validation
from cse.app.drawing import html
from cse.app.drawing.canvas import canvas, canvas_value
from cse.app.drawing.components import heading, submit
from cse.app.forms.events import HIDDEN, MAPS, PROGRESS, QUICK, Newest, one_line_errors, reporter
from cse.app.forms.links import Linked
from cse.app.forms.refusals import refusing
from cse.app.models.corpora import DEMO
from cse.app.models.maps import MOST_SEED, ModelMap, Points, draw_maps
from cse.app.models.models import Failure
from cse.app.models.state import AppState
from cse.app.sections.map_link import chosen_row

SOURCES = {"demo": "Demo corpus, coloured by topic", "pairs": "Graded pairs, joined", "lines": "Your lines"}
LEAST_PER_TOPIC, MOST_PER_TOPIC, PER_TOPIC = 10, 100, 25
MOST_LINES = 2000
GRADES = {"0": "0 unrelated", "3": "3 close", "5": "5 the same"}
READING = (
    "Near points are sentences the chosen model finds alike (t-SNE of its vectors). Every map starts from the first "
    "one's picture and is turned onto it: choose another model, and what moves is what the models disagree on."
)
EMPTY = {"hint": "Draw maps shows these sentences."}
LINES = """The cat sleeps on the sofa.
A kitten naps on the couch.
Dogs need a walk twice a day.
Shares fell sharply on Monday.
The bank raised its interest rates.
Investors are worried about inflation.
Bake the bread for forty minutes.
Add salt and pepper to the soup."""


def points_of(state: AppState, source: str, lines: str, per_topic: int, pin: int | None = None) -> Points:
    """Return the sentences to draw; only the values that the source needs are checked. `pin` adds a demo sentence."""
    match validation.one_of(source, "The source", SOURCES):
        case "demo":
            count = validation.whole(per_topic, "Sentences per topic", LEAST_PER_TOPIC, MOST_PER_TOPIC)
            return demo_points(state, count, pin)
        case "pairs":
            return graded_points()
    texts = validation.lines(lines, 1, MOST_LINES)
    return Points(texts, ["your lines"] * len(texts), numbered=True)


def demo_points(state: AppState, per_topic: int, pin: int | None = None) -> Points:
    """Return the first sentences of each topic, and the sentence in row `pin` if there is such a row."""
    topics = np.array(state.demo.topics)
    each = [np.flatnonzero(topics == topic)[:per_topic] for topic in dict.fromkeys(state.demo.topics)]
    wanted = [pin] if pin is not None and pin < len(topics) else []  # another list may have more rows
    rows = np.union1d(np.concatenate(each), wanted).astype(int)  # sorted: the corpus is ordered by topic
    return Points([state.demo.sentences[row] for row in rows], [state.demo.topics[row] for row in rows], rows)


def graded_points() -> Points:
    """Return both sentences of each graded pair, one after the other."""
    from cse.text.sentences import scored_pairs

    pairs = sorted(scored_pairs(DEMO / "pairs.tsv"), key=lambda pair: pair[0])
    texts = [sentence for _, first, second in pairs for sentence in (first, second)]
    labels = [f"{grade:g}" for grade, *_ in pairs for _ in range(2)]
    return Points(texts, labels, paired=True)


def pinned(state: AppState, pin: Any) -> int | None:
    """Parse the pinned sentence, a number or digits: its row in the demo corpus or in another list; None for none.

    Raises FieldError for anything else.
    """
    if pin is None or pin == "":
        return None
    number = int(pin) if isinstance(pin, str) and pin.isdecimal() and len(pin) < 6 else pin
    return validation.whole(number, "The pinned sentence", 0, max(len(state.demo.sentences), MOST_LINES) - 1)


def maps_value(
    points: Points, maps: Mapping[str, ModelMap | Failure], pin: int | None = None, request: int = 0
) -> dict[str, Any]:
    """Return the canvas value of maps of the points; a `pin` that is not among them is ignored."""
    names = [GRADES.get(label, label) for label in points.labels] if points.paired else points.labels
    rows = list(range(len(points.texts))) if points.rows is None else [int(row) for row in points.rows]
    return canvas_value(
        points.texts, names, maps, joined=points.paired, numbered=points.numbered, rows=rows,
        pin=rows.index(pin) if pin in rows else -1, request=request,
    )  # fmt: skip


class Requests:
    """Handlers of the tab: draw maps, pin a sentence, change the source. A newer request replaces an older one."""

    def __init__(self, state: AppState) -> None:
        """Start without requests."""
        self._state, self._newest = state, Newest()

    def ask(self, request: gr.Request) -> int:
        """Return the number of a visitor's new request, before it is queued."""
        return self._newest.ask(request)

    def map_points(
        self,
        source: str,
        lines: str,
        per_topic: int,
        seed: int,
        pin: str,
        number: int,
        request: gr.Request,
        progress: gr.Progress = PROGRESS,
    ) -> Iterator[dict[str, Any]]:
        """Yield the canvas value each time a map is done."""
        if self._newest.replaced(request, number):
            return
        with one_line_errors():  # a pin has no visible field
            row = pinned(self._state, pin)
        points = points_of(self._state, source, lines, per_topic, row)
        maps = draw_maps(self._state, points, seed, reporter(progress))
        for done in self._newest.until_replaced(maps, request, number):
            yield maps_value(points, done, row, number)

    def clear(self, request: gr.Request) -> tuple[dict[str, Any], str, int]:
        """Return no maps, no pin, and a new request that stops the current drawing."""
        return EMPTY, "", self._newest.ask(request)

    def choose(self, event: gr.EventData) -> str:
        """Return the sentence pinned on the canvas; empty for none."""
        with one_line_errors():
            row = pinned(self._state, chosen_row(event))
        return "" if row is None else str(row)

    def bring(self, event: gr.EventData, request: gr.Request) -> tuple[Any, ...]:
        """Show this tab with a sentence of the demo corpus pinned."""
        return gr.Tabs(selected="clusters"), "demo", self.choose(event), self._newest.ask(request)


def clusters_tab(state: AppState, first: dict[str, ModelMap] | None, tabs: gr.Tabs, hook: gr.HTML) -> Linked:
    """Add the tab's content, with the `first` maps if given. Returns its part of the address.

    A sentence chosen through the `hook` (cse/app/sections/map_link.py) is shown here.
    """
    heading("Sentences on a map")
    with gr.Row(equal_height=True):
        choices = [(label, key) for key, label in SOURCES.items()]
        source = gr.Radio(choices, value="demo", label="Sentences", scale=6, min_width=280)
        per_topic = gr.Slider(
            LEAST_PER_TOPIC, MOST_PER_TOPIC, PER_TOPIC, step=5, label="Per topic", scale=2, min_width=160
        )
        seed = gr.Number(0, label="Seed", precision=0, minimum=0, maximum=MOST_SEED, scale=1, min_width=100)
        button = submit("Draw maps")
    lines = gr.Textbox(LINES, label=f"Your lines (at most {MOST_LINES:,})", lines=6, max_lines=12, visible=False)
    gr.HTML(html.hint(READING), apply_default_css=False)
    output = canvas(maps_value(demo_points(state, PER_TOPIC), first) if first else EMPTY)
    pin = gr.Textbox(label="Pinned", visible="hidden")  # for the address; a Number cannot be empty
    number = gr.Number(0, precision=0, visible=False)  # a State would be read only when the queued event starts

    requests, triggers = Requests(state), (button.click, lines.submit)
    fields = {
        "The source": source, validation.LIST: lines, "Sentences per topic": per_topic, "The seed": seed,
        "The pinned sentence": pin, "The request": number,
    }  # fmt: skip
    run = refusing(requests.map_points, fields, [output])
    lane: dict[str, Any] = {"trigger_mode": "multiple", **HIDDEN, **MAPS}
    submitted = gr.on(list(triggers), requests.ask, None, number, trigger_mode="multiple", **QUICK)
    shown = hook.select(requests.bring, None, [tabs, source, pin, number], **QUICK)
    for event in (submitted, shown):
        event.success(run.fn, list(run.inputs), list(run.outputs), **lane)
    output.select(requests.choose, None, pin, **QUICK)
    # In the queue, whose answers come in order: a map that is done already does not come after the cleared canvas.
    source.input(requests.clear, None, [output, pin, number], show_progress="hidden", **HIDDEN)
    source.change(
        lambda chosen: (gr.update(visible=chosen == "demo"), gr.update(visible=chosen == "lines")),
        source, [per_topic, lines], **QUICK,
    )  # fmt: skip
    return Linked(("source", "lines", "per_topic", "seed", "pin"), run, triggers, {**HIDDEN, **MAPS}, (pin.change,))
