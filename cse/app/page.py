"""The page: a heading, the models, the tabs and the endpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from cse.app.api.endpoints import add_endpoints
from cse.app.choice.choose_tab import choose_tab
from cse.app.corpus.bar import corpus_bar
from cse.app.corpus.export import file_route
from cse.app.drawing.components import script
from cse.app.drawing.glossary import glossary_html
from cse.app.duplicates.duplicates_tab import duplicates_tab
from cse.app.export.page_answers import page_answers
from cse.app.export.section import take_section, takes_of
from cse.app.forms.events import HIDDEN, PRIVATE, Run
from cse.app.forms.links import Linked, Shared, back_hook, copy_button, link
from cse.app.forms.visitor_key import known, visitor_key
from cse.app.lessons.panel import lesson_panel, lessons_html
from cse.app.lessons.reveal import whole
from cse.app.opening import keep_maps, read_opening
from cse.app.scoreboard.add_model import add_model_buttons, rerun
from cse.app.scoreboard.model_strip import model_strip
from cse.app.scoreboard.results import measured, results_tab
from cse.app.scoreboard.speed import speed_filler
from cse.app.sections.all_pairs import list_section
from cse.app.sections.changes import changes_section
from cse.app.sections.clusters import clusters_tab
from cse.app.sections.map_link import map_hook
from cse.app.sections.prefix import xray_section
from cse.app.sections.probe import pairs_section
from cse.app.sections.search import search_tab
from cse.app.sections.similarity import pair_section
from cse.app.sections.template_lab import lab_section
from cse.app.sections.tokens import tokens_tab
from cse.app.server.answers import bound_answers
from cse.app.server.gate import Gate
from cse.app.server.hosts import Names
from cse.app.server.rights import Rights
from cse.app.server.uploads import AGE, Uploads
from cse.app.state.app_state import AppState
from cse.app.train_tab.tab import train_tab
from cse.app.training.rules import OWN
from cse.app.training.trainings import Trainings
from cse.app.validation import MAX_FILE_BYTES

TITLE = "Sentence embeddings, side by side"
HEADING = f"""<header class="cse-page-head"><h1>{TITLE}</h1>
<p>Type a sentence. See how embedding methods read it.</p>{lessons_html()}</header>"""
SKIP = '<a class="cse-skip" href="#tabs">Skip to the tabs</a>'
FONTS = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
MONO = ["ui-monospace", "Menlo", "Consolas", "monospace"]
MAX_WAITING = 32
POLL, PROGRESS_POLL = 0.02, 0.1  # seconds between looks at the queue; Gradio's .001 and .01 take 6 % of a core at rest
MOST_SESSIONS = 200  # Gradio keeps the fields and last answers of each: 0.4 MB or more
CLEARING = (600, AGE)  # seconds between clean-ups, and age of deleted files
COMPRESSION = 1  # of 1 to 9: 1.1 MB of the first page become 0.25 MB in 45 ms
STATIC = Path(__file__).parent / "static"


class Page(gr.Blocks):
    """The app's blocks, with the state that its HTTP routes need."""

    app_state: AppState

    def queue(self, *given: Any, **named: Any) -> gr.Blocks:
        """Set the queue up, as Gradio does once for new blocks; a further call would make all its HTTP routes again."""
        super().queue(*given, **{"api_open": False, "max_size": MAX_WAITING, **named})
        self._queue.sleep_when_free, self._queue.progress_update_sleep_when_free = POLL, PROGRESS_POLL
        return self


def page(state: AppState, trainings: Trainings | None = None) -> Page:
    """Return the app with its queue; `launch_options` are for its `launch`. Other results are computed on opening.

    Visitors may train where `trainings` are given that allow it.
    """
    opening = read_opening(state.models)
    keep_maps(state, opening)
    trainings = trainings or Trainings()
    with Page(title=TITLE, analytics_enabled=False, delete_cache=CLEARING) as blocks:
        blocks.app_state = state
        gr.HTML(SKIP, apply_default_css=False, js_on_load=script("skip"), elem_id="skip")
        gr.HTML(HEADING, apply_default_css=False)
        lesson_panel(state)
        strip = model_strip(state, opening.descriptions)
        hook, back, key = map_hook(), back_hook(), visitor_key()
        bar = corpus_bar(state, key)
        added = add_model_buttons(state, strip, bar)
        linked: dict[str, tuple[gr.Tab, list[Linked]]] = {}
        with gr.Tabs(overflow_behavior="wrap", elem_id="tabs") as tabs:  # no menu hides tabs on a narrow screen
            with gr.Tab("Similarity", id="similarity") as tab:
                pair, matrices = pair_section(state, bar, opening.similarity), list_section(state, opening.all_pairs)
                linked["similarity"] = tab, [pair, matrices]
            with gr.Tab("Search", id="search") as tab:
                linked["search"] = tab, [search_tab(state, bar, opening.hits)]
            with gr.Tab("Tokens", id="tokens") as tab:
                words = tokens_tab(state, opening.tokens)
                lab = lab_section(state, words.run.inputs[0], opening.trials)
                linked["tokens"] = tab, [words, lab]
            with gr.Tab("Clusters", id="clusters") as tab:
                linked["clusters"] = tab, [clusters_tab(state, opening.maps, tabs, hook, bar)]
            with gr.Tab("Near-duplicates", id="duplicates") as tab:
                linked["duplicates"] = tab, [duplicates_tab(state, tab, bar)]
            with gr.Tab("Probe", id="probe") as tab:
                changes = changes_section(state, opening.changes)
                pairs = pairs_section(state, bar, opening.disagreements)
                linked["probe"] = tab, [changes, pairs, *xray_section(state, opening.xrays)]
            with gr.Tab("Choose for my data", id="choose") as tab:
                linked["choose"] = tab, [choose_tab(state, tab, bar)]
            with gr.Tab("Results", id="results") as tab:
                linked["results"] = tab, [results_tab(state, bar)]
            with gr.Tab("Train", id="train") as tab:
                training = train_tab(state, trainings, bar, strip)
                linked["train"] = tab, training.linked
        answers = {**add_endpoints(state), **page_answers(state, trainings)}
        for name, (tab, contents) in linked.items():
            with tab:
                take_section(state, answers, takes_of(name, contents, state))
        rerun((*added, *training.changed), pair.run)
        copy_button()
        gr.HTML(glossary_html(), apply_default_css=False)
        opened = known(blocks, key)
        bar.resume(opened.then)
        training.resume(opened.then)
        link(opened, back, tabs, linked, Shared(bar.corpus, bar.steps), whole)
        when_opened(blocks, state, [] if opening.similarity else [pair.run, matrices.run, strip])
    bound_answers(blocks)
    return blocks


def when_opened(blocks: gr.Blocks, state: AppState, runs: list[Run]) -> None:
    """When the page is loaded, compute results that are not shipped, then open the models and measure their speed."""
    events = [blocks.load(run.fn, run.inputs, run.outputs, **PRIVATE) for run in runs]
    after = events[-1].then if events else blocks.load
    lane: dict[str, Any] = {**HIDDEN, "concurrency_id": "warm-up", "concurrency_limit": 1, "show_progress": "hidden"}
    after(lambda: measured(state), None, speed_filler(), **lane)


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
    """Return the options of `gr.Blocks.launch`: theme, styles, hidden features, the `names` served, the owner's rights.

    `largest` is the size in bytes of the largest file that a visitor may upload.
    """
    rights = rights or Rights()
    owners = max(largest, OWN.file_bytes) if rights.owned else largest
    return {
        "app_kwargs": {
            "middleware": [
                Middleware(
                    Gate,
                    names=names or Names(),
                    rights=rights,
                    uploads=Uploads(largest),
                    owner_uploads=Uploads(owners),
                ),
                Middleware(GZipMiddleware, compresslevel=COMPRESSION),
            ],
            "routes": [file_route()],
        },
        "max_file_size": owners,
        "state_session_capacity": MOST_SESSIONS,
        "theme": theme(),
        "css_paths": [
            STATIC / name
            for name in ("style.css", "corpus.css", "train.css", "map/map.css", "models.css", "lessons.css")
        ],
        "ssr_mode": False,
        "footer_links": ["api", "settings"],
        "run_history": False,
        "enable_monitoring": False,
    }
