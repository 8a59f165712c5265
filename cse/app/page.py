"""The page: the row of the corpus and the models, the places and the endpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from cse.app import results
from cse.app.charts import FONTS
from cse.app.events import CHANGES, HIDDEN, LANES, SILENT, Shared, emptied, guarded, link
from cse.app.files import share_forms
from cse.app.html import STATIC, script, sheet, terms
from cse.app.lessons import lesson_panel, whole
from cse.app.places.clusters import clusters_place
from cse.app.places.your_model import your_model_place
from cse.app.programs import add_programs
from cse.app.server.access import Names, Rights
from cse.app.server.bodies import AGE, Uploads
from cse.app.server.gate import Gate
from cse.app.server.gradio_adapter import set_up_queue
from cse.app.show import Answer, Shown, answer, endpoint, examples_of, read_first, section
from cse.app.state import AppState, choice_mark, chosen_columns, chosen_corpus, open_session
from cse.app.top import Top, model_choices, top_row
from cse.app.training.request import OWN
from cse.app.training.trainings import Trainings
from cse.app.validation import MAX_FILE_BYTES

TITLE = "Sentence embeddings, side by side"
SKIP = '<a class="cse-skip" href="#tabs">Skip to the tabs</a>'
MONO = ["ui-monospace", "Menlo", "Consolas", "monospace"]
MAX_WAITING = 32
MOST_SESSIONS = 200  # Gradio keeps the fields and last answers of each: 0.4 MB or more
CLEARING = (600, AGE)  # seconds between clean-ups, and age of deleted files
COMPRESSION = 1  # of 1 to 9: 1.1 MB of the first page become 0.25 MB in 45 ms


def folded(state: AppState, kind: Any, top: Top, shared: Shown | None = None, first: Answer | None = None) -> Shown:
    """Add a result in a fold of its own, with the shipped first answer unless another is given."""
    first = first or read_first(state, kind)
    with gr.Accordion(kind.title, open=False, elem_id=f"fold-{kind.key}", elem_classes="cse-folded") as fold:
        return replace(section(state, kind, top, first, shared=shared, headed=False), fold=fold)


def similarity_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. Returns its results."""
    pair = section(state, results.Similarity, top, read_first(state, results.Similarity), headed=False)
    words = folded(state, results.Words, top, pair)
    kinds = (results.Pairs, results.Changes, results.Disagreements)
    return [pair, words, *(folded(state, kind, top) for kind in kinds)]


def search_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. Returns its results."""
    return [section(state, results.Search, top, read_first(state, results.Search), headed=False)]


def tokens_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place, whose results read one sentence. Returns them."""
    tokens = section(state, results.Tokens, top, read_first(state, results.Tokens), headed=False)
    template = folded(state, results.Template, top, tokens)
    with gr.Accordion("Inside: attention, prefix and prototypes", open=False, elem_id="inside") as fold:
        kinds = (results.Attention, results.Prefix, results.Prototypes)
        parts = [section(state, kind, top, read_first(state, kind), shared=tokens) for kind in kinds]
        inside = [replace(part, fold=fold) for part in parts]
    return [tokens, template, *inside]


def results_place(state: AppState, top: Top) -> list[Shown]:
    """Add the place. The shipped scores are there at once, as they need no model. Returns its results."""
    session = open_session(state)
    scores = section(state, results.Scores, top, answer(results.Scores(), session))
    labels = section(state, results.Labels, top)
    return [scores, labels, folded(state, results.Ledger, top, first=answer(results.Ledger(), session))]


PLACES: dict[str, tuple[str, Callable[[AppState, Top], list[Shown]]]] = {
    "similarity": ("Similarity", similarity_place),
    "search": ("Search", search_place),
    "tokens": ("Tokens", tokens_place),
    "clusters": ("Clusters", clusters_place),
    "your-model": ("Your model", your_model_place),
    "results": ("Results", results_place),
}


class Page(gr.Blocks):
    """The app's blocks, with bounds on their queue."""

    def queue(self, *given: Any, **named: Any) -> gr.Blocks:
        """Set the queue up, as Gradio does once for new blocks; a further call would make all its HTTP routes again."""
        super().queue(*given, **{"api_open": False, "max_size": MAX_WAITING, **named})
        set_up_queue(self)
        return self


def page(state: AppState, trainings: Trainings | None = None) -> Page:
    """Return the app with its queue; `launch_options` are for its `launch`. Other results are computed on opening."""
    state = replace(state, trainings=trainings) if trainings else state
    with Page(title=TITLE, analytics_enabled=False, delete_cache=CLEARING) as blocks:
        gr.HTML(SKIP, apply_default_css=False, elem_id="skip")
        key = gr.Textbox("", visible=False)
        opened = blocks.load(None, None, key, js="() => cse.opened()", **SILENT)
        top = top_row(state, key, opened)
        places: dict[str, tuple[gr.Tab, list[Shown]]] = {}
        with gr.Tabs(overflow_behavior="wrap", elem_id="tabs") as tabs:  # no menu hides tabs on a narrow screen
            for name, (heading, add) in PLACES.items():
                with gr.Tab(heading, id=name, elem_id=f"place-{name}") as tab:
                    places[name] = tab, add(state, replace(top, tab=tab))
        with top.about_models:
            models = section(state, results.Models, top, read_first(state, results.Models), headed=False)
        for kind in results.RESULTS:  # each also a tool of the Model Context Protocol
            if kind.public:
                gr.api(guarded(endpoint(state, kind)), api_name=kind.key, **LANES[kind.lane])
        add_programs(state)
        gr.HTML("".join(sheet(name, *parts) for name, parts in terms().items()), apply_default_css=False)
        lesson_panel(state)
        linked = {name: (tab, [each.linked for each in shown]) for name, (tab, shown) in places.items()}
        fields = {"corpus": top.corpus, "models": top.models}
        named = Shared(fields, top.steps, lambda: [name for _, name in model_choices(state.models.columns)])
        folds = {
            f"{place} {name}": str(part.fold.elem_id)
            for place, (_, shown) in places.items() for part in shown if part.fold for name in part.linked.names
        }  # fmt: skip
        link(opened, tabs, linked, named, whole, folds)
        tabs_of = {name: tab for name, (tab, _) in places.items()}
        current = open_places(state, top, tabs_of, share_forms(state, top.share, places))
        for name, (_, shown) in places.items():
            in_folds = open_folds(current[name], shown)
            for part in shown:
                keep_current(state, part, top, in_folds.get(part.fold, current[name]))
        keep_current(state, models, top, top.changed)
        for part in (models, *(part for _, shown in places.values() for part in shown)):
            if part.unanswered and not part.fold:  # no first answer is shipped for the page's models
                run = part.linked.run
                blocks.load(*run, **{**HIDDEN, **part.linked.lane})
    return blocks


def open_places(
    state: AppState, top: Top, tabs: Mapping[str, gr.Tab], forms: Mapping[str, gr.Column]
) -> dict[str, gr.State]:
    """Follow which place is open, and show its form of the panel Share.

    Returns for each place the mark of the choice with which it was last open: it changes while the place is open, else
    on opening. That is one event a tab, as each event costs the page some hundredths of a second.
    """
    current = {name: gr.State(top.changed.value) for name in tabs}

    def follow(mark: str, place: str) -> list[Any]:
        return [mark if name == place else gr.skip() for name in current]

    def opening(place: str, *choice: Any) -> list[Any]:
        return [place, choice_mark(state, *choice), *(gr.update(visible=name == place) for name in forms)]

    top.changed.change(follow, [top.changed, top.place], list(current.values()), **SILENT, **CHANGES)
    for name, tab in tabs.items():
        outputs = [top.place, current[name], *forms.values()]
        tab.select(partial(opening, name), [top.corpus, top.models, top.key], outputs, **SILENT, **CHANGES)
    return current


def open_folds(current: gr.State, shown: Sequence[Shown]) -> dict[Any, gr.State]:
    """Return for each fold of a place the mark of the choice with which it was last open."""
    unanswered = {part.fold for part in shown if part.unanswered}
    marks: dict[Any, gr.State] = {
        part.fold: gr.State("" if part.fold in unanswered else current.value) for part in shown if part.fold
    }
    opened = {fold: gr.State(False) for fold in marks}

    def follow(mark: str, *opened: bool) -> list[Any]:
        return [mark if each else gr.skip() for each in opened]

    if marks:
        current.change(follow, [current, *opened.values()], list(marks.values()), **SILENT, **CHANGES)
    for fold, mark in marks.items():
        fold.expand(lambda known: (True, known), current, [opened[fold], mark], **SILENT, **CHANGES)
        fold.collapse(lambda: False, None, opened[fold], **SILENT, **CHANGES)
    return marks


def keep_current(state: AppState, shown: Shown, top: Top, current: gr.State) -> None:
    """Answer anew when the mark of its place changes, unless it has answered for that: the address may have asked it.

    An answer for another choice may come late, as of a lesson that was closed meanwhile: it is answered anew as well.
    Of two that were under way at once both leave the mark of no choice (`refusing`), so that this looks at them again.
    The answer of a part that waits for its button goes, and one about another corpus, where models have to read the new
    texts first. A part that answers step by step, the maps, follows by itself, and one that asks neither corpus nor
    models, an adaptation, stays.
    An example that nobody has edited becomes one of the corpus.
    """
    run, lane, kind = shown.linked.run, shown.linked.lane, shown.kind
    if shown.answered is None:
        return
    own = run.inputs[: kind.corpus_examples]
    waiting = [*map(emptied, run.outputs[:-2]), gr.skip(), gr.skip()]  # the last are the mark and the notice

    def again(known: tuple[tuple[Any, ...], Any, Any], answered: str, *values: Any) -> Iterator[list[Any]]:
        example, before, asked = known
        corpus, models, key = choice = values[-3:]
        mark, filled, texts, reading = choice_mark(state, *choice), [gr.skip()] * len(own), before, False
        if kind.reads_corpus:
            with suppress(ValueError):  # the answer says what is wrong
                chosen, columns = chosen_corpus(state, corpus, key), chosen_columns(state.models.columns, models)
                texts, reading = (chosen.key, chosen.number), len(chosen.ready(columns)) < len(columns)
        # A part that waits for its button reads no vectors, so that none that are new concern it.
        if mark == answered or (not kind.live and (texts, models) == (before, asked)):
            yield [gr.skip()] * (len(run.outputs) + 1 + len(own))
            return
        if own and values[: len(example)] == tuple(example):
            example = next(iter(examples_of(state, kind, corpus, key).values()))[: len(own)]
            for place, text in enumerate(example):  # a corpus of one text has one
                filled[place] = gr.skip() if text == values[place] else text
            values = (*example, *values[len(example) :])
        known, skipped = (example, texts, models), [gr.skip()] * len(own)
        waits = kind.live and texts != before and reading
        if waits or filled != skipped:  # at once, so that what is typed before the answer stays
            yield [*(waiting if waits else [gr.skip()] * len(run.outputs)), gr.skip(), *filled]
        answers = run.fn(*values) if kind.live else [*waiting[:-2], mark, gr.skip()]
        yield [*answers, known, *skipped]

    examples = tuple(field.value for field in own)
    known = gr.State((examples, (state.demo.key, state.demo.number), top.models.value))
    gr.on(
        [current.change, shown.answered.change], again, [known, shown.answered, *run.inputs],
        [*run.outputs, known, *own], trigger_mode="always_last", **lane,
    )  # fmt: skip


def theme() -> gr.themes.Base:
    """Return Gradio's default theme in blue, with WCAG 2.2 AA contrasts in both schemes: texts 4.5, outlines 3."""
    default = gr.themes.Default(primary_hue="blue", neutral_hue="slate", font=FONTS, font_mono=MONO)
    return default.set(
        layout_gap="0.6rem",
        block_padding="0.5rem 0.7rem",
        color_accent="*primary_600",
        body_text_color_subdued="*neutral_600",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        slider_color="*primary_600",
        slider_color_dark="*primary_500",
        checkbox_background_color_selected_dark="*primary_500",
        checkbox_border_color="*neutral_500",
        checkbox_border_color_dark="*neutral_500",
        input_border_color="*neutral_500",
        input_border_color_dark="*neutral_500",
    )


def launch_options(
    names: Names | None = None, largest: int = MAX_FILE_BYTES, rights: Rights | None = None
) -> dict[str, Any]:
    """Return the options of `gr.Blocks.launch`: theme, styles, hidden features, `names` served, owner's rights."""
    rights = rights or Rights()
    owners = max(largest, OWN.file_bytes) if rights.owned else largest
    gate = Middleware(
        Gate, names=names or Names(), rights=rights, uploads=Uploads(largest), owner_uploads=Uploads(owners)
    )
    return {
        "app_kwargs": {"middleware": [gate, Middleware(GZipMiddleware, compresslevel=COMPRESSION)]},
        "max_file_size": owners,
        "state_session_capacity": MOST_SESSIONS,
        "theme": theme(),
        "head": f"<script>{script('page')}</script>",
        "css_paths": [STATIC / f"{name}.css" for name in ("style", "clusters", "lessons")],
        "ssr_mode": False,
        "footer_links": ["api", "settings"],
        "run_history": False,
        "enable_monitoring": False,
    }
