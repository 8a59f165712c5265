"""Clusters: maps side by side; beside them groups, near-duplicates, changes between models, and the selection."""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gradio as gr
import numpy as np
import pandas as pd

from cse.analysis.maps import evenly
from cse.app import html, validation
from cse.app.corpus.corpora import DEMO_KEY
from cse.app.events import HIDDEN, LINKS, MAPS, QUICK, SILENT, Linked, Newest, guarded, one_line_errors, refusing
from cse.app.html import colour_of, file_value, result, saved_file, script, settings
from cse.app.models.models import NotYet
from cse.app.models.naming import choices, title
from cse.app.result import by_models, further_columns
from cse.app.results.colourings import as_texts, by_disagreement, by_group, is_column
from cse.app.results.duplicates import LEAST, Duplicates, tables
from cse.app.results.groups import Groups, Neighbours
from cse.app.results.map import OWN_COLUMNS, Map, colourings_of, near_of, pair_of
from cse.app.server.gradio_adapter import current_request, data_of
from cse.app.show import Answer, Shown, page_html, read_first
from cse.app.state import AppState, Session, open_session
from cse.app.top import Top, stem_of
from cse.corpus.output import csv_text

STEPS = 65535  # the largest uint16
MAX_CHARACTERS, MIN_SHOWN = 4_000_000, 200  # of all texts on the page, and of a text
MAX_ROWS = 200  # of the selection on the page
VIEWS = ("Groups", "Near-duplicates", "Changes", "Selection")
NOTHING_SELECTED = html.hint("Draw a lasso on a map, type words, or press a group: the texts are listed here.")
OPENED = "Open the place to draw the maps."
UNDRAWN = "The text that was asked for is not among those drawn."
# Whether an element is seen goes in front of the inputs: what is not seen is computed when it is opened.
SEEN = "(seen, ...given) => [!!document.querySelector('%s')?.offsetParent, ...given]"
# Maps of other models or texts are dim from the press on, and not from when the server comes to it.
WAITS = "() => { document.getElementById('clusters').toggleAttribute('data-waits', true); return []; }"
OF = "corpus => { cse.corpus = corpus; cse.dim?.(); return []; }"
# Read when it is sent, as an event that waits is repeated with its first data.
REJECT = "element.addEventListener('change', event => event.target.matches('[data-reject]') && trigger('input', {}));"
REJECTED = """() => [...document.querySelectorAll('#duplicate-groups [data-reject]:not(:checked)')]
    .map(box => box.dataset.reject).join(',')"""


class Clusters:
    """The handlers of the place: each computes a table of results from the visitor's corpus and models."""

    def __init__(self, state: AppState) -> None:
        self._state, self.newest = state, Newest()

    def session(self, corpus: str, models: list[str], key: str) -> Session:
        """Return the session of a request."""
        return open_session(self._state, corpus, key, models)

    def draw(
        self, groups: int, most: int, seed: int, pin: str, shown: str, colour: str, words: str, only: str, view: str,
        number: int, *shared: Any,
    ) -> Iterator[list[Any]]:  # fmt: skip
        """Yield the maps so far, with what is known of them, each time one is done."""
        request = current_request()
        if request is not None and self.newest.replaced(request, number):
            return
        asked, session = Map.of({"groups": groups, "most": most, "seed": seed}), self.session(*shared)
        mark, begun, frame = mark_of(asked, session), time.monotonic(), pd.DataFrame()
        known = {column.name for column in session.columns}
        names = [name for name in shown.split(",") if name in known]
        if self._state.frames.get(asked.cache_key(session)) is None:  # those of other models are dimmed
            yield [gr.skip(), said("Drawing the maps…", "cse-drawing"), *[gr.skip()] * 4]
        for done, frame in enumerate(asked.frames(session), start=1):
            rest = len(session.columns) - frame["model"].nunique() - len(session.failed) if len(frame) else 0
            left = (time.monotonic() - begun) / done * rest
            status = f"Drawing {rest} more, about {max(1, round(left))} s to go" if rest else ""
            with one_line_errors():  # a pin has no visible field
                value = canvas_value(
                    frame, pinned(pin), names, colour, number, bool(session.waiting), words, only, session.corpus.key,
                    bool(rest), session.corpus.positions[evenly(len(session.corpus.texts), most)],
                )  # fmt: skip
            notes = (*session.notes, *([UNDRAWN] if pin and value.get("pin") == -1 else []))
            answer = Answer(asked, frame, session.models, session.failed, session.waiting, session.reading, notes)
            # What is half drawn is drawn on when the same models are chosen again.
            yield [value, said(status), page_html(answer), *panels(frame, shown), mark[:1] if rest else mark]
            if rest and request is not None and self.newest.replaced(request, number):
                return

    def open(self, seen: bool, drawn: tuple[str, ...], *values: Any) -> Iterator[list[Any]]:
        """Draw the maps where they are seen and show something else than what is chosen."""
        groups, most, seed, *_, number, corpus, models, key = values
        asked, session = Map(groups=groups, most=most, seed=seed), self.session(corpus, models, key)
        mark = mark_of(asked, session)
        if seen and drawn != mark:
            if drawn[:1] != mark[:1]:
                hint = f"The maps of {session.name_of(session.corpus)} are being drawn."
                yield [{"hint": hint, "request": number}, "", "", "", "", ()]
            yield from self.draw(*values)
        else:
            yield [gr.skip()] * 6

    def frame(self, groups: int, most: int, seed: int, *shared: Any) -> pd.DataFrame:
        """Return the table of the maps that are shown, which is kept."""
        return Map.of({"groups": groups, "most": most, "seed": seed}).frame(self.session(*shared))

    def compare(self, shown: str, *values: Any) -> list[str]:
        """Return the groups of the first map and the changes between the first two."""
        return panels(self.frame(*values), shown)

    def select(
        self, groups: int, most: int, seed: int, corpus: str, models: list[str], key: str, event: gr.EventData
    ) -> tuple[str, list[int]]:
        """Return the table of the selected points as HTML, and the points."""
        sent = data_of(event).get("points")
        if not sent:
            return NOTHING_SELECTED, []
        frame = self.frame(groups, most, seed, corpus, models, key)
        points = selected_rows(sent, int(frame["position"].max()) + 1)
        return selection_html(frame, points), points

    def save(self, points: list[int], *values: Any) -> dict[str, Any]:
        """Return the selected rows as a CSV file. Raises ValueError without any."""
        if not points:
            raise ValueError("No texts are selected: draw a lasso, type words, or press a group.")
        table = selection(self.frame(*values), points)
        return file_value("selection.csv", "text/csv", csv_text(list(table.columns), table.itertuples(index=False)))

    def near(self, seen: bool, placed: tuple[str, ...], nines: float, model: str, *rest: Any) -> list[Any]:
        """Return the numbers, the groups, the slider, the choice of models, the rejected groups, and the texts and
        model that it was `placed` for; all as they are where not seen. For others the slider begins at the advised
        place, and no group is rejected.
        """
        if not seen:
            return [gr.skip()] * 6
        try:
            session, asked, frame = self._near(nines if placed else 0.0, model, *rest)
        except NotYet as error:  # its maps come with its vectors, and ask again
            return [html.hint(f"{error} The near-duplicates follow."), "", gr.skip(), gr.skip(), "", ()]
        mark, (keep, _, *shared) = frame.attrs["searched_by"], rest
        if others := placed not in ((), mark):
            session, asked, frame = self._near(0.0, model, keep, "", *shared)
        groups = html.hint("No near-duplicates at this strictness; move the slider towards loose.")
        if len(frame):
            groups = html.drawn("duplicates", "duplicates", **asked.view(frame))
        names = choices(column.name for column in session.columns)
        # An answer that is late leaves what a visitor has moved or chosen since.
        begun = {"value": frame.attrs["model"]} if placed != mark else {}
        slider = frame.attrs["advised"] if placed != mark else gr.skip()
        rejected = "" if others else gr.skip()
        return [html.verdict(asked.says(frame)), groups, slider, gr.update(choices=names, **begun), rejected, mark]

    def count(self, *values: Any) -> str:
        """Return the numbers after a group was kept or rejected."""
        _, asked, frame = self._near(*values)
        return html.verdict(asked.says(frame))

    def table(self, name: str) -> Callable[..., dict[str, Any]]:
        """Return the handler that saves a table of near-duplicates."""

        def made(*values: Any) -> dict[str, Any]:
            session, _, frame = self._near(*values)
            return file_value(
                f"{stem_of(session.corpus.label)}-{name}", "text/csv", csv_text(*tables(frame, session)[name])
            )

        return guarded(made)

    def _near(
        self, nines: float, model: str, keep: str, rejected: str, *shared: Any
    ) -> tuple[Session, Duplicates, pd.DataFrame]:
        session = self.session(*shared)
        known = model if model in [column.name for column in session.columns] else ""
        asked = Duplicates.of({"model": known, "nines": nines, "keep": keep, "rejected": rejected})
        return session, asked, asked.frame(session)


def clusters_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. Returns its results."""
    place, first, asks, start = Clusters(state), first_maps(state), Map.asks(), Map()
    opened = panels(first.frame, "") if first else ["", ""]
    shared = {"The corpus": top.corpus, "The models": top.models, "The key": top.key}
    drawn = gr.State(mark_of(start, open_session(state)) if first else ())
    with gr.Row(elem_id="clusters"):
        with gr.Column(scale=7, min_width=320):
            canvas = gr.HTML(
                canvas_value(first.frame) if first else {"hint": OPENED}, html_template='<div class="cse-maps"></div>',
                js_on_load=script("map", "gestures"), elem_id="maps", apply_default_css=False,
                elem_classes="cse-result",
            )  # fmt: skip
            status = gr.HTML("", apply_default_css=False, elem_id="map-status")
            below = result("map", page_html(first) if first else "")
            with settings("Groups, points, seed"), gr.Row():
                groups = gr.Slider(2, asks["groups"].high, start.groups, step=1, label="Groups", min_width=160)
                most, seed = (
                    gr.Number(value, label=ask.label, precision=0, minimum=ask.low, maximum=ask.high, min_width=100)
                    for ask, value in ((asks["most"], start.most), (asks["seed"], start.seed))
                )
        with gr.Column(scale=4, min_width=300, elem_id="clusters-beside"):
            gr.HTML("", html_template='<div class="cse-pinned"></div>', apply_default_css=False, elem_id="pinned")
            view = gr.Radio(list(VIEWS), value="Groups", show_label=False, label="Beside the maps", container=False,
                            elem_id="clusters-views")  # fmt: skip
            with gr.Column(elem_classes="cse-view", elem_id="view-groups"):
                listed = result("groups", opened[0])
            with gr.Column(elem_classes="cse-view", elem_id="view-near"):
                near, tables_saved = near_part(place, (view, drawn), shared)
            with gr.Column(elem_classes="cse-view", elem_id="view-changes"):
                changes = result("neighbours", opened[1])
            with gr.Column(elem_classes="cse-view", elem_id="view-selection"):
                table = result("selection", NOTHING_SELECTED)
                save = gr.Button("Save as CSV", size="sm", elem_classes="cse-copy")
            file = saved_file()
    # Without a value Gradio sends None until it has drawn them.
    names = ("Pinned", "Maps", "Colour", "Words", "Entry")
    pin, shown, colour, words, only = (gr.Textbox("", label=name, visible="hidden") for name in names)
    number, seen = gr.Number(0, precision=0, visible="hidden"), gr.Checkbox(True, visible="hidden")
    points = gr.State([])

    values = {asks["groups"].name: groups, asks["most"].name: most, asks["seed"].name: seed}
    view_of = {"The pinned sentence": pin, "The maps": shown, "The colour": colour, "The words": words,
               "The entry": only, "The view": view}  # fmt: skip
    outputs = [canvas, status, below, listed, changes, drawn]
    run = refusing(place.draw, {**values, **view_of, "The request": number, **shared}, outputs)
    lane: dict[str, Any] = {"trigger_mode": "multiple", **SILENT, **MAPS}
    hidden: dict[str, Any] = {**lane, "trigger_mode": "always_last"}
    triggers = [groups.change, most.submit, seed.submit, most.blur, seed.blur]  # keys release no slider
    asked = gr.on(triggers, place.newest.ask, None, number, trigger_mode="multiple", **QUICK)
    asked.success(*run, **lane)

    def renew(event: Any, js: str | None = None) -> Any:
        """Draw the maps for the last choice, which ends the drawing for an older one."""
        asked = event(place.newest.ask, None, number, js=js, trigger_mode="multiple", **QUICK)
        return asked.success(guarded(place.open), [seen, drawn, *run.inputs], outputs, js=SEEN % "#maps", **hidden)

    renew(top.tab.select)
    renew(top.changed.change, WAITS).then(None, top.corpus, None, js=OF, **HIDDEN)
    gr.on([top.tab.select, top.corpus.change], None, top.corpus, None, js=OF, **HIDDEN)
    kept = [*values.values(), *shared.values()]
    canvas.select(None, None, [pin, shown, colour, words, only], js="() => cse.looks()", **HIDDEN)
    shown.change(guarded(place.compare), [shown, *kept], [listed, changes], **hidden)
    # Each selection is answered: Gradio would repeat a waiting one with the points of the one before.
    told = {"trigger_mode": "multiple", "show_progress_on": table, **HIDDEN, **MAPS}
    canvas.submit(guarded(place.select), kept, [table, points], **told)
    save.click(guarded(place.save), [points, *kept], file, **HIDDEN)
    for name, button in tables_saved.items():
        button.click(place.table(name), near, file, **HIDDEN)
    quiet = [field.change for field in (groups, pin, shown, colour, words, only)]
    linked = Linked(("groups", "most", "seed", "pin", "maps", "colour", "words", "only", "view"), run, triggers[1:3],
                    {"show_progress_on": below, **HIDDEN, **MAPS}, [*quiet, view.input])  # fmt: skip
    asked_for = {"groups": groups, "most": most, "seed": seed, "corpus": top.corpus, "models": top.models}
    looks = {"maps": shown, "colour": colour, "points": points, "sought": words, "entry": only}
    return [Shown(Map, {**asked_for, "key": top.key, **looks}, linked)]


def mark_of(asked: Map, session: Session) -> tuple[str, ...]:
    """Return what tells the drawn maps from others, that of the corpus first; Gradio compares values of this kind."""
    return tuple(map(repr, asked.cache_key(session)))


def near_part(place: Clusters, looked: Sequence[Any], shared: dict[str, Any]) -> tuple[list[Any], dict[str, gr.Button]]:
    """Add the near-duplicates, which are searched when they are `looked` at, and again when a field changes."""
    asks = Duplicates.asks()
    with gr.Row():
        model = gr.Dropdown([], label="Model", min_width=130)
        keep = gr.Dropdown(list(asks["keep"].choices), value="first", label=asks["keep"].label, min_width=130)
    ask = asks["nines"]
    nines = gr.Slider(LEAST, ask.high, LEAST, step=ask.step, label=ask.label, elem_id="strictness")
    numbers, rejected = result("duplicate-numbers", ""), gr.Textbox("", visible="hidden")
    with gr.Row():
        unique = gr.Button("Save the texts kept", size="sm", min_width=120)
        groups = gr.Button("Save the groups", size="sm", min_width=120)
    listed, placed, seen = result("duplicate-groups", "", js=REJECT), gr.State(()), gr.Checkbox(True, visible="hidden")
    fields = {
        "The strictness": nines, "The model": model, "The text to keep": keep, "The rejected groups": rejected, **shared
    }  # fmt: skip
    outputs = [numbers, listed, nines, model, rejected, placed]
    run = refusing(place.near, {"Seen": seen, "Placed": placed, **fields}, outputs)
    lane: dict[str, Any] = {"trigger_mode": "always_last", "show_progress_on": numbers, **HIDDEN, **LINKS}
    triggers = [*(field.change for field in looked), nines.change, model.input, keep.input]
    gr.on(triggers, *run, js=SEEN % "#strictness", **lane)
    listed.input(None, None, rejected, js=REJECTED, **HIDDEN)
    rejected.change(guarded(place.count), [*fields.values()], numbers, **lane)
    return [*fields.values()], {"unique.csv": unique, "groups.csv": groups}


def first_maps(state: AppState) -> Answer | None:
    """Return the shipped maps, which are kept as if they were computed; None if the page has to draw them."""
    first = read_first(state, Map)
    if first is not None:
        first.frame["near"] = [positions.tolist() for positions in first.frame["near"]]
        Map().keep(open_session(state), first.frame, first.models, first.notes)
    return first


def panels(frame: pd.DataFrame, shown: str) -> list[str]:
    """Return the groups of the first map, and the changes between the first two, as HTML."""
    if frame.empty:
        return ["", ""]
    names = list(frame["model"].unique())
    first, second = pair_of(names, *dict.fromkeys([name for name in shown.split(",") if name in names][:2]))
    results: list[Groups | Neighbours] = [Groups(first), *([Neighbours(first, second)] if second else [])]
    pages = [page_html(Answer(asked, asked.of_map(frame), {})) for asked in results]
    return [*pages, ""][:2]


def said(text: str, kind: str = "") -> str:
    """Return a line that screen readers announce; one of the `kind` cse-drawing dims the maps of other models."""
    return f'<p class="cse-note {kind}" role="status">{html.escape(text)}</p>' if text else ""


def pinned(pin: Any) -> int | None:
    """Parse the pinned text, a number or digits: its position in the corpus; None for none. Raises FieldError."""
    if pin is None or pin == "":
        return None
    number = int(pin) if isinstance(pin, str) and pin.isdecimal() and len(pin) < 12 else pin
    return validation.whole(number, "The pinned sentence", 0, 10**11)


def selected_rows(value: Any, count: int) -> list[int]:
    """Return the distinct positions of 1 to `count` points that a client sent, ascending. Raises FieldError."""
    field = "The selection"
    if not isinstance(value, list) or not 1 <= len(value) <= count:
        raise validation.FieldError(field, f"{field} must be a list of 1 to {count:,} points.")
    return sorted({validation.whole(point, "A point", 0, count - 1) for point in value})


def selection(frame: pd.DataFrame, points: Sequence[int]) -> pd.DataFrame:
    """Return the rows at these positions: row, text, label, the corpus's columns, and the group in each model."""
    models = by_models(frame)
    one, further = next(iter(models.values())), further_columns(frame, OWN_COLUMNS)
    labelled = one["label"].notna().any() and not is_column(one["label"], (as_texts(one[name]) for name in further))
    kept = ["row", "text", *(["label"] if labelled else []), *further]
    groups = {f"group of {title(name)}": rows["name"].iloc[list(points)].to_numpy() for name, rows in models.items()}
    return one[kept].iloc[list(points)].assign(**groups).reset_index(drop=True)


def selection_html(frame: pd.DataFrame, points: Sequence[int]) -> str:
    """Return the selected rows as a table, under the words that mark them among all texts and their labels."""
    from cse.analysis.topics import group_names

    table, one = selection(frame, points), next(iter(by_models(frame).values()))
    texts, given = one["text"].tolist(), one["label"].iloc[list(points)]
    chosen = np.isin(np.arange(len(texts)), points).astype(int)
    words = group_names(texts, chosen, 8).words[1] if len(points) < len(texts) else []
    counts = Counter(label for label in given if label)
    labels = counts.most_common(5)
    rows = list(zip(points, table.head(MAX_ROWS).itertuples(index=False, name=None), strict=False))
    return html.drawn(
        "map", "selection", count=len(points), words=words, labels=labels,
        others=counts.total() - sum(size for _, size in labels), unlabelled=len(points) - counts.total(),
        columns=list(table.columns), rows=rows,
    )  # fmt: skip


def canvas_value(
    frame: pd.DataFrame,
    pin: int | None = None,
    shown: Sequence[str] = (),
    colour: str = "",
    request: int = 0,
    waits: bool = False,
    words: str = "",
    only: str = "",
    corpus: str = DEMO_KEY,
    drawing: bool = False,
    positions: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the value of the maps' component, whose scripts treat texts and names as plain text, never as HTML.

    `shown` are the models of the maps, also of those that are not drawn yet, by default a pair; `pin` is the text to
    pin at first, and `words` and `only`, the title of an entry, filter the texts. Without a map it says whether one
    `waits` for vectors. `corpus` is the key of that of the maps; it is still `drawing` others of them. `positions` are
    those of the points in the corpus, as the pin has them, by default 0, 1, 2, ….
    """
    if frame.empty:
        hint = "The models are reading your texts; their maps follow." if waits else "No map; the lines below say why."
        return {"hint": hint, "request": request}
    models = by_models(frame)
    one = next(iter(models.values()))
    longest = max(MIN_SHOWN, MAX_CHARACTERS // len(one))
    positions = np.arange(len(one)) if positions is None else positions
    return {
        "texts": [text if len(text) <= longest else f"{text[:longest]}…" for text in one["text"]],
        "rows": one["row"].tolist(), "positions": positions.tolist(),
        "columns": [{**colouring.drawn(), "of": packed(colouring.of, "<u1")} for colouring in colourings_of(frame)],
        "groups": by_group(frame).drawn(), "disagreement": by_disagreement(near_of(one).shape[1]).drawn(),
        "maps": [
            {
                "name": name, "title": title(name), "colour": colour_of(name),
                "xy": packed((np.clip(rows[["x", "y"]].to_numpy(), 0, 1) * STEPS).round(), "<u2"),
                "near": packed(near_of(rows), "<u2"), "of": packed(rows["group"].to_numpy() - 1, "<u2"),
            }
            for name, rows in models.items()
        ],
        "shown": list(shown) or [name for name in pair_of(list(models)) if name], "picked": bool(shown),
        "colour": colour, "words": words, "only": only, "corpus": corpus, "drawing": drawing,
        "pin": next(iter(np.flatnonzero(positions == pin).tolist()), -1), "request": request,
    }  # fmt: skip


def packed(numbers: np.ndarray, kind: str) -> str:
    """Encode whole numbers as base64 of the NumPy type `kind`, which the page reads 50 times faster than lists."""
    return base64.b64encode(numbers.astype(kind).tobytes()).decode()
