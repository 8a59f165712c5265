"""Export: buttons below a tab that save its results as files, or show code that repeats them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import gradio as gr

from cse.app.api.download import FORMS, stem
from cse.app.api.taken import Taken
from cse.app.corpus.chosen import chosen_corpus
from cse.app.drawing.components import script
from cse.app.drawing.saved_file import file_value, saved_file
from cse.app.forms.events import HIDDEN, MAPS, PRIVATE, guarded
from cse.app.forms.links import Linked
from cse.app.models.corpora import OWN_KEY
from cse.app.models.models import Failure, divided
from cse.app.models.remembered import fingerprint_of
from cse.app.sections.similarity import placed

if TYPE_CHECKING:
    from cse.app.models.state import AppState

UNUSED = ("results", "ledger")  # endpoints without models
BOARD = ".cse-board:has(#results-%s)"
Answers = Mapping[str, Callable[..., Any]]


class Take(NamedTuple):
    """A result of a tab: its label, its endpoint, and the component or value of each of the endpoint's inputs.

    `picture` is the selector of the element that shows it.
    """

    label: str
    endpoint: str
    inputs: Mapping[str, Any]
    picture: str


def takes_of(tab: str, contents: Sequence[Linked], state: AppState) -> list[Take]:
    """Return the results of a tab that can be downloaded."""
    if tab == "results":
        boards = {} if isinstance(state.boards, Failure) else state.boards
        scored = [Take(board.task.title, "results", {"task": name}, BOARD % name) for name, board in boards.items()]
        return [*scored, Take("Reproduction ledger", "ledger", {}, BOARD % "ledger")] if scored else []
    return [
        Take(each.label, each.endpoint, dict(zip(each.inputs, part.run.inputs)), each.picture)  # noqa: B905
        for part in contents
        for each in part.results
    ]


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
    columns = (chosen_corpus(state, read, key).columns if read else None) or state.models.columns
    named, _ = divided(state.models.apply(lambda _, encoder: fingerprint_of(encoder), columns))
    beside = divided(placed(state, **given)[0])[0] if endpoint == "similarity" else {}
    return Taken(
        endpoint, given, named, answer, tuple(column.added for column in columns if column.added), bool(key),
        percentiles={name: found.percentile for name, found in beside.items()},
    )  # fmt: skip


def address_of(request: gr.Request | None) -> str:
    """Return the URL of the visitor's page from the referer header, or the default address without one."""
    page = urlsplit((request.headers.get("referer") or "") if request else "")
    if page.scheme not in ("http", "https") or not page.netloc:
        return "http://127.0.0.1:7860/"
    return f"{page.scheme}://{page.netloc}{page.path or '/'}"


def picture_name(take: Take) -> str:
    """Return the file name of a result's picture, from the inputs with constant values."""
    known = {name: value for name, value in take.inputs.items() if isinstance(value, str)}
    return stem(take.endpoint, known, {})


def take_section(state: AppState, answers: Answers, takes: Sequence[Take]) -> None:
    """Add the folded part at the end of a tab that has results. Nothing is written to the server's disk."""
    if not takes:
        return
    components = [
        value for each in takes for value in each.inputs.values() if isinstance(value, gr.components.Component)
    ]
    labels = [each.label for each in takes]
    with gr.Accordion("Export results", open=False, elem_classes="cse-take"):
        chosen = gr.Radio(labels, value=labels[0], label="Result", visible=len(labels) > 1)
        with gr.Row():
            buttons = [gr.Button(form, size="sm", min_width=80) for form in FORMS]
            pictures = json.dumps({each.label: [each.picture, picture_name(each)] for each in takes})
            drawing = script("picture").replace("PICTURES", pictures).strip()
            gr.Button("PNG", size="sm", min_width=80).click(None, [chosen], None, js=drawing, **PRIVATE)
        output = saved_file()

    def handler(form: str) -> Callable[..., dict[str, Any]]:
        suffix, kind, make = FORMS[form]

        def taken(request: gr.Request, label: str, *values: Any) -> dict[str, Any]:
            given = dict(zip(components, values, strict=True))
            chosen_take = next((each for each in takes if each.label == label), takes[0])
            inputs = {name: given.get(value, value) for name, value in chosen_take.inputs.items()}
            found = take(state, answers, chosen_take.endpoint, inputs)
            file = f"{stem(found.endpoint, found.inputs, found.models)}.{suffix}"
            text = make(found, address_of(request))
            lacking = found.missing if suffix == "csv" else []
            return file_value(file, kind, text, lacking)

        return guarded(taken)

    lane = {**HIDDEN, **MAPS} if any(each.endpoint == "map" for each in takes) else PRIVATE
    for form, button in zip(FORMS, buttons, strict=True):
        button.click(handler(form), [chosen, *components], output, **lane)
