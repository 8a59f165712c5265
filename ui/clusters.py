"""Sentences as points: one aligned map per model, from the demo corpus, graded pairs or pasted lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import gradio as gr
import numpy as np

from cse.progress import Report, silent
from ui import html, validation
from ui.canvas import ModelMap, canvas, canvas_value
from ui.components import heading, submit
from ui.corpora import DEMO
from ui.events import HIDDEN, MAPS, PROGRESS, Newest, reporter
from ui.links import Linked
from ui.models import Column, Failure, divided
from ui.refusals import refusing
from ui.state import AppState

if TYPE_CHECKING:
    from cse.encoder import Encoder

SOURCES = {"demo": "Demo corpus, coloured by topic", "pairs": "Graded pairs, joined", "lines": "Your lines"}
LEAST_PER_TOPIC, MOST_PER_TOPIC, PER_TOPIC = 10, 100, 25
MOST_LINES, MOST_SEED = 500, 2**32 - 1
GRADES = {"0": "0 unrelated", "3": "3 close", "5": "5 the same"}
READING = (
    "t-SNE of the vectors. Every map starts from the first one's picture and is turned onto it, so places can be "
    "compared. Hover over a point, or focus a map and use the arrow keys, to read its sentence."
)
LINES = """The cat sleeps on the sofa.
A kitten naps on the couch.
Dogs need a walk twice a day.
Shares fell sharply on Monday.
The bank raised its interest rates.
Investors are worried about inflation.
Bake the bread for forty minutes.
Add salt and pepper to the soup."""


class Points(NamedTuple):
    """N sentences with a label each; `rows` are their places in the demo corpus, None for other sources."""

    texts: list[str]
    labels: list[str]
    rows: np.ndarray | None = None
    paired: bool = False  # points 2 i and 2 i + 1 belong together


def points_of(state: AppState, source: str, lines: str, per_topic: int) -> Points:
    """The sentences to draw; only what the source needs is read from the other two."""
    match validation.one_of(source, "The source", SOURCES):
        case "demo":
            count = validation.whole(per_topic, "Sentences per topic", LEAST_PER_TOPIC, MOST_PER_TOPIC)
            return demo_points(state, count)
        case "pairs":
            return graded_points()
    texts = validation.lines(lines, 1, MOST_LINES)
    return Points(texts, ["your lines"] * len(texts))


def demo_points(state: AppState, per_topic: int) -> Points:
    """The first sentences of each topic."""
    topics = np.array(state.demo.topics)
    rows = np.concatenate([np.flatnonzero(topics == topic)[:per_topic] for topic in dict.fromkeys(state.demo.topics)])
    return Points([state.demo.sentences[row] for row in rows], [state.demo.topics[row] for row in rows], rows)


def graded_points() -> Points:
    """Both sentences of each graded pair after one another."""
    from cse.data import scored_pairs

    pairs = sorted(scored_pairs(DEMO / "pairs.tsv"), key=lambda pair: pair[0])
    texts = [sentence for _, first, second in pairs for sentence in (first, second)]
    labels = [f"{grade:g}" for grade, *_ in pairs for _ in range(2)]
    return Points(texts, labels, paired=True)


def draw_maps(
    state: AppState, points: Points, seed: int, report: Report = silent
) -> Iterator[dict[str, ModelMap | Failure]]:
    """Each model's map of the points: those done so far, as each is done; maps drawn lately come all at once."""
    from cse.projection import project, trustworthiness

    start = validation.whole(seed, "The seed", 0, MOST_SEED)

    def vectors(column: Column, encoder: Encoder) -> tuple[str, np.ndarray]:
        rows = encoder.encode(points.texts) if points.rows is None else state.demo.vectors(column, encoder)[points.rows]
        return encoder.fingerprint, rows

    total = 2 * len(state.models.columns)
    answers = state.models.apply(vectors, report=lambda done, _, name: report(done, total, f"encoding: {name}"))
    known, failed = divided(answers)
    key = (*((name, fingerprint) for name, (fingerprint, _) in known.items()), *points.texts, start)
    kept = state.maps.get(key)
    if kept is not None or not known:
        yield in_order(state, (kept or {}) | failed)
        return
    report(total // 2, total, f"map: {next(iter(known))}")
    faithful: dict[str, float] = {}
    for done, maps in enumerate(project({name: rows for name, (_, rows) in known.items()}, start), start=1):
        name = list(maps)[-1]
        faithful[name] = trustworthiness(known[name][1], maps[name])
        drawn = {name: ModelMap(xy, faithful[name]) for name, xy in maps.items()}
        if done == len(known):
            state.maps.put(key, drawn)
        yield in_order(state, drawn | failed)


def in_order(state: AppState, answers: dict[str, ModelMap | Failure]) -> dict[str, ModelMap | Failure]:
    """The answers there are, in the order of the page's columns."""
    return {column.name: answers[column.name] for column in state.models.columns if column.name in answers}


def maps_value(points: Points, maps: Mapping[str, ModelMap | Failure]) -> dict[str, Any]:
    """What the canvas shows of maps of the points."""
    names = [GRADES.get(label, label) for label in points.labels] if points.paired else points.labels
    return canvas_value(points.texts, names, maps, joined=points.paired)


def clusters_tab(state: AppState, first: dict[str, ModelMap] | None = None) -> Linked:
    """The tab's content with its first maps, where there are some; what belongs into the address comes back."""
    heading("Sentences on a map")
    with gr.Row(equal_height=True):
        choices = [(label, key) for key, label in SOURCES.items()]
        source = gr.Radio(choices, value="demo", label="Sentences", scale=6, min_width=280)
        per_topic = gr.Slider(
            LEAST_PER_TOPIC, MOST_PER_TOPIC, PER_TOPIC, step=5, label="Per topic", scale=2, min_width=160
        )
        seed = gr.Number(0, label="Seed", precision=0, minimum=0, maximum=MOST_SEED, scale=1, min_width=100)
        button = submit("Draw maps")
    lines = gr.Textbox(LINES, label=f"Your lines (at most {MOST_LINES})", lines=6, max_lines=12, visible=False)
    gr.HTML(html.hint(READING), apply_default_css=False)
    output = canvas(maps_value(demo_points(state, PER_TOPIC), first) if first else None)

    newest, number = Newest(), gr.Number(0, precision=0, visible=False)  # a State would be read when the turn comes

    def map_points(
        source: str,
        lines: str,
        per_topic: int,
        seed: int,
        number: int,
        request: gr.Request,
        progress: gr.Progress = PROGRESS,
    ) -> Iterator[dict[str, Any]]:
        if newest.replaced(request, number):
            return
        points = points_of(state, source, lines, per_topic)
        for maps in draw_maps(state, points, seed, reporter(progress)):
            yield maps_value(points, maps)
            if newest.replaced(request, number):
                return

    run = refusing(map_points, [source, lines, per_topic, seed, number], [output])
    triggers = (button.click, lines.submit)
    asked = gr.on(list(triggers), newest.ask, None, number, queue=False, trigger_mode="multiple", **HIDDEN)
    asked.then(run.fn, list(run.inputs), list(run.outputs), trigger_mode="multiple", **HIDDEN, **MAPS)
    source.change(
        lambda chosen: (gr.update(visible=chosen == "demo"), gr.update(visible=chosen == "lines")),
        source, [per_topic, lines], api_visibility="private", show_progress="hidden",
    )  # fmt: skip
    return Linked(("source", "lines", "per_topic", "seed"), run, triggers, {**HIDDEN, **MAPS})
