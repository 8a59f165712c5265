"""The one row above the places: the corpus, the models, lessons, and what can be shared."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
from markupsafe import Markup

from cse.adaptation.choice import MIN_TEXTS
from cse.app import html, validation
from cse.app.corpus.corpora import DEMO_KEY, OWN_KEY
from cse.app.corpus.own import GONE, PROMISE, SUMMARY, UNDO, OwnCorpus
from cse.app.corpus.reading import MOST_TEXTS, SUFFIXES, facts_of, file_corpus, preview
from cse.app.events import CHANGES, HIDDEN, PRIVATE, QUICK, SILENT, guarded
from cse.app.html import file_stem, file_value, saved_file
from cse.app.models.models import MAX_COLUMNS, Column, before
from cse.app.models.naming import choices, title
from cse.app.state import AppState, admit_model, choice_mark, choices_of, chosen_columns, chosen_corpus, version
from cse.app.validation import MAX_FILE_BYTES
from cse.corpus.corpus import free_name
from cse.corpus.output import csv_text

FIRST_PLACE = "similarity"
POLL = 1.0  # seconds between looks at an encoding
MAX_CELL = 120  # characters shown of a cell
NO_LABELS = "none"
NO_FILE = (*[gr.update(visible=False, value=None)] * 2, "")  # no columns to choose, no first rows
UNUSED = (gr.skip(),) * 5  # of texts that do not become the corpus
EXPLANATION = (
    f"Up to {MOST_TEXTS:,} texts: a text file with a text a line, or a table (.csv, .tsv, .jsonl, .json, .xlsx, "
    f".parquet), packed or not, of at most {MAX_FILE_BYTES // 2**20} MB. All its columns come along."
)
KEEPING = f'<details class="cse-note"><summary>{SUMMARY}</summary>{html.escape(PROMISE)}</details>'
ADDING = f"Up to {MAX_COLUMNS} models, on your page alone and until you leave it."
LINKING = "A link opens this place with its inputs, models and corpus; texts and models of yours open for you alone."
WHICH = "Which column holds the texts? {} is proposed."
# The panel of the corpus lies over what is said of new texts.
CLOSE = "about => about && document.getElementById('corpus-panel').hidePopover()"
# A reason why texts were refused stays; what is removed cannot be brought back any more.
LAPSED = """said => [said?.includes('role="alert"') ? said : '',
    {__type__: 'update', visible: false}, {__type__: 'update', active: false}]"""
FOCUS_UNDO = "() => requestAnimationFrame(() => document.getElementById('corpus-undo')?.focus())"


@dataclass(frozen=True)
class Top:
    """What every place reads: the chosen corpus, the chosen models, the visitor's key.

    `changed` is the mark of the choice (`choice_mark`), `place` the name of the open one. The address is written after
    the events `steps`, too. `share` is the panel in which a place's files are offered, `about_models` the one that
    describes the models. `opened` is the event after which an opened page has its visitor's key, `tab` that of the
    place that is added.
    """

    corpus: gr.Dropdown
    models: gr.CheckboxGroup
    key: gr.Textbox
    changed: gr.State
    place: gr.State
    share: gr.Column
    about_models: gr.Column
    steps: Sequence[Any]
    opened: Any
    tab: Any = None


def panel(name: str, heading: str) -> gr.Column:
    """Return a panel that a button of the row opens, with its heading and a visible close."""
    with gr.Column(elem_id=f"{name}-panel", elem_classes="cse-panel") as column:
        gr.HTML(
            f'<div class="cse-panel-head"><h2>{html.escape(heading)}</h2><button type="button" class="cse-close" '
            f'popovertarget="{name}-panel" popovertargetaction="hide">Close</button></div>', apply_default_css=False,
        )  # fmt: skip
    return column


def top_row(state: AppState, key: gr.Textbox, opened: Any) -> Top:
    """Add the row and its panels. The event `opened` follows when the page has the visitor's key."""
    names = [column.name for column in state.models.own]
    bar = gr.HTML(bar_html(state, DEMO_KEY, names), apply_default_css=False, elem_id="top")
    about = gr.HTML("", apply_default_css=False, elem_id="corpus-about")
    with panel("corpus", "Corpus"):
        corpus = gr.Dropdown(choices_of(state), value=DEMO_KEY, label="Corpus", elem_id="corpus")
        said = gr.HTML("", apply_default_css=False, elem_id="corpus-said")
        with gr.Row():
            remove = gr.Button("Remove my texts", size="sm", scale=0, min_width=150, visible=False)
            undo = gr.Button("Undo", size="sm", scale=0, visible=False, elem_id="corpus-undo")
        with gr.Row():
            file = gr.File(label="File", height=130, elem_id="corpus-file", scale=1, min_width=240)
            lines = gr.Textbox("", label="Or paste lines, one text each", lines=3, max_lines=6, scale=1, min_width=240)
        # Custom values are allowed because the server forgets a page's choices; `file_corpus` checks them.
        with gr.Row():
            column, labels = (
                gr.Dropdown([], label=name, visible=False, allow_custom_value=True, min_width=120)
                for name in ("Column of the texts", "Column of labels")
            )
        rows = gr.HTML("", apply_default_css=False)
        use = gr.Button("Use these texts", variant="primary")
        gr.HTML(html.hint(EXPLANATION) + KEEPING, apply_default_css=False)
        save = gr.Button("Save the corpus (.csv)", size="sm", elem_classes="cse-copy")
        save.click(guarded(partial(corpus_table, state)), [corpus, key], saved_file(), **QUICK)
    with panel("models", "Models") as models_panel:
        chosen = models_form(state, key)
    with panel("share", "Share") as share:
        with gr.Row():
            linking = gr.HTML(html.hint(LINKING), apply_default_css=False)
            copy = gr.Button("Copy link", scale=0, min_width=100, elem_classes="cse-submit")
        copied = copy.click(None, None, linking, js="() => cse.copyLink()", **HIDDEN)
        again = f"() => new Promise(done => setTimeout(() => done(`{linking.value}`), 5000))"
        copied.then(None, None, linking, js=again, **HIDDEN)
    first = version(state, DEMO_KEY, None)
    number = gr.Number(first, precision=0, visible="hidden")  # a State takes no value outside of the queue
    timer, undoable = gr.Timer(POLL, active=False), gr.Timer(UNDO, active=False)
    changed = gr.State(choice_mark(state, DEMO_KEY, names, ""))

    def follow(corpus: str, key: str, models: list[str]) -> tuple[Any, ...]:
        """Return updates of what depends on the choice of the corpus."""
        own = state.own_corpora.corpus(key) if corpus == OWN_KEY else None
        if own is not None:
            encode_by(state, own, models)
        running = own is not None and own.current is not None
        mine = gr.update(visible=own is not None)
        note = gr.skip() if corpus == OWN_KEY else ""  # on new texts
        row = bar_html(state, corpus, models, own)
        return row, version(state, corpus, own), gr.Timer(active=running), mine, note

    def resume(key: str, request: gr.Request) -> tuple[Any, str]:
        """Choose the texts that the visitor has here, where the address chooses nothing, and say what they are."""
        own, choices = state.own_corpora.corpus(key), choices_of(state, key)
        if own is None:
            return gr.update(choices=choices), ""
        mine = gr.update(choices=choices) if dict(request.query_params) else gr.update(choices=choices, value=OWN_KEY)
        return mine, html.hint(f"{own.label}: {'; '.join(facts_of(own))}.")

    used = [said, lines, corpus, about, undo, undoable]
    shown = [column, labels, rows]
    changes = [file.upload, file.clear, file.delete]  # by the visitor; a removal empties the field, too
    last = {"trigger_mode": "always_last", **SILENT}  # a file that is given while one is taken away
    upload = gr.on(changes, partial(uploaded, state), [file, chosen, key], [*shown, *used], **last)
    given = [file, lines, column, labels, chosen, key]
    use_texts = use.click(partial(use_given, state), given, [*used, file, *shown], **SILENT)
    about.change(None, about, js=CLOSE, **HIDDEN)
    for event in (number.change, chosen.change):
        event(partial(choice_mark, state), [corpus, chosen, key], changed, **SILENT, **CHANGES)
    offered = [corpus, said, undo, undoable, about]
    removed = remove.click(partial(put_aside, state), key, [*offered, file, *shown], **QUICK)
    removed.success(None, js=FOCUS_UNDO, **HIDDEN)
    undone = undo.click(partial(bring_back, state), key, offered, **QUICK)
    for event in (corpus.change, timer.tick, use_texts.success, upload.success, undone.success, chosen.change):
        event(follow, [corpus, key, chosen], [bar, number, timer, remove, about], **QUICK)
    undoable.tick(None, said, [said, undo, undoable], js=LAPSED, **HIDDEN)
    opened.then(resume, key, [corpus, said], **SILENT)
    steps = (upload, use_texts, removed, undone)
    return Top(corpus, chosen, key, changed, gr.State(FIRST_PLACE), share, models_panel, steps, opened)


def bar_html(state: AppState, corpus: str, models: Sequence[str], own: OwnCorpus | None = None) -> str:
    """Return the row: the chosen corpus, the chosen models, and how far the models are with a visitor's own texts."""
    if corpus == OWN_KEY:
        label, status = (own.label, progress(own)) if own else ("Your texts", GONE)
    else:
        label, status = dict((key, label) for label, key in choices_of(state))[corpus], ""
    known = [name for _, name in model_choices(state.models.columns) if name in models]
    ordered = [column.name for column in chosen_columns(state.models.columns, known)]
    styles = Markup(html.colour_styles(state.models.columns))
    demo = corpus == DEMO_KEY
    return html.drawn("top", "row", corpus=label, models=ordered, status=status, styles=styles, demo=demo)


def progress(own: OwnCorpus) -> str:
    """Return how far the models are with a visitor's texts, and which failed, in one line."""
    encodings = own.encodings.values()
    facts = [f"{title(encoding.column.name)}: {encoding.failure}" for encoding in encodings if encoding.failure]
    waiting = [encoding for encoding in encodings if not encoding.ended]
    if waiting:
        left, first, when = waiting[0].seconds_left(), waiting[0], ""
        if left is not None:
            when = f", {max(1, round(left))} s left" if left < 90 else f", {round(left / 60)} min left"
        more = f", {len(waiting) - 1} to follow" if len(waiting) > 1 else ""
        facts.append(f"{title(first.column.name)} {first.percent} % read{when}{more}")
    return " · ".join(facts)


def encode_by(state: AppState, own: OwnCorpus, models: Sequence[str]) -> None:
    """Have the chosen models encode the visitor's texts, those that do not yet."""
    with suppress(ValueError):  # a name that is gone, or no thread: the places say so
        fresh = [column for column in chosen_columns(state.models.columns, models) if column not in own.encodings]
        if fresh:
            state.own_corpora.encode(own, fresh)


def put_texts(
    state: AppState, path: str | None, lines: str, column: str | None, labels: str | None, models: list[str], key: str
) -> tuple[Any, ...]:
    """Make pasted lines or a file the visitor's corpus, which the chosen `models` encode."""
    try:
        if lines.strip():
            own = OwnCorpus("Pasted", validation.lines(lines, 1, MOST_TEXTS))
        elif path is None:
            raise ValueError("Choose a file or paste lines first.")
        else:
            corpus = file_corpus(path, column, labels if labels != NO_LABELS else None)
            own = OwnCorpus.of(Path(path).name, corpus)
        replaced = state.own_corpora.put(key, own, chosen_columns(state.models.columns, models))
    except ValueError as error:  # the file stays for another column or a later try
        return html.alert(str(error)), *UNUSED
    chosen, earlier = gr.update(choices=choices_of(state, key), value=OWN_KEY), replaced.label if replaced else ""
    return "", "", chosen, overview(state, key, own, earlier=earlier), *undoing(replaced)


def use_given(state: AppState, path: str | None, lines: str, *values: Any) -> tuple[Any, ...]:
    """Put texts as `put_texts` does; a file that pasted lines replace leaves the panel."""
    answers = put_texts(state, path, lines, *values)
    pasted = lines.strip() and answers[1:] != UNUSED
    return *answers, *((None, *NO_FILE) if pasted else [gr.skip()] * 4)


def undoing(corpus: OwnCorpus | None) -> tuple[Any, Any]:
    """Return updates of the button that brings a corpus back, and of the timer that ends that."""
    return gr.update(visible=corpus is not None), gr.Timer(active=corpus is not None)


def overview(state: AppState, key: str, own: OwnCorpus, columns: bool = True, earlier: str = "") -> str:
    """Return what the page says of a visitor's new texts, with presses for other `columns` and for an `earlier` one."""
    query = next(iter(chosen_corpus(state, OWN_KEY, key).examples()), "")
    columns = columns and own.table is not None
    return html.drawn(
        "top", "overview", facts=facts_of(own), query=query, columns=columns, earlier=earlier,
        adaptable=own.different >= MIN_TEXTS,
    )  # fmt: skip


def uploaded(state: AppState, path: str | None, models: list[str], key: str) -> tuple[Any, ...]:
    """Show the columns and first rows of a file, and use its texts at once where it is clear which column has them."""
    if path is None:
        return *NO_FILE, "", *UNUSED
    try:
        seen = preview(path)
    except ValueError as error:
        return *NO_FILE, html.alert(str(error)), *UNUSED
    # A phone shows two columns: those of the texts and labels come first.
    chosen = [seen.columns.index(name) for name in (seen.proposed, seen.label) if name]
    order = [*dict.fromkeys([*chosen, *range(max(map(len, seen.rows), default=0))])]
    rows = [[row[at][:MAX_CELL] for at in order] for row in seen.rows]
    names = [seen.columns[at] for at in order] if seen.columns else []
    table = html.drawn("top", "first_rows", names=names, rows=rows)
    labels, fields = seen.label or NO_LABELS, list(NO_FILE[:2])
    if seen.columns:
        fields = [
            gr.update(choices=choices, value=value, visible=True)
            for choices, value in ((seen.columns, seen.proposed), ([NO_LABELS, *seen.columns], labels))
        ]
    if seen.columns and seen.text is None:
        return *fields, table, html.alert(WHICH.format(seen.proposed)), *UNUSED
    return *fields, table, *put_texts(state, path, "", seen.text, labels, models, key)


def put_aside(state: AppState, key: str) -> tuple[Any, ...]:
    """Remove the texts of a key, and its votes, which hold some; return updates of the choice and of what undoes it."""
    ballot = state.ballots.get(key)

    def forget() -> None:
        if ballot is not None and ballot.corpus == OWN_KEY and state.ballots.get(key) is ballot:
            state.ballots.pop(key)

    own = state.own_corpora.set_aside(key, forget)
    said = "" if own is None else html.hint(f"{own.label} is removed; Undo brings it back for {UNDO} seconds.")
    chosen = gr.update(choices=choices_of(state), value=DEMO_KEY)
    return chosen, said, *undoing(own), "", None, *NO_FILE


def bring_back(state: AppState, key: str) -> tuple[Any, ...]:
    """Undo a removal; return the same updates."""
    own, chosen, about = state.own_corpora.restore(key), gr.skip(), ""
    said = html.alert("These texts are gone; upload or paste them again.")
    if own is not None:
        chosen, said = gr.update(choices=choices_of(state, key), value=OWN_KEY), html.hint(f"{own.label} is back.")
        about = overview(state, key, own, columns=False)  # the field of the file is empty
    return chosen, said, *undoing(None), about


def stem_of(label: str) -> str:
    """Return the name of a corpus with this label as the beginning of those of files."""
    stem = Path(label.rpartition(" (")[0])
    while stem.suffix.lower() in SUFFIXES:
        stem = stem.with_suffix("")
    return file_stem(str(stem)) or "corpus"


def corpus_table(state: AppState, name: str, key: str) -> dict[str, Any]:
    """Return the file of a corpus: its texts, the numbers of their rows, and their further columns as CSV."""
    corpus = chosen_corpus(state, name, key)
    columns = {corpus.text_name: corpus.texts, **corpus.cells(range(len(corpus.texts)))}
    columns = {free_name("row", columns): corpus.numbers, **columns}
    content = csv_text([*columns], zip(*columns.values(), strict=True))
    return file_value(f"{stem_of(corpus.label)}.csv", "text/csv", content)


def model_choices(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """Return the choices of models: each with itself before training, then those whose start is not known."""
    pairs = [(column, before(column)) for column in columns]
    known = [name for column, start in pairs if start for name in (column.name, start.name)]
    return choices([*known, *(column.name for column, start in pairs if not start)])


def models_form(state: AppState, key: gr.Textbox) -> gr.CheckboxGroup:
    """Add the choice of models and the door to add one. Returns the choice."""
    names = [column.name for column in state.models.own]
    chosen = gr.CheckboxGroup(
        model_choices(state.models.own), value=names, label="Shown in every place", elem_id="chosen-models"
    )
    adding = f"Give {state.admission.choices()}. {ADDING}"
    with gr.Accordion("Add a model", open=False, elem_id="add-model"):
        with gr.Row(equal_height=True):
            name = gr.Dropdown(
                choices(state.admission.offered()), value=None, label="Model",
                allow_custom_value=True, scale=4, min_width=240,
            )  # fmt: skip
            file = gr.File(label="Or a .zip of it", file_types=[".zip"], scale=2, min_width=200, height=150)
            add = gr.Button("Add it", scale=0, min_width=100, elem_classes="cse-submit")
            drop = gr.Button("Remove mine", scale=0, min_width=150, elem_classes="cse-submit")
        status = gr.HTML(html.hint(adding), apply_default_css=False, elem_id="added")

    def put(name: Any, path: str | None, key: str, chosen: list[str]) -> tuple[Any, ...]:
        try:
            column = admit_model(state, name, key, path)
        except (ValueError, OSError) as error:
            return gr.skip(), html.alert(str(error)), None
        update = gr.update(choices=model_choices(state.models.columns), value=[*chosen, column.name])
        said = html.hint(f"{title(column.name)} is in every place. {ADDING}")
        return update, said, None

    def take(chosen: list[str]) -> tuple[Any, ...]:
        state.models.remove_added()
        offered = model_choices(state.models.own)
        kept = [name for _, name in offered if name in chosen]
        return gr.update(choices=offered, value=kept), html.hint(adding)

    add.click(guarded(put), [name, file, key, chosen], [chosen, status, file], **PRIVATE)
    drop.click(guarded(take), chosen, [chosen, status], **PRIVATE)
    return chosen
