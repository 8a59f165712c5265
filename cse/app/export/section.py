"""Export: buttons below a tab that save its results as figures and tables, or show code that repeats them."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import gradio as gr

from cse.app.corpus.chosen import chosen_corpus, reference_corpus
from cse.app.drawing.components import file_value, saved_file
from cse.app.drawing.palette import own_colours
from cse.app.export.download import FORMS, stem
from cse.app.export.figures import figure_file
from cse.app.export.look import LEAST_SIZE, MOST_SIZE, SIZE, Look, look_of
from cse.app.export.page_answers import OWN, PAGE_ONLY
from cse.app.export.taken import Taken, caption
from cse.app.forms.events import HIDDEN, MAPS, PRIVATE, guarded
from cse.app.forms.links import Linked
from cse.app.models.models import Failure, divided
from cse.app.models.remembered import fingerprint_of
from cse.app.sections.similarity import name_of, placed
from cse.app.state.corpora import DEMO_KEY, OWN_KEY
from cse.app.state.records import seeds_of
from cse.evaluation.figures import MEDIA_TYPES

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState

UNUSED = ("results", "ledger")  # endpoints without models
COLUMNS = {"One column (77 mm)": "one", "Two columns (160 mm)": "two"}
LACKING = "The figure's font lacks characters of these texts; the SVG keeps them."
Answers = Mapping[str, Callable[..., Any]]


class Take(NamedTuple):
    """A result of a tab: its label, its endpoint, and the component or value of each of the endpoint's inputs."""

    label: str
    endpoint: str
    inputs: Mapping[str, Any]


def takes_of(tab: str, contents: Sequence[Linked], state: AppState) -> list[Take]:
    """Return the results of a tab that can be downloaded."""
    own = [
        Take(each.label, each.endpoint, dict(zip(each.inputs, part.run.inputs)))  # noqa: B905
        for part in contents
        for each in part.results
    ]
    if tab == "results":
        boards = {} if isinstance(state.boards, Failure) else state.boards
        scored = [Take(board.task.title, "results", {"task": name}) for name, board in boards.items()]
        ledger = [Take("Reproduction ledger", "ledger", {})] if scored else []
        return [*scored, *ledger, *own]
    return own


def take(state: AppState, answers: Answers, endpoint: str, inputs: dict[str, Any]) -> Taken:
    """Call an endpoint as a program would. Raises ValueError as the endpoint does."""
    known = inspect.signature(answers[endpoint]).parameters
    # In the order of the parameters, which curl code needs.
    given = {name: inputs.get(name, parameter.default) for name, parameter in known.items()}
    read = given.get("corpus") if given.get("source", "corpus") == "corpus" else None  # None: no corpus is read
    key = inputs.get("key") if read == OWN_KEY else None
    answer = answers[endpoint](**given)
    if "key" in given:
        given["key"] = ""  # a secret, which the file does not tell
    if inspect.isgenerator(answer):  # of an endpoint that answers step by step, the last step is complete
        *_, answer = answer
    if endpoint in UNUSED:
        return Taken(endpoint, given, {}, answer)
    if endpoint in OWN:  # the answer says what it is about
        return Taken(
            endpoint, answer["inputs"], answer["fingerprints"], answer, private=True, seeds=answer["seeds"],
            colours=own_colours(state.models.columns),
        )  # fmt: skip
    columns = (chosen_corpus(state, read, key).columns if read else None) or state.models.columns
    columns = [column for column in columns if given.get("model", column.name) == column.name]
    named, _ = divided(state.models.apply(lambda _, encoder: fingerprint_of(encoder), columns))
    reference, pairs = "", dict[str, Any]()
    if endpoint == "similarity":
        corpus = reference_corpus(state, inputs.get("corpus", DEMO_KEY), inputs.get("key"))
        reference, pairs = name_of(corpus), divided(placed(state, **given, reference=corpus)[0])[0]
    return Taken(
        endpoint, given, named, answer, tuple(column.added for column in columns if column.added),
        own=bool(key), private=endpoint in PAGE_ONLY,
        percentiles={name: found.percentile for name, found in pairs.items()},
        seeds=seeds_of((column.name, column.model) for column in columns if column.name in named),
        reference=reference,
        histograms={name: found.histogram for name, found in pairs.items()}, colours=own_colours(columns),
    )  # fmt: skip


def address_of(request: gr.Request | None) -> str:
    """Return the URL of the visitor's page from the referer header, or the default address without one."""
    page = urlsplit((request.headers.get("referer") or "") if request else "")
    if page.scheme not in ("http", "https") or not page.netloc:
        return "http://127.0.0.1:7860/"
    return f"{page.scheme}://{page.netloc}{page.path or '/'}"


def take_section(state: AppState, answers: Answers, takes: Sequence[Take]) -> None:
    """Add the part at the end of a tab that has results. Nothing is written to the server's disk."""
    if not takes:
        return
    labels = [each.label for each in takes]
    with gr.Accordion("Export results", open=False, elem_classes="cse-take"):
        result = gr.Radio(labels, value=labels[0], label="Result", visible=len(labels) > 1)
        with gr.Row():
            width = gr.Radio([*COLUMNS.items()], value="two", label="Width of figures", min_width=200)
            size = gr.Slider(LEAST_SIZE, MOST_SIZE, SIZE, step=0.5, label="Font size of figures, points", min_width=200)
        with gr.Row():
            figures = {kind: gr.Button(f"Figure ({kind.upper()})", size="sm", min_width=100) for kind in MEDIA_TYPES}
            tables = {form: gr.Button(form, size="sm", min_width=80) for form in FORMS}
        saved = saved_file()
    inputs = [value for each in takes for value in each.inputs.values()]
    fields = list(dict.fromkeys(value for value in inputs if isinstance(value, gr.components.Component)))

    def taken_of(label: str, given: Sequence[Any]) -> Taken:
        found = next((each for each in takes if each.label == label), takes[0])
        shown = dict(zip(fields, given, strict=True))
        return take(state, answers, found.endpoint, {name: shown.get(v, v) for name, v in found.inputs.items()})

    def table(name: str) -> Callable[..., dict[str, Any]]:
        def taken(request: gr.Request, label: str, *given: Any) -> dict[str, Any]:
            return table_value(taken_of(label, given), name, address_of(request))

        return guarded(taken)

    def figure(kind: str) -> Callable[..., dict[str, Any]]:
        def taken(label: str, width: str, size: float, *given: Any) -> dict[str, Any]:
            return figure_value(taken_of(label, given), kind, look_of(width, size))

        return guarded(taken)

    lane = {**HIDDEN, **MAPS} if any(each.endpoint == "map" for each in takes) else PRIVATE
    for form, button in tables.items():
        button.click(table(form), [result, *fields], saved, **lane)
    for kind, button in figures.items():
        button.click(figure(kind), [result, width, size, *fields], saved, **lane)


def table_value(taken: Taken, form: str, address: str) -> dict[str, Any]:
    """Return the value of `saved_file` for a form of `FORMS`; `address` is the page's, for code."""
    suffix, kind, make = FORMS[form]
    lacking = taken.missing if suffix in ("csv", "tex", "md") else []
    return file_value(f"{stem(taken)}.{suffix}", kind, make(taken, address), lacking)


def figure_value(taken: Taken, kind: str, look: Look) -> dict[str, Any]:
    """Return the value of `saved_file` for a figure; its caption is in the file, and said on the page."""
    described, name = caption(taken), stem(taken)
    content, lacking = figure_file(
        taken, kind, look._replace(colours=taken.colours), {"title": name, "description": described}
    )
    notes = [f"Caption: {described}", *([LACKING] if lacking and kind != "svg" else [])]
    return file_value(f"{name}.{kind}", MEDIA_TYPES[kind], base64.b64encode(content).decode(), taken.missing, notes)
