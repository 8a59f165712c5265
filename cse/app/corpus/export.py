"""The form that saves the chosen corpus, with a button for each kind of file, and the HTTP route that sends it."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import gradio as gr
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cse.app.corpus.chosen import chosen_corpus
from cse.app.corpus.exports import FILES, Sent, columns_of, taken
from cse.app.drawing.components import script
from cse.app.forms.events import HIDDEN, QUICK, hide
from cse.app.models.naming import choices
from cse.app.state.app_state import AppState

PATH = "/corpus/files"
STATUS = '<p class="cse-note" role="status"></p>'
SHOW_STATUS = "watch('value', () => { element.querySelector('p').textContent = props.value.status || ''; });"
FIELDS = ("kind", "corpus", "key", "model")


def export_form(state: AppState, corpus: gr.Dropdown, key: gr.Textbox, button: gr.Button) -> gr.Column:
    """Add the form, which the button opens."""
    with gr.Column(visible=False, elem_classes="cse-sheet", elem_id="corpus-export") as form:
        with gr.Row(equal_height=True):
            model = gr.Dropdown([], label="Model", scale=0, min_width=200, allow_custom_value=True)
            saves = {kind: gr.Button(label, size="sm", scale=0, min_width=130) for kind, (label, _) in FILES.items()}
            close = gr.Button("Close", size="sm", scale=0, min_width=80)
        status = gr.HTML({}, html_template=STATUS, js_on_load=SHOW_STATUS, apply_default_css=False)

    def opened(corpus: str, key: str) -> tuple[Any, Any, Any]:
        try:
            names = [column.name for column in columns_of(state, chosen_corpus(state, corpus, key))]
        except ValueError as error:
            return gr.update(visible=True), gr.update(choices=[], value=None), {"status": str(error)}
        return gr.update(visible=True), gr.update(choices=choices(names), value=names[0]), {}

    button.click(opened, [corpus, key], [form, model, status], **QUICK)
    close.click(hide, None, form, **QUICK)
    for kind, save in saves.items():
        save.click(None, [corpus, key, model], status, js=script("corpus_file").replace("KIND", kind).strip(), **HIDDEN)
    return form


def file_route() -> Route:
    """Return the route; it answers a JSON object with the `FIELDS`, and refuses with one line, `detail`."""
    return Route(PATH, answer, methods=["POST"])


async def answer(request: Request) -> Response:
    """Return a file of a corpus of the app that received the request."""
    state: AppState = request.app.get_blocks().app_state
    try:
        body = json.loads(await request.body())
        if not isinstance(body, dict):
            raise ValueError(f"Send a JSON object with {', '.join(FIELDS)}.")
        sent: Sent = await run_in_threadpool(taken, state, *(body.get(field) for field in FIELDS))
    except (ValueError, RecursionError) as error:  # RecursionError: deeply nested lists
        return JSONResponse({"detail": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY)
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(sent.name)}", "Cache-Control": "no-store"}
    return StreamingResponse(sent.parts, media_type=sent.kind, headers=headers)
