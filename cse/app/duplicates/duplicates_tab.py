"""The tab Near-duplicates: a model, a slider of the percentile with live numbers, pages of groups, tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from cse.app import validation
from cse.app.corpus.bar import CorpusBar
from cse.app.corpus.chosen import FIELD, chosen_corpus
from cse.app.drawing import html
from cse.app.drawing.components import file_value, heading, result, saved_file, submit
from cse.app.duplicates.groups_html import groups_html, numbers_html, pages
from cse.app.duplicates.near_duplicates import (
    DEFAULT,
    KEPT,
    LEAST,
    LEAST_TEXTS,
    MOST,
    STEP,
    TABLES,
    advised_place,
    column_of,
    find,
    groups_of_all,
    kept,
)  # fmt: skip
from cse.app.forms.events import HIDDEN, LINKS, PRIVATE, PROGRESS, QUICK, guarded, reporter
from cse.app.forms.links import Linked, Result
from cse.app.forms.refusals import refusing
from cse.app.models.naming import choices
from cse.app.state.app_state import AppState

MEANING = (
    "<p>Two texts are near-duplicates if they are more alike than almost all unrelated texts of the corpus. The slider "
    "says how many nines of that share: 3 means 99.9 %, 5 means 99.999 %. More nines find fewer, nearer texts, and a "
    "number means the same in every model.</p><p>Moving the slider needs no new search.</p>"
)
MOST_AT_ONCE = 5000  # texts that are searched as soon as the tab is opened
STRICTNESS = "Strictness: 3 is 99.9 %, 5 is 99.999 %"
PAGE = "The page"
ASK = "Press Find groups."


def duplicates_tab(state: AppState, tab: gr.Tab, bar: CorpusBar) -> Linked:
    """Add the tab's content. Returns its part of the address."""
    heading("Which texts say the same?", more=MEANING)
    names = [column.name for column in state.models.columns]
    with gr.Row(equal_height=True):
        model = gr.Dropdown(choices(names), value=names[0], label="Model", scale=2, min_width=160)
        nines = gr.Slider(LEAST, MOST, DEFAULT, step=STEP, label=STRICTNESS, scale=4, min_width=200)
        button = submit("Find groups")
    numbers = result("duplicate-numbers", html.hint(ASK))
    with gr.Row(visible=False, elem_classes="cse-page-tools") as tools:
        kept_one = [(label, name) for name, label in KEPT.items()]
        keep = gr.Dropdown(kept_one, value="first", label="Keep from each group", scale=0, min_width=180)
        page = gr.Number(1, label="Page", precision=0, minimum=1, scale=0, min_width=120)
        buttons = [gr.Button(name, size="sm", scale=0, min_width=150, elem_classes="cse-submit") for name in TABLES]
    output = result("duplicate-groups", "")
    taken = saved_file()

    def look(model: str, nines: float, keep: str, page: float, corpus: str, key: str) -> tuple[Any, ...]:
        """Return the numbers, the groups of a page and the tools, if near-duplicates were found before."""
        chosen, column = chosen_corpus(state, corpus, key), column_of(state, model)
        found = kept(state, chosen, column)
        if found is None:
            return html.hint(ASK), "", gr.update(visible=False), gr.skip()
        number = validation.whole(page or 1, PAGE, 1, len(chosen.texts))
        groups = groups_of_all(state, chosen, column, nines, keep, number)
        last = pages(groups.total)
        return (
            numbers_html(found, nines, column.name), groups_html(groups, chosen.texts, chosen.numbers),
            gr.update(visible=True), gr.update(value=min(number, last), label=f"Page (of {last:,})"),
        )  # fmt: skip

    def find_near(
        model: str, nines: float, keep: str, page: float, corpus: str, key: str, progress: gr.Progress = PROGRESS
    ) -> tuple[Any, ...]:
        """Find near-duplicates; where nobody has moved the slider, it goes to the advised place."""
        chosen, column = chosen_corpus(state, corpus, key), column_of(state, model)
        new = kept(state, chosen, column) is None
        found = find(state, chosen, column, reporter(progress))
        place = advised_place(found) if new and nines == DEFAULT else nines
        return *look(model, place, keep, page, corpus, key), gr.skip() if place == nines else place

    def find_quickly(model: str, nines: float, keep: str, page: float, corpus: str, key: str) -> tuple[Any, ...]:
        """Find near-duplicates where that is quick, as the tab is opened."""
        chosen, column = chosen_corpus(state, corpus, key), column_of(state, model)
        if LEAST_TEXTS <= len(chosen.texts) <= MOST_AT_ONCE and column in chosen.ready([column]):
            find(state, chosen, column)
        return look(model, nines, keep, page, corpus, key)

    def count(model: str, nines: float, corpus: str, key: str) -> Any:
        found = kept(state, chosen_corpus(state, corpus, key), column_of(state, model))
        return gr.skip() if found is None else numbers_html(found, nines, model)

    def table(name: str) -> Callable[..., dict[str, Any]]:
        file, make = TABLES[name]

        def made(model: str, nines: float, keep: str, corpus: str, key: str) -> dict[str, Any]:
            chosen = chosen_corpus(state, corpus, key)
            groups = groups_of_all(state, chosen, column_of(state, model), nines, keep).groups
            return file_value(file, "text/csv", make(chosen, groups))

        return guarded(made)

    fields = {
        "The model": model, "The strictness": nines, "The text to keep": keep, PAGE: page, FIELD: bar.corpus,
        "The key": bar.key,
    }  # fmt: skip
    outputs = [numbers, output, tools, page]
    run = refusing(find_near, fields, [*outputs, nines])
    looking, beginning = (refusing(function, fields, outputs) for function in (look, find_quickly))
    button.click(run.fn, list(run.inputs), list(run.outputs), **HIDDEN, **LINKS)
    gr.on([tab.select, model.input, bar.changed.change], beginning.fn, list(run.inputs), list(beginning.outputs),
          **HIDDEN, **LINKS)  # fmt: skip
    nines.change(guarded(count), [model, nines, bar.corpus, bar.key], numbers, trigger_mode="always_last", **QUICK)
    gr.on([nines.change, keep.input, page.input], looking.fn, list(run.inputs), list(looking.outputs),
          trigger_mode="always_last", show_progress="hidden", **PRIVATE)  # fmt: skip
    tab.select(lambda: gr.update(choices=choices(column.name for column in state.models.columns)), None, model, **QUICK)
    for each in buttons:
        each.click(table(str(each.value)), [model, nines, keep, bar.corpus, bar.key], taken, **PRIVATE)
    groups = Result("Near-duplicates", "duplicates", ("model", "nines", "keep", "shown_page", "corpus", "key"))
    return Linked(
        ("model", "nines", "keep"), run, (button.click,), {**HIDDEN, **LINKS}, (nines.release, keep.input),
        results=[groups],
    )  # fmt: skip
